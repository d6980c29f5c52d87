"""Experiments, the way a user runs them: interrupted, resumed, reported."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from services.lab.experiments import declaration as experiments
from tests.e2e.arena import HYBRID, ArenaProcess, hybrid
from tests.waiting import PATIENCE, until

MINE: dict[str, Any] = {
    "name": "mine",
    "title": "Two arrival rates",
    "question": "Does waiting grow?",
    "tasks": 300,
    "seeds": [1, 2],
    "axis": "tasks per second",
    "spec": {"pace": 150, "schedulers": ["oracle", "greedy", "round_robin"]},
    "variants": {
        "slow": {"value": 2, "spec": {"workload": {"arrival_rate": 2}}},
        "fast": {"value": 20, "spec": {"workload": {"arrival_rate": 20}}},
    },
    "figures": ["total_time", "makespan", "sweep", "regret"],
}


@pytest.fixture
def declared(tmp_path: Path) -> Path:
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(MINE))
    return file


def entries(folder: Path) -> list[dict[str, Any]]:
    journal = folder / "journal.json"
    return list(json.loads(journal.read_text())["entries"]) if journal.exists() else []


def test_an_experiment_that_is_killed_goes_on_and_runs_nothing_twice(
    shared_arena: ArenaProcess, declared: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    place = ["--data-dir", str(shared_arena.folder)]
    process = subprocess.Popen(
        [HYBRID, "experiment", "run", str(declared), "--out", str(folder), *place],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    # In the middle of the second run, one is done.
    until(lambda: len(entries(folder)) == 2, every=0.02)
    process.kill()
    process.wait()
    assert [entry["done"] for entry in entries(folder)] == [True, False]
    again = hybrid("experiment", "run", "--resume", str(folder), "--json", *place)
    assert again.returncode == 0, again.stderr
    found = entries(folder)
    assert [entry["resumed"] for entry in found] == [False, True, False, False]
    outcomes = pq.read_table(folder / "data" / "outcomes.parquet").to_pylist()
    assert len(outcomes) == 3 * 2 * 2
    for row in outcomes:
        (stored,) = shared_arena.sql(
            "SELECT count() AS results, sum(time) AS time, max(finish) AS finish "
            "FROM scheduler_results FINAL "
            f"WHERE run = '{row['run']}' AND scheduler = '{row['scheduler']}'"
        )
        assert (row["tasks"], stored["results"]) == (300, 300)
        assert row["total_time"] == pytest.approx(stored["time"])
        assert row["makespan"] >= row["arrival_bound"]
    runs = shared_arena.sql("SELECT name FROM runs FINAL WHERE name LIKE 'mine/%'")
    assert len(runs) == 4
    written = json.loads(again.stdout)["files"]
    assert {"report.html", "report.pdf", "report.json"} <= {Path(file).name for file in written}


@pytest.mark.long
def test_ctrl_c_keeps_what_was_done_and_an_arena_of_its_own_goes_on(
    declared: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    process = subprocess.Popen(
        [HYBRID, "experiment", "run", str(declared), "--out", str(folder), "--seeds", "1"],
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: len(entries(folder)) == 1, every=0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert f"hybrid experiment run --resume {folder}" in errors
    again = hybrid("experiment", "run", "--resume", str(folder))
    assert again.returncode == 0, again.stderr
    assert not (folder / "arena").exists()
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"] == f"hybrid experiment run {declared} --seeds 1"
    assert {"nats", "clickhouse", "scheduler-greedy"} <= {
        each["name"] for each in provenance["processes"]
    }
    report = json.loads((folder / "report.json").read_text())
    assert report["seeds"] == [1]
    assert "report.pdf" in again.stdout


def test_a_scheduler_that_is_not_deployed_is_an_error_before_anything_runs(
    shared_arena: ArenaProcess, tmp_path: Path
) -> None:
    failed = hybrid(
        "experiment", "run", "shift", "--out", str(tmp_path / "out"),
        "--data-dir", str(shared_arena.folder),
    )  # fmt: skip
    assert failed.returncode == 1
    assert "frozen_forest not deployed" in failed.stderr
    assert "--add services.scheduler.frozen_forest:FrozenForest" in failed.stderr


@pytest.mark.long
@pytest.mark.timeout(3600)  # some forty runs and six reports
def test_every_built_in_experiment_makes_its_report(tmp_path: Path) -> None:
    arena = ArenaProcess(
        tmp_path / "data", "--idle", "--add", "services.scheduler.frozen_forest:FrozenForest"
    )
    try:
        for name in experiments.built_in():
            tasks = "900" if name == "shift" else "60"  # the shift comes after 800
            folder = tmp_path / name
            made = hybrid(
                "experiment", "run", name, "--tasks", tasks, "--seeds", "2", "--pace", "max",
                "--out", str(folder), "--data-dir", str(arena.folder), "--json", timeout=1200,
            )  # fmt: skip
            assert made.returncode == 0, made.stderr
            assert all((folder / f"report.{end}").stat().st_size for end in ("html", "pdf"))
            assert json.loads((folder / "report.json").read_text())["seeds"] == [1, 2]
    finally:
        assert arena.stop() == 0
