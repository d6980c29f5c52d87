"""Learners in lockstep: the same spec and seed give the same results, bit for bit."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from shared.domain.schedulers import LEARNERS
from tests.e2e.arena import QUICK, ArenaProcess

TASKS, SEGMENT = 1000, 100
SCHEDULERS = sorted({*LEARNERS, "oracle"})
SPEC = {
    "tasks": TASKS,
    "seed": 5,
    "schedulers": SCHEDULERS,
    "physics": {"noise": 0.2},
    "workload": {"arrival_rate": 16},
    "learning": {**QUICK, "sync": "lockstep", "lockstep_tasks": SEGMENT},
}

VERSIONS = """
    SELECT scheduler, intDiv(task_id, {segment}) AS segment, groupUniqArray(model_version) AS used
    FROM scheduler_results FINAL WHERE run = '{run}' AND scheduler != 'oracle'
    GROUP BY scheduler, segment ORDER BY scheduler, segment
"""


def test_each_segment_is_decided_by_its_version(shared_arena: ArenaProcess) -> None:
    run = shared_arena.start_run(**SPEC, pace="max")
    shared_arena.complete(run)
    rows = shared_arena.sql(VERSIONS.format(run=run, segment=SEGMENT))
    assert len(rows) == len(LEARNERS) * TASKS // SEGMENT
    assert all(row["used"] == [max(int(row["segment"]), 1)] for row in rows)


@pytest.mark.long
def test_results_do_not_depend_on_pace_or_on_processes_that_die(
    shared_arena: ArenaProcess,
) -> None:
    fast = shared_arena.start_run(**SPEC, pace="max")
    shared_arena.complete(fast)
    expected = shared_arena.fingerprints(fast)
    assert [row["tasks"] for row in expected] == [TASKS] * len(SCHEDULERS)

    slow = shared_arena.start_run(**SPEC, pace=150)
    shared_arena.wait_for(slow, lambda status: status["tasks_processed"] > 3 * SEGMENT)
    for victim in ("services.trainer", "services.simulator", "deploy.local.clickhouse"):
        shared_arena.kill(victim)
        time.sleep(0.5)
    for name in LEARNERS:
        shared_arena.kill_worker(name)
    shared_arena.complete(slow)
    assert shared_arena.fingerprints(slow) == expected


@pytest.mark.long
def test_results_do_not_depend_on_the_number_of_workers(
    shared_arena: ArenaProcess, tmp_path: Path
) -> None:
    alone = shared_arena.start_run(**SPEC, pace="max")
    shared_arena.complete(alone)
    scale = [word for name in LEARNERS for word in ("--scale", f"{name}=3")]
    scaled = ArenaProcess(tmp_path / "scaled", "--idle", "--scale", "simulator=2", *scale)
    try:
        for pace in ("max", 300):
            run = scaled.start_run(**SPEC, pace=pace)
            scaled.wait_for(run, lambda status: status["tasks_processed"] > 2 * SEGMENT)
            scaled.kill("services.trainer")
            for name in LEARNERS:
                scaled.kill_worker(name)
            scaled.complete(run)
            assert scaled.fingerprints(run) == shared_arena.fingerprints(alone)
    finally:
        scaled.stop()
