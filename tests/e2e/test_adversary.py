"""The adversary, the way a user runs it: what it finds is the same in an arena, to the bit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shared.domain.schedulers import BUILT_IN
from tests.e2e.arena import ArenaProcess, hybrid


def test_an_instance_replays_bit_for_bit(shared_arena: ArenaProcess, tmp_path: Path) -> None:
    folder = tmp_path / "adversary"
    given = ["--victim", "least_loaded", "--rival", "bandit", "--minutes", "0.05"]
    done = hybrid("adversary", *given, "--out", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    (pair,) = json.loads(done.stdout)["pairs"]
    instance = folder / "instances" / "least_loaded-bandit.yaml"
    place = ["--data-dir", str(shared_arena.folder)]
    again = hybrid("adversary", "--replay", str(instance), "--json", *place)
    assert again.returncode == 0, again.stderr
    replayed = json.loads(again.stdout)
    assert replayed["equal"]
    victim, rival = (each["arena"]["turnaround"] for each in replayed["schedulers"])
    assert victim / rival == pair["ratio"]
    assert {"report.html", "report.pdf", "report.json"} <= {each.name for each in folder.iterdir()}


@pytest.mark.long
def test_every_built_in_scheduler_replays_bit_for_bit(tmp_path: Path) -> None:
    """The search runs them without an arena: the arena has to come to the same results."""
    instance = tmp_path / "all.yaml"
    spec = {
        "seed": 7,
        "tasks": 60,
        "pace": "max",
        "learning": {"sync": "lockstep"},
        "physics": {"noise": 0.2},
        "workload": {"dependencies": {"probability": 0.2}},
        "schedulers": list(BUILT_IN),
    }
    instance.write_text(json.dumps(spec))
    done = hybrid("adversary", "--replay", str(instance), "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    rows = json.loads(done.stdout)["schedulers"]
    assert {row["scheduler"] for row in rows if row["equal"]} == set(BUILT_IN)
