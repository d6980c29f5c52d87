"""One task looked into: its physics, and for every scheduler why it cost what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from services.gateway.rows import ROW, Row, vs_oracle
from services.gateway.shapes import example
from shared.physics import cpu_seconds, fastest_share, gpu_seconds, price
from shared.spec import RunSpec
from shared.tasks import Tasks


class TaskFacts(BaseModel):
    task_id: int
    size: float
    compute_intensity: float
    memory_required: float
    arrival_time: float
    dependencies: list[int]


class TaskPhysics(BaseModel):
    """What the task takes when a device runs all of it."""

    cpu_seconds: float
    gpu_seconds: float = Field(description="transfer included, as if it fitted the memory")
    speedup: float = Field(description="of the computing alone")
    transfer_seconds: float
    fits_gpu_memory: bool
    best_share: float = Field(description="the Oracle's")


class ExplainedRow(Row):
    gpu_time: float
    cpu_time: float
    gpu_start: float
    cpu_start: float
    finish: float
    cost_cloud: float
    cost_electricity: float
    explanation: str = Field(
        examples=[
            "72 % ran on GPU 2: 0.31 s of compute and 0.04 s of transfer, then 0.2 s on the CPU; "
            "the Oracle's share of 1 would have taken 0.33 s"
        ]
    )


class TaskDetail(BaseModel):
    model_config = example(
        run="1116-081502-6a1f",
        task={
            "task_id": 8240,
            "size": 960.0,
            "compute_intensity": 0.75,
            "memory_required": 81.0,
            "arrival_time": 2060.2,
            "dependencies": [],
        },
        physics={
            "cpu_seconds": 0.752,
            "gpu_seconds": 0.237,
            "speedup": 3.25,
            "transfer_seconds": 0.005,
            "fits_gpu_memory": True,
            "best_share": 1.0,
        },
        results=[
            {
                **ROW,
                "gpu_time": 0.177,
                "cpu_time": 0.188,
                "gpu_start": 2060.2,
                "cpu_start": 2060.377,
                "finish": 2060.565,
                "cost_cloud": 2.15e-5,
                "cost_electricity": 6.0e-7,
                "explanation": "75 % ran on GPU 0: 174 ms of compute and 3.8 ms of transfer, "
                "then 188 ms on the CPU; the Oracle's share of 100 % would have taken 237 ms",
            }
        ],
    )

    run: str
    task: TaskFacts
    physics: TaskPhysics
    results: list[ExplainedRow]


@dataclass(frozen=True, slots=True)
class Best:
    share: float
    time: float


# A share, or a share of the time, that nobody would notice.
UNNOTICED = 0.001

RENAMED = {
    "scheduler": "scheduler_name",
    "time": "actual_time",
    "energy": "energy_consumption",
    "cost": "execution_cost",
}


def detail_of(run: str, spec: RunSpec, rows: Mapping[str, dict[str, Any]]) -> TaskDetail:
    """From whole rows of results with the task's features, by scheduler."""
    facts = TaskFacts.model_validate(next(iter(rows.values())))
    tasks = _alone(facts)
    share = fastest_share(tasks, spec)
    best = Best(float(share[0]), float(price(tasks, share, spec).time[0]))
    on_cpu = float(cpu_seconds(tasks, spec)[0])
    on_gpu = float(gpu_seconds(tasks, spec)[0])
    oracle = rows.get("oracle")
    return TaskDetail(
        run=run,
        task=facts,
        physics=TaskPhysics(
            cpu_seconds=on_cpu,
            gpu_seconds=on_gpu,
            speedup=1 + spec.physics.speedup_slope * facts.compute_intensity,
            transfer_seconds=facts.memory_required / spec.physics.bandwidth_mb_s,
            fits_gpu_memory=facts.memory_required <= spec.cluster.gpu_memory_mb,
            best_share=best.share,
        ),
        results=[_explained(row, oracle, spec, best) for row in rows.values()],
    )


def _alone(facts: TaskFacts) -> Tasks:
    return Tasks(
        task_id=np.array([facts.task_id]),
        size=np.array([facts.size]),
        compute_intensity=np.array([facts.compute_intensity]),
        memory_required=np.array([facts.memory_required]),
        arrival_time=np.array([facts.arrival_time]),
    )


def _explained(
    row: dict[str, Any], oracle: dict[str, Any] | None, spec: RunSpec, best: Best
) -> ExplainedRow:
    named = {RENAMED.get(key, key): value for key, value in row.items()}
    best_time = oracle["time"] if oracle is not None and oracle["status"] == "ok" else None
    named["vs_oracle"] = vs_oracle(row["time"], row["status"], best_time)
    return ExplainedRow(**named, explanation=explain(row, spec, best))


def explain(row: Mapping[str, Any], spec: RunSpec, best: Best) -> str:
    """Why a result is what it is, in one sentence."""
    said = _where(row, spec)
    if row["status"] == "failed":
        return said
    if row["wait"] > 1e-9:
        said += f", after {seconds(row['wait'])} of waiting"
    if row["time"] <= best.time * (1 + 1e-9):
        return f"{said}; no share is faster"
    if row["time"] <= best.time * (1 + UNNOTICED):
        return f"{said}; no share is noticeably faster"
    share = f"the Oracle's share of {best.share * 100:.3g} %"
    return f"{said}; {share} would have taken {seconds(best.time)}"


def _where(row: Mapping[str, Any], spec: RunSpec) -> str:
    share, memory = row["gpu_fraction"], row["memory_required"]
    capacity, device = spec.cluster.gpu_memory_mb, f"GPU {row['gpu']}"
    part = f"{share * 100:.3g} %"
    if share > 1 - UNNOTICED:
        part = "all of it" if share == 1 else "nearly all of it"
    overflow = max(share * memory - capacity, 0.0)
    too_big = f"{part} ({share * memory:,.0f} MB) does not fit the {capacity:,.0f} MB of {device}"
    if row["status"] == "failed":
        return f"failed: {too_big}"
    on_cpu = seconds(row["cpu_time"])
    if share == 0:
        return f"all of it ran on the CPU: {on_cpu}"
    if overflow and spec.physics.memory_policy == "cpu":
        return f"{too_big}, so all of it ran on the CPU: {on_cpu}"
    transfer = (share * memory + overflow) / spec.physics.bandwidth_mb_s
    compute = max(row["gpu_time"] - transfer, 0.0)
    paged = " (what does not fit is moved twice)" if overflow else ""
    said = f"{part} ran on {device}: {seconds(compute)} of compute and "
    said += f"{seconds(transfer)} of transfer{paged}"
    if row["cpu_time"] <= UNNOTICED * row["gpu_time"]:
        return said
    return said + (
        f", then {on_cpu} on the CPU"
        if spec.physics.split == "serial"
        else f", while the CPU worked on the rest for {on_cpu}"
    )


def seconds(value: float) -> str:
    """
    >>> seconds(12.04), seconds(0.3149), seconds(0.0000021)
    ('12 s', '315 ms', '2.1 µs')
    """
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"
