"""Explanations of a task of size 1000, intensity 0.5 and 1600 MB: 1 s on the CPU, 400 ms of compute
and 100 ms of transfer on a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from services.gateway.tasks.detail import detail_of
from shared.domain.spec import RunSpec
from shared.messages.columns import RESULT


def row(share: float, gpu_time: float, cpu_time: float, **fields: Any) -> dict[str, Any]:
    values = {
        **{column.name: column.default for column in RESULT if column.since > 1},
        "task_id": 3,
        "scheduler": "greedy",
        "gpu_fraction": share,
        "gpu": 2,
        "model_version": 0,
        "explored": False,
        "probability": 1.0,
        "time": gpu_time + cpu_time,
        "wait": 0.0,
        "turnaround": gpu_time + cpu_time,
        "energy": 1.0,
        "cost": 2.0,
        "cost_cloud": 2.0,
        "cost_electricity": 3.0,
        "gpu_time": gpu_time,
        "cpu_time": cpu_time,
        "gpu_start": 0.0,
        "cpu_start": 0.0,
        "finish": 1.0,
        "status": "ok",
        "size": 1000.0,
        "compute_intensity": 0.5,
        "memory_required": 1600.0,
        "arrival_time": 0.0,
        "dependencies": [1],
    }
    return {**values, **fields}


def explained(values: dict[str, Any], **physics: Any) -> str:
    spec = RunSpec.parse({"schedulers": ["greedy"], "physics": physics})
    return detail_of("r", spec, {"greedy": values}).results[0].explanation


def test_the_physics_of_a_task() -> None:
    spec = RunSpec.parse({"schedulers": ["greedy"]})
    detail = detail_of("r", spec, {"greedy": row(1, 0.5, 0), "oracle": row(0.5, 0.2, 0.05)})
    assert detail.physics.model_dump() == pytest.approx(
        {
            "cpu_seconds": 1.0,
            "gpu_seconds": 0.5,
            "speedup": 2.5,
            "transfer_seconds": 0.1,
            "fits_gpu_memory": True,
            "best_share": 1.0,
        }
    )
    assert detail.task.dependencies == [1]
    assert detail.results[0].vs_oracle == pytest.approx(2)
    assert (detail.results[0].actual_time, detail.results[0].execution_cost) == (0.5, 2.0)
    assert (detail.results[0].time, detail.results[0].cost) == (0.5, 2.0)


def test_a_split_task() -> None:
    assert explained(row(0.5, 0.25, 0.5)) == (
        "50 % ran on GPU 2: 200 ms of compute and 50 ms of transfer, then 500 ms on the CPU; "
        "the Oracle's share of 100 % would have taken 500 ms"
    )


def test_the_best_decision() -> None:
    assert explained(row(1, 0.5, 0)) == (
        "all of it ran on GPU 2: 400 ms of compute and 100 ms of transfer; no share is faster"
    )


def test_a_task_that_waited_on_the_cpu() -> None:
    assert explained(row(0, 0, 1, wait=2.5)) == (
        "all of it ran on the CPU: 1 s, after 2.5 s of waiting; "
        "the Oracle's share of 100 % would have taken 500 ms"
    )


def test_overlapped_parts() -> None:
    """Both end together at 2/3: 1/3 s."""
    text = explained(row(0.5, 0.25, 0.5, time=0.5), split="overlapped")
    assert text == (
        "50 % ran on GPU 2: 200 ms of compute and 50 ms of transfer, while the CPU worked on the "
        "rest for 500 ms; the Oracle's share of 66.7 % would have taken 333 ms"
    )


def test_memory_that_does_not_fit() -> None:
    large = {"memory_required": 16000.0}
    assert explained(row(0.75, 0, 1, **large)) == (
        "75 % (12,000 MB) does not fit the 8,000 MB of GPU 2, so all of it ran on the CPU: 1 s; "
        "no share is faster"
    )
    assert explained(row(1, 0, 0, status="failed", **large), memory_policy="fail") == (
        "failed: all of it (16,000 MB) does not fit the 8,000 MB of GPU 2"
    )
    assert explained(row(1, 1.9, 0, **large), memory_policy="page") == (
        "all of it ran on GPU 2: 400 ms of compute and 1.5 s of transfer (what does not fit is "
        "moved twice); the Oracle's share of 0 % would have taken 1 s"
    )


def test_negligible_differences() -> None:
    assert explained(row(0.9999, 0.49995, 0.0001)) == (
        "nearly all of it ran on GPU 2: 400 ms of compute and 100 ms of transfer; "
        "no share is noticeably faster"
    )
