"""The tutorials of the README and of docs/schedulers.md work as printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.domain.schedulers import BUILT_IN, LEARNERS
from shared.domain.spec import RunSpec
from tests.e2e.arena import hybrid

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
TEXT = README + (ROOT / "docs" / "schedulers.md").read_text()
MINE, MY_EFT, MY_LEARNER = "transfer_aware", "my_eft", "linear_times"
COMMANDS = (
    "hybrid up --add my_scheduler.py --tasks 2000 --pace max --exit",
    "hybrid up --add my_eft.py --scale my_eft=3 --tasks 2000 --pace max --exit",
    "hybrid up --add my_learner.py --tasks 2000 --pace max --exit",
)


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The output of the tutorials' commands as one, with the tutorials' schedulers."""
    folder = tmp_path_factory.mktemp("tutorial")
    found = re.findall(r"<!-- tutorial: (\S+) -->\n```python\n(.*?)```", TEXT, re.S)
    assert [name for name, _ in found] == ["my_scheduler.py", "my_eft.py", "my_learner.py"]
    for name, text in found:
        (folder / name).write_text(text)
    assert all(command in TEXT for command in COMMANDS)
    added = "--add my_scheduler.py --add my_eft.py --scale my_eft=3 --add my_learner.py"
    # A token in the environment must not break it.
    token = {"HYBRID_GATEWAY_TOKEN": "s3cret"}
    options = f"{added} --tasks 2000 --pace max --exit --json".split()
    done = hybrid("up", *options, "--auto-ports", cwd=folder, env=token)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_the_tutorials_scheduler_joins_the_race(summary: dict[str, Any]) -> None:
    schedulers = summary["schedulers"]
    assert schedulers[MINE]["results"] == 2000
    # It is worth teaching: better than every rule that does not look at the transfer.
    rest = {"cpu_only", "gpu_only", "greedy", "random", "round_robin"}
    mine = schedulers[MINE]["total_time"]
    assert mine < min(schedulers[name]["total_time"] for name in rest)


def test_the_tutorials_earliest_finish_is_the_built_in_one(summary: dict[str, Any]) -> None:
    """With three workers instead of one."""
    schedulers = summary["schedulers"]
    assert schedulers[MY_EFT]["results"] == 2000
    for measure in ("total_time", "avg_turnaround", "makespan", "avg_energy"):
        assert schedulers[MY_EFT][measure] == schedulers["eft"][measure]
    task_policies = {"greedy", "cpu_only", "gpu_only", "oracle", MINE}
    turnaround = {name: schedulers[name]["avg_turnaround"] for name in task_policies}
    assert schedulers[MY_EFT]["avg_turnaround"] < min(turnaround.values())


def test_the_tutorials_learner_learns_in_lockstep(summary: dict[str, Any]) -> None:
    row = summary["schedulers"][MY_LEARNER]
    # Four segments of 500 tasks: two for the pre-trained model, one for each version after it.
    assert (row["models"], row["versions"]) == (3, [1, 2, 3])
    # Task 1000, the first of version 2, is 501 tasks after the newest one that it knows.
    assert row["staleness"] == pytest.approx((501 + 1000) / 2)
    eft = summary["schedulers"]["eft"]["avg_turnaround"]
    assert row["avg_turnaround"] < 2 * eft
    assert row["avg_turnaround"] != eft  # its times are its own


def test_up_exit_json_prints_one_object_that_sums_the_run_up(summary: dict[str, Any]) -> None:
    assert summary["tasks"] == 2000
    assert summary["tasks_per_s"] == pytest.approx(2000 / summary["seconds"], rel=0.01)
    assert set(summary["schedulers"]) == {*BUILT_IN, MINE, MY_EFT, MY_LEARNER}
    for name, row in summary["schedulers"].items():
        learns = name in LEARNERS or name == MY_LEARNER
        learned = {"models", "versions", "staleness", "vs_oracle_last"} if learns else set()
        assert set(row) >= {
            "results", "failed", "total_time", "avg_time", "avg_wait", "avg_turnaround",
            "turnaround_p50", "turnaround_p95", "turnaround_p99", "avg_slowdown", "makespan",
            "vs_bound", "avg_energy", "avg_idle_energy", "avg_cost", "vs_oracle",
        }  # fmt: skip
        assert row["results"] == 2000
        assert row["avg_time"] == pytest.approx(row["total_time"] / 2000)
        assert row["vs_oracle"] >= 1
        assert learned <= set(row)
    assert summary["schedulers"]["oracle"]["vs_oracle"] == 1


def test_the_readmes_spec_is_valid() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.S)
    spec = RunSpec.parse(yaml.safe_load(text))
    assert spec.physics.split == "overlapped"
    assert spec.workload.drift[0].preset == "cpu_friendly"
