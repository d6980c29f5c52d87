"""What was queued on every device when a task arrived."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from services.gateway.analysis.device_work import Work, work_queued
from services.gateway.tasks import queries
from services.gateway.tasks.device_names import cpus_of
from services.gateway.tasks.schemas import ArrivalQueue, ArrivalQueues, DeviceQueue, TypeQueue
from shared.domain.hardware.platform import Platform
from shared.domain.spec import RunSpec
from shared.domain.tasks import Bools, Floats, Integers
from shared.store.client import Store

# In a cluster with more devices, only those that matter are listed.
MOST_LISTED = 16


def arrival_queues(store: Store, run: str, spec: RunSpec, task_id: int) -> ArrivalQueues:
    rows = queries.results_of_task(store, run, spec.schedulers, task_id)
    arrival = next(iter(rows.values()))["arrival_time"]
    platform = spec.platform
    return ArrivalQueues(
        run=run,
        task_id=task_id,
        arrival_time=arrival,
        queues=[
            queue_of(row, platform, work_queued(store, run, name, platform, arrival, task_id))
            for name, row in rows.items()
        ],
    )


def queue_of(row: Mapping[str, Any], platform: Platform, work: Work) -> ArrivalQueue:
    """`row` is the task's result, `work` what earlier tasks had left to do when it arrived."""
    arrival, devices = row["arrival_time"], len(platform)
    seconds = queued_seconds(work, arrival, devices)
    tasks = np.bincount(work.device, minlength=devices)
    waiting = np.bincount(work.device[work.begin > arrival], minlength=devices)
    chosen = chosen_devices(row, platform)
    listed = _listed(platform, chosen, seconds)
    return ArrivalQueue(
        scheduler=row["scheduler"],
        started=_started(row),
        finish=row["finish"],
        devices=[
            DeviceQueue(
                device=name,
                type=platform.types[platform.type_of[device]].name,
                chosen=bool(chosen[device]),
                seconds=float(seconds[device]),
                tasks=int(tasks[device]),
                waiting=int(waiting[device]),
            )
            for device, name in zip(listed, platform.device_names(listed), strict=True)
        ],
        types=[
            TypeQueue(
                type=kind.name,
                devices=kind.count,
                seconds=float(seconds[same].sum()),
                tasks=int(tasks[same].sum()),
                waiting=int(waiting[same].sum()),
                shortest=float(seconds[same].min()),
                longest=float(seconds[same].max()),
            )
            for kind, same in zip(platform.types, platform.of_type, strict=True)
        ],
        complete=work.complete,
    )


def queued_seconds(work: Work, at: float, devices: int) -> Floats:
    """What each device still has to do at a moment."""
    remaining = work.end - np.maximum(work.begin, at)
    return np.bincount(work.device, remaining, minlength=devices).astype(np.float64)


def chosen_devices(row: Mapping[str, Any], platform: Platform) -> Bools:
    """The devices that work on the task."""
    chosen = np.zeros(len(platform), bool)
    if row["gpu_time"] > 0:
        chosen[platform.gang(row["device"], row["width"])] = True
    if row["cpu_time"] > 0:
        (cpu,) = cpus_of(np.array([row["cpu"]]), np.array([row["task_id"]]), platform)
        chosen[platform.gang(int(cpu), row["width"])] = True
    return chosen


def _listed(platform: Platform, chosen: Bools, seconds: Floats) -> list[int]:
    if len(platform) <= MOST_LISTED:
        return list(range(len(platform)))
    least = [same[seconds[same].argmin()] for same in platform.of_type]
    used: Integers = np.flatnonzero(chosen)[:MOST_LISTED]
    return sorted({*used.tolist(), *map(int, least)})


def _started(row: Mapping[str, Any]) -> float:
    """A task without any part, one that no device can run, is over when it arrives."""
    parts = (row[f"{kind}_start"] for kind in ("gpu", "cpu") if row[f"{kind}_time"] > 0)
    return float(min(parts, default=row["finish"]))
