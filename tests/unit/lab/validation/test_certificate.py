"""The certificate of a platform: what it says, and which platform it belongs to."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.cli.runs.spec import spec_from
from services.lab.validation.agreement import Comparison, Outcome
from services.lab.validation.report import make_certificate
from services.lab.validation.run_results import TaskTime
from services.lab.validation.validator import Compared
from services.lab.validation.workloads import workloads
from shared.domain.hardware.certificate import Certificate
from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor, generate
from shared.platforms.certificate_file import (
    certificate_path,
    find_certificate,
    platform_hash,
)
from shared.platforms.platform_file import PlatformFile, load

PAGE = Path(__file__).parents[4] / "docs" / "validation.md"
PLATFORM = """
name: mine
cluster:
  devices:
    - {type: blas, accelerator: true, bandwidth_mb_s: 1000, real: {cores: [1], copy: true}}
    - {type: cpu, real: {cores: [0], library: plain}}
physics: {noise: measured, memory_mb_per_size: 0.2}
times:
  - {kind: sort, type: blas, sizes: [1, 10], seconds: [0.001, 0.01], deviations: [0.1, 0.1]}
  - {kind: sort, type: cpu, sizes: [1, 10], seconds: [0.003, 0.03], deviations: [0.1, 0.1]}
"""
NAMES = ("eft", "random")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "mine.yaml"
    file.write_text(PLATFORM)
    return file


def compared(platform: PlatformFile) -> list[Compared]:
    """Two real runs: the simulation is 10 % above their mean, and they differ by 5 % from it."""
    [workload] = workloads(platform, 1, 10, 1, NAMES)
    real = [
        {"eft": Outcome(0.95, 9.5), "random": Outcome(1.9, 19)},
        {"eft": Outcome(1.05, 10.5), "random": Outcome(2.1, 21)},
    ]
    simulated = {"eft": Outcome(1.1, 11), "random": Outcome(2.2, 22)}
    times = [
        [TaskTime("eft", 0, "sort", "blas", 0.012, 0.01), TaskTime("eft", 1, "sort", "cpu", 1, 2)],
        # Task 1 is on another device than before: nothing to compare.
        [TaskTime("eft", 0, "sort", "blas", 0.012, 0.01), TaskTime("eft", 1, "sort", "blas", 1, 2)],
    ]
    return [Compared(workload, Comparison(real, simulated), ["r1", "r2"], times)]


def written(path: Path) -> dict[str, Any]:
    platform = load(path)
    content = make_certificate(platform, compared(platform))
    certificate_path(path).write_text(json.dumps(content))
    return content


def test_the_certificate_has_the_errors_of_tasks_and_schedulers(path: Path) -> None:
    content = written(path)
    summary = Certificate.model_validate(content["summary"])
    assert summary.makespan.median == summary.turnaround.median == pytest.approx(0.1)
    assert summary.makespan.spread == summary.turnaround.spread == pytest.approx(0.05)
    assert summary.makespan.beyond == pytest.approx(0.05)
    assert summary.task_time.median == pytest.approx(0.2)
    assert (summary.pairs, summary.pairs_kept, summary.kendall_tau) == (1, 1, 1)
    assert [(row["kind"], row["type"], row["tasks"]) for row in content["task_times"]] == [
        ("sort", "blas", 1)
    ]
    assert "makespan 10.0% (repeated real runs 5.0%)" in summary.line


def test_a_changed_platform_has_no_certificate(path: Path) -> None:
    written(path)
    certificate = find_certificate(str(path), load(path))
    assert certificate is not None
    assert certificate.platform_hash == platform_hash(load(path))
    path.write_text(PLATFORM + "description: another text\n")
    assert find_certificate(str(path), load(path)) == certificate
    path.write_text(PLATFORM.replace("0.03]", "0.04]"))
    assert find_certificate(str(path), load(path)) is None


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"summary": {"platform": "mine"}}'])
def test_an_unreadable_certificate_is_none(path: Path, content: str) -> None:
    certificate_path(path).write_text(content)
    assert find_certificate(str(path), load(path)) is None


def test_real_and_simulated_runs_have_the_same_tasks(path: Path) -> None:
    made = list(workloads(load(path), 3, 20, 7, NAMES))
    assert len({each.simulated.seed for each in made}) == 3
    for each in made:
        assert each.real.real
        assert not each.simulated.real
        assert each.real.execution.stretch_tasks == 20
        ours, theirs = (generate(spec, Cursor(), 20)[0] for spec in (each.real, each.simulated))
        assert ours.size.tolist() == theirs.size.tolist()
        assert ours.arrival_time.tolist() == theirs.arrival_time.tolist()
    assert [each.real for each in made] == [
        each.real for each in workloads(load(path), 3, 20, 7, NAMES)
    ]


def test_the_documented_spec_of_a_learner_is_a_real_run_on_the_formula() -> None:
    found = re.search(r"<!-- learner -->\n```yaml\n(.*?)```", PAGE.read_text(), re.S)
    assert found is not None
    spec = RunSpec.parse(yaml.safe_load(found[1]))
    assert spec.real
    assert spec.platform.measured is None


def test_a_run_on_the_platform_carries_its_certificate(path: Path, tmp_path: Path) -> None:
    written(path)
    file = tmp_path / "run.yaml"
    file.write_text("execution: real\ntasks: 5\n")
    spec = RunSpec.parse(spec_from(file, None, None, None, None, platform=str(path)))
    assert spec.real
    assert spec.certificate == find_certificate(str(path), load(path))
    certificate_path(path).unlink()
    assert "certificate" not in spec_from(file, None, None, None, None, platform=str(path))
