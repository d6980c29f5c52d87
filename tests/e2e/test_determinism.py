"""Rules and the Oracle: the same spec and seed give the same results, bit for bit."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.arena import RULES, ArenaProcess

TASKS = 40_000
SCALED = ("greedy", "oracle", "eft", "heft")
SPEC = {
    "tasks": TASKS,
    "pace": "max",
    "seed": 11,
    "physics": {"noise": 0.3},
    "workload": {"arrival_rate": 16, "dependencies": {"probability": 0.2}},
}


@pytest.mark.long
def test_results_are_bit_identical_with_one_worker_three_workers_and_processes_killed(
    shared_arena: ArenaProcess, tmp_path: Path
) -> None:
    run = shared_arena.start_run(**SPEC)  # one worker of each rule
    shared_arena.complete(run)
    alone = shared_arena.fingerprints(run)
    assert [row["scheduler"] for row in alone] == list(RULES)
    assert all(row["results"] == row["tasks"] == TASKS for row in alone)

    # Three workers of two policies of each kind: more processes prove no more. The others share
    # one process.
    replicas = dict.fromkeys(SCALED, 3) | {"generator": 2, "simulator": 2, "recorder": 2}
    scale = [option for name, n in replicas.items() for option in ("--scale", f"{name}={n}")]
    scaled = ArenaProcess(tmp_path / "scaled", "--idle", "--pack", *scale)
    try:
        run = scaled.start_run(**SPEC)
        scaled.complete(run)
        assert scaled.fingerprints(run) == alone

        run = scaled.start_run(**SPEC)
        scaled.wait_for(run, lambda status: status["tasks_processed"] > 0)
        for name in SCALED:
            scaled.kill_worker(name)
        for victim in (
            "services.simulator",
            "services.recorder",
            "services.generator",
            "deploy.local.clickhouse",
            "nats-server",
        ):
            time.sleep(0.3)
            scaled.kill(victim)
        scaled.complete(run)
        assert scaled.fingerprints(run) == alone
        # Not one row too many either, even before ClickHouse has merged duplicates away.
        standings = scaled.sql(
            f"SELECT scheduler, max(tasks) AS tasks FROM standings WHERE run = '{run}' "
            "GROUP BY scheduler ORDER BY scheduler"
        )
        assert [row["tasks"] for row in standings] == [TASKS] * len(RULES)
    finally:
        scaled.stop()
