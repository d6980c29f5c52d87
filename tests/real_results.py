"""A small real run, and what must hold of its results although the executor was killed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from services.executor.jobs import RAN_AGAIN

TASKS = 60
SCHEDULERS = ("bandit", "eft", "greedy")
SPEC: dict[str, Any] = {
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


def check_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Nothing is lost or doubled, and the measured times add up."""
    assert [(row["scheduler"], int(row["task_id"])) for row in rows] == [
        (name, task) for name in SCHEDULERS for task in range(TASKS)
    ]
    for row in rows:
        assert row["status"] == "ok"
        assert (row["attempt"], row["reason"]) in [(1, ""), (2, RAN_AGAIN)]
        assert row["time"] > 0
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
