"""The capacity search against trying every value."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.e2e.arena import ArenaProcess, hybrid

SPEC = {
    "tasks": 150,
    "seed": 3,
    "cluster": {"devices": [{"type": "cpu"}, {"type": "gpu", "count": 2}]},
    "workload": {"arrival_rate": 30},
}
COUNTS, LIMIT = range(1, 17), 2.5


def test_the_search_finds_what_trying_all_finds(shared_arena: ArenaProcess, tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(yaml.safe_dump(SPEC))
    command = ("capacity", "--spec", str(file), "--vary", "cluster.devices.1.count=1..16")
    command += ("--target", f"p95_turnaround<={LIMIT}", "--scheduler", "eft", "--json")
    command += ("--data-dir", str(shared_arena.folder))
    searched = hybrid(*command)
    assert searched.returncode == 0, searched.stderr
    found = json.loads(searched.stdout)

    runs = {}
    for count in COUNTS:
        devices = [{"type": "cpu"}, {"type": "gpu", "count": count}]
        spec = {**SPEC, "cluster": {"devices": devices}, "pace": "max", "schedulers": ["eft"]}
        runs[count] = shared_arena.start_run(**spec)
    p95 = {}
    for count, run in runs.items():
        shared_arena.complete(run)
        # In task order, by hand: the smallest value that 95 % of the tasks do not exceed.
        rows = shared_arena.sql(
            "SELECT turnaround FROM scheduler_results FINAL "
            f"WHERE run = '{run}' ORDER BY turnaround"
        )
        p95[count] = rows[int(0.95 * len(rows))]["turnaround"]
    assert found["answer"] == min(count for count in COUNTS if p95[count] <= LIMIT)
    assert {each["value"]: each["figure"] for each in found["tried"]} == {
        each["value"]: p95[each["value"]] for each in found["tried"]
    }
    assert len(found["tried"]) <= len(COUNTS) / 2

    again = json.loads(hybrid(*command).stdout)
    assert again == found  # the same runs, and no others
