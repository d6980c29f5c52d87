"""The virtual cluster: first come, first served devices, in task order.

A task is ready at its arrival and after all of its parents have finished. Each device serves the
parts it was given strictly in task order: a part waits for its own task to be ready and for the
part before it on that device. In `serial` the CPU part follows the GPU part; in `overlapped` both
start as soon as their device is free. A part of length zero occupies nothing.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shared.domain.physics import Price
from shared.domain.spec import RunSpec
from shared.domain.tasks import DEPENDENCY_WINDOW, Floats, Integers, Tasks


@dataclass(slots=True)
class Cluster:
    """When each device is free, and when the latest tasks finished."""

    cpu_free: list[float]
    gpu_free: list[float]
    next_task: int = 0
    finished: list[float] = field(default_factory=list)  # of the last DEPENDENCY_WINDOW tasks

    @classmethod
    def idle(cls, spec: RunSpec) -> Cluster:
        return cls(cpu_free=[0.0] * spec.cluster.cpus, gpu_free=[0.0] * spec.cluster.gpus)

    def copy(self) -> Cluster:
        return replace(
            self,
            cpu_free=list(self.cpu_free),
            gpu_free=list(self.gpu_free),
            finished=list(self.finished),
        )

    def to_json(self) -> dict[str, Any]:
        finished = np.asarray(self.finished, dtype="<f8").tobytes()
        return {
            "cpu_free": self.cpu_free,
            "gpu_free": self.gpu_free,
            "next_task": self.next_task,
            "finished": base64.b64encode(finished).decode(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Cluster:
        finished = np.frombuffer(base64.b64decode(data["finished"]), dtype="<f8")
        return cls(
            cpu_free=[float(time) for time in data["cpu_free"]],
            gpu_free=[float(time) for time in data["gpu_free"]],
            next_task=int(data["next_task"]),
            finished=finished.tolist(),
        )


@dataclass(frozen=True, slots=True)
class Schedule:
    """When each part started and each task finished. A part of length 0 starts when it could."""

    gpu_start: Floats
    cpu_start: Floats
    finish: Floats


def run(cluster: Cluster, tasks: Tasks, gpu: Integers, price: Price, split: str) -> Schedule:
    """Serve the next tasks; moves the cluster forward. Results do not depend on batch sizes."""
    ready = tasks.arrival_time.tolist()
    gpu_time, cpu_time = price.gpu_time.tolist(), price.cpu_time.tolist()
    devices, cpus = gpu.tolist(), (tasks.task_id % len(cluster.cpu_free)).tolist()
    gpu_start, cpu_start, finish = ready.copy(), ready.copy(), ready.copy()
    gpu_free, cpu_free = cluster.gpu_free, cluster.cpu_free
    overlapped = split == "overlapped"
    known, first = cluster.finished, cluster.next_task

    for i in range(len(ready)):
        now = ready[i]
        if tasks.parents:
            for parent in tasks.parents[i]:
                back = first + i - parent  # how many tasks ago
                ended = finish[i - back] if back <= i else known[i - back]
                if ended > now:
                    now = ended
        gpu_start[i] = end = now
        if gpu_time[i] > 0:
            device = devices[i]
            start = gpu_free[device]
            if start < now:
                start = now
            gpu_start[i] = start
            gpu_free[device] = end = start + gpu_time[i]
        start = now if overlapped else end
        cpu_start[i] = start
        if cpu_time[i] > 0:
            device = cpus[i]
            if start < cpu_free[device]:
                start = cpu_free[device]
            cpu_start[i] = start
            cpu_free[device] = start = start + cpu_time[i]
            if start > end:
                end = start
        finish[i] = end

    cluster.next_task = first + len(ready)
    cluster.finished = (known + finish)[-DEPENDENCY_WINDOW:]
    return Schedule(np.asarray(gpu_start), np.asarray(cpu_start), np.asarray(finish))
