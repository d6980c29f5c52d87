"""One task in detail: its physics, and why each scheduler's result is what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from services.gateway.tasks.queries import vs_oracle
from services.gateway.tasks.schemas import ExplainedRow, Task, TaskDetail, TaskPhysics
from shared.domain.physics import cpu_seconds, fastest_share, gpu_seconds, price
from shared.domain.schedulers import ORACLE
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks


@dataclass(frozen=True, slots=True)
class Best:
    share: float
    time: float


# A difference of share or time that is too small to mention.
NEGLIGIBLE = 0.001


def detail_of(run: str, spec: RunSpec, rows: Mapping[str, dict[str, Any]]) -> TaskDetail:
    """From complete result rows with the task's features, by scheduler."""
    task = Task.model_validate(next(iter(rows.values())))
    names = ("task_id", "size", "compute_intensity", "memory_required", "arrival_time")
    columns: dict[str, Any] = {name: np.array([getattr(task, name)]) for name in names}
    tasks = Tasks(**columns)
    share = fastest_share(tasks, spec)
    best = Best(float(share[0]), float(price(tasks, share, spec).time[0]))
    oracle = rows.get(ORACLE)
    oracle_time = oracle["time"] if oracle is not None and oracle["status"] == "ok" else None
    return TaskDetail(
        run=run,
        task=task,
        physics=TaskPhysics(
            cpu_seconds=float(cpu_seconds(tasks, spec)[0]),
            gpu_seconds=float(gpu_seconds(tasks, spec)[0]),
            speedup=1 + spec.physics.speedup_slope * task.compute_intensity,
            transfer_seconds=task.memory_required / spec.physics.bandwidth_mb_s,
            fits_gpu_memory=task.memory_required <= spec.cluster.gpu_memory_mb,
            best_share=best.share,
        ),
        results=[
            ExplainedRow(
                **row,
                vs_oracle=vs_oracle(row["time"], row["status"], oracle_time),
                explanation=explain(row, spec, best),
            )
            for row in rows.values()
        ],
    )


def explain(row: Mapping[str, Any], spec: RunSpec, best: Best) -> str:
    """Why a result is what it is, in one sentence."""
    text = _placement(row, spec)
    if row["status"] == "failed":
        return text
    if row["wait"] > 1e-9:
        text += f", after {seconds(row['wait'])} of waiting"
    if row["time"] <= best.time * (1 + 1e-9):
        return f"{text}; no share is faster"
    if row["time"] <= best.time * (1 + NEGLIGIBLE):
        return f"{text}; no share is noticeably faster"
    share = f"the Oracle's share of {best.share * 100:.3g} %"
    return f"{text}; {share} would have taken {seconds(best.time)}"


def _placement(row: Mapping[str, Any], spec: RunSpec) -> str:
    share, memory = row["gpu_fraction"], row["memory_required"]
    capacity, device = spec.cluster.gpu_memory_mb, f"GPU {row['gpu']}"
    part = f"{share * 100:.3g} %"
    if share > 1 - NEGLIGIBLE:
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
    text = f"{part} ran on {device}: {seconds(compute)} of compute and "
    text += f"{seconds(transfer)} of transfer{paged}"
    if row["cpu_time"] <= NEGLIGIBLE * row["gpu_time"]:
        return text
    return text + (
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
