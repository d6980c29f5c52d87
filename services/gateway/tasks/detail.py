"""One task in detail: its times on every device type, and why each result is what it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from services.gateway.tasks.device_names import device_names
from services.gateway.tasks.explanation import Best, explain
from services.gateway.tasks.queries import vs_oracle
from services.gateway.tasks.schemas import ExplainedRow, Task, TaskDetail, TaskPhysics, TypeTime
from shared.domain import times
from shared.domain.physics import fastest, price
from shared.domain.schedulers import ORACLE
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks


def detail_of(run: str, spec: RunSpec, rows: Mapping[str, dict[str, Any]]) -> TaskDetail:
    """From complete result rows with the task's features, by scheduler."""
    task = Task.model_validate(next(iter(rows.values())))
    tasks = as_tasks(task)
    best = _best(tasks, spec)
    oracle = rows.get(ORACLE)
    oracle_time = oracle["time"] if oracle is not None and oracle["status"] == "ok" else None
    expected = times.seconds(tasks, spec)[0]
    return TaskDetail(
        run=run,
        task=task,
        physics=_physics(_type_times(tasks, spec, expected), best),
        results=[
            ExplainedRow(
                **row,
                **device_names(row, spec.platform),
                vs_oracle=vs_oracle(row["time"], row["status"], oracle_time),
                explanation=explain(row, spec, expected, best),
            )
            for row in rows.values()
        ],
    )


def as_tasks(task: Task) -> Tasks:
    names = ("task_id", "size", "compute_intensity", "memory_required", "arrival_time")
    numbers: dict[str, Any] = {name: np.array([getattr(task, name)]) for name in names}
    return Tasks(
        **numbers,
        kind=[task.kind],
        divisible=np.array([task.divisible]),
        width=np.array([task.width]),
        home=np.array([task.home]),
    )


def _best(tasks: Tasks, spec: RunSpec) -> Best:
    """The Oracle's decision."""
    choice = fastest(tasks, spec)
    share = choice.gpu_fraction
    device, cpu = spec.platform.complete(tasks.task_id, share, choice.device, choice.cpu)
    priced = price(tasks, share, spec, device, cpu)
    used = {
        "task_id": tasks.task_id[0],
        "device": int(device[0]),
        "cpu": int(cpu[0]),
        "gpu_time": priced.gpu_time[0],
        "cpu_time": priced.cpu_time[0],
    }
    return Best(
        share=float(share[0]),
        seconds=None if priced.failed[0] else float(priced.time[0]),
        **device_names(used, spec.platform),
    )


def _type_times(tasks: Tasks, spec: RunSpec, expected: Floats) -> list[TypeTime]:
    platform, memory = spec.platform, float(tasks.memory_required[0])
    width = 1 if tasks.width is None else int(tasks.width[0])
    real = times.real_seconds(tasks, spec)[0]
    transfer = memory / platform.bandwidth_mb_s
    computing = expected - transfer
    cpus = [not kind.accelerator for kind in platform.types] & np.isfinite(expected)
    reference = np.min(computing[cpus], initial=np.inf)
    if not cpus.any():
        reference = np.max(computing[np.isfinite(expected)], initial=0.0)
    within = np.isfinite(expected)
    if platform.measured is not None:
        within &= ~platform.measured.outside(tasks.kind, tasks.size)[0]
    return [
        TypeTime(
            type=kind.name,
            accelerator=kind.accelerator,
            devices=kind.count,
            expected_seconds=_finite(expected[number]),
            real_seconds=_finite(real[number]),
            transfer_seconds=float(transfer[number]),
            fits_memory=memory <= kind.memory_mb * width,
            speedup=_finite(reference / computing[number]) if computing[number] > 0 else None,
            measured=None if platform.measured is None else bool(within[number]),
        )
        for number, kind in enumerate(platform.types)
    ]


def _physics(types: list[TypeTime], best: Best) -> TaskPhysics:
    cpu = _fastest([each for each in types if not each.accelerator])
    gpu = _fastest([each for each in types if each.accelerator])
    return TaskPhysics(
        types=types,
        best_share=best.share,
        best_device=best.device_name,
        best_cpu=best.cpu_name,
        best_seconds=best.seconds,
        cpu_seconds=cpu.expected_seconds if cpu else None,
        gpu_seconds=gpu.expected_seconds if gpu else None,
        speedup=gpu.speedup if gpu else None,
        transfer_seconds=gpu.transfer_seconds if gpu else 0.0,
        fits_gpu_memory=gpu is not None and gpu.fits_memory,
    )


def _fastest(types: list[TypeTime]) -> TypeTime | None:
    def seconds(each: TypeTime) -> float:
        return np.inf if each.expected_seconds is None else each.expected_seconds

    return min(types, key=seconds, default=None)


def _finite(value: float) -> float | None:
    return float(value) if 0 < value < np.inf else None
