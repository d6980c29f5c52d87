"""A real run in a whole arena, whose executor is killed."""

from __future__ import annotations

import itertools

import psutil
import pytest

from services.executor.jobs import RAN_AGAIN
from tests.e2e.arena import ArenaProcess

TASKS = 60
SCHEDULERS = ["eft", "greedy", "bandit"]
SPEC = {
    "tasks": TASKS,
    "seed": 3,
    "schedulers": SCHEDULERS,
    "execution": {"mode": "real", "stretch_tasks": 20},
    "cluster": {
        "devices": [
            {"type": "blas", "accelerator": True, "watts": 20, "real": {"cores": [0]}},
            {"type": "cpu", "watts": 10, "real": {"cores": [0], "library": "plain"}},
        ]
    },
    "physics": {"size_unit": 40},
    "workload": {
        "arrival_rate": 8,
        "divisible": False,
        "mix": {
            "size": {"kind": "uniform", "low": 2, "high": 8},
            "memory": {"values": {"kind": "uniform", "low": 1, "high": 20}},
        },
    },
    "learning": {"pretrain_tasks": 0},
}
ROWS = """
    SELECT scheduler, task_id, time, wait, turnaround, energy, gpu_time, cpu_time, gpu_start,
           cpu_start, finish, status, reason, attempt, transfer_time, arrival_time
    FROM scheduler_results AS r FINAL JOIN tasks AS t FINAL USING (run, task_id)
    WHERE run = '{run}' ORDER BY scheduler, task_id
"""


def device_processes(arena: ArenaProcess) -> list[psutil.Process]:
    return [
        child
        for executor in arena.processes("services.executor")
        for child in executor.children(recursive=True)
    ]


def test_a_killed_executor_loses_and_doubles_nothing(shared_arena: ArenaProcess) -> None:
    run = shared_arena.start_run(**SPEC)
    shared_arena.wait_for(run, lambda status: status["tasks_processed"] > 5, timeout=300)
    devices = device_processes(shared_arena)
    assert devices
    shared_arena.kill("services.executor")
    psutil.wait_procs(devices, timeout=30)
    assert not any(device.is_running() for device in devices)
    shared_arena.complete(run, timeout=600)
    rows = shared_arena.sql(ROWS.format(run=run))
    assert [(row["scheduler"], int(row["task_id"])) for row in rows] == [
        (name, task) for name in sorted(SCHEDULERS) for task in range(TASKS)
    ]
    for row in rows:
        assert row["status"] == "ok"
        assert (row["attempt"], row["reason"]) in [(1, ""), (2, RAN_AGAIN)]
        assert row["time"] == pytest.approx(row["gpu_time"] + row["cpu_time"])
        assert row["turnaround"] == pytest.approx(row["finish"] - row["arrival_time"])
        assert row["wait"] == pytest.approx(max(row["turnaround"] - row["time"], 0), abs=1e-6)
        assert row["energy"] == pytest.approx(20 * row["gpu_time"] + 10 * row["cpu_time"])
        assert row["transfer_time"] <= row["time"]
    for name in SCHEDULERS:  # each device runs one task at a time
        for kind in ("gpu", "cpu"):
            spans = sorted(
                (row[f"{kind}_start"], row[f"{kind}_start"] + row[f"{kind}_time"])
                for row in rows
                if row["scheduler"] == name and row[f"{kind}_time"] > 0
            )
            pairs = itertools.pairwise(spans)
            assert all(end <= begin + 1e-6 for (_, end), (begin, _) in pairs)
