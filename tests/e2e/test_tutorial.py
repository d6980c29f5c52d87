"""What the README teaches works as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from shared.spec import RunSpec
from tests.e2e.arena import RULES, hybrid

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_tutorials_scheduler_joins_the_race(tmp_path: Path) -> None:
    found = re.search(r"<!-- tutorial: (\S+) -->\n```python\n(.*?)```", README, re.S)
    assert found is not None
    (tmp_path / found[1]).write_text(found[2])
    command = f"hybrid up --add {found[1]} --tasks 2000 --pace max --exit"
    assert command in README
    done = hybrid(*command.split()[1:], "--json", "--auto-ports", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    schedulers = json.loads(done.stdout)["schedulers"]
    assert schedulers["transfer_aware"]["results"] == 2000
    # It is worth teaching: better than every rule that does not look at the transfer.
    rest = set(RULES) - {"oracle"}
    mine = schedulers["transfer_aware"]["total_time"]
    assert mine < min(schedulers[name]["total_time"] for name in rest)


def test_the_readmes_spec_is_valid() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.S)
    spec = RunSpec.parse(yaml.safe_load(text))
    assert spec.physics.split == "overlapped"
    assert spec.workload.drift[0].preset == "cpu_friendly"
