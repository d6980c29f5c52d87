"""What every stored result must satisfy, as equations over whole columns.

The checker does not simulate: it looks whether each stored number follows from the numbers before
it, exactly. Carried from one chunk of tasks to the next are only the ends of the last part on each
device, the latest finish times and the running totals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shared.physics import price
from shared.spec import RunSpec
from shared.tasks import DEPENDENCY_WINDOW, Tasks
from tests.chaos.clickhouse import Columns

SUMMED = ("time", "wait", "turnaround", "energy", "cost", "cost_cloud", "cost_electricity")
OK, FAILED = 0, 1  # statuses, as the checker's queries number them


def priced(tasks: Columns, results: Columns, spec: RunSpec) -> Columns:
    """What the physics gives for the decisions that were taken."""
    plain = Tasks(
        tasks["task_id"],
        tasks["size"],
        tasks["compute_intensity"],
        tasks["memory_required"],
        tasks["arrival_time"],
    )
    paid = price(plain, results["gpu_fraction"], spec)
    return {
        "gpu_time": paid.gpu_time,
        "cpu_time": paid.cpu_time,
        "time": paid.time,
        "energy": paid.energy,
        "cost": paid.cost,
        "cost_cloud": paid.cost_cloud,
        "cost_electricity": paid.cost_electricity,
        "status": np.where(paid.failed, FAILED, OK).astype(np.uint8),
    }


@dataclass(slots=True)
class Course:
    """One scheduler's way through a run, chunk after chunk."""

    spec: RunSpec
    gpu_free: list[float] = field(init=False)
    cpu_free: list[float] = field(init=False)
    finished: Any = field(default_factory=lambda: np.zeros(0))  # of the tasks just before
    totals: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.gpu_free = [0.0] * self.spec.cluster.gpus
        self.cpu_free = [0.0] * self.spec.cluster.cpus

    def scheduled(self, tasks: Columns, results: Columns) -> Columns:
        """When parts must have started and tasks finished, by what is stored of those before."""
        ready = self._ready(tasks, results["finish"])
        on_gpu, on_cpu = results["gpu_time"] > 0, results["cpu_time"] > 0
        cpu = tasks["task_id"] % len(self.cpu_free)
        gpu_start = self._served(self.gpu_free, results, "gpu", results["gpu"], ready, on_gpu)
        gpu_end = np.where(on_gpu, gpu_start + results["gpu_time"], ready)
        after = ready if self.spec.physics.split == "overlapped" else gpu_end
        cpu_start = self._served(self.cpu_free, results, "cpu", cpu, after, on_cpu)
        cpu_end = np.where(on_cpu, cpu_start + results["cpu_time"], gpu_end)
        finish = np.maximum(gpu_end, cpu_end)
        turnaround = finish - tasks["arrival_time"]
        self.finished = np.concatenate([self.finished, results["finish"]])[-DEPENDENCY_WINDOW:]
        return {
            "gpu_start": gpu_start,
            "cpu_start": cpu_start,
            "finish": finish,
            "turnaround": turnaround,
            "wait": np.maximum(turnaround - results["time"], 0.0),
        }

    def _ready(self, tasks: Columns, finish: Any) -> Any:
        """A task is ready at its arrival and after all of its parents."""
        ready = tasks["arrival_time"].copy()
        parents = tasks["dependencies"]
        which = np.repeat(np.arange(len(ready)), np.diff(parents.offsets.to_numpy()))
        if len(which):
            known = np.concatenate([self.finished, finish])
            first = tasks["task_id"][0] - len(self.finished)
            ended = known[parents.flatten().to_numpy() - first]
            np.maximum.at(ready, which, ended)
        return ready

    @staticmethod
    def _served(
        free: list[float], results: Columns, kind: str, device: Any, ready: Any, used: Any
    ) -> Any:
        """First come, first served: a part waits until it is ready and the one before it done."""
        start = ready.copy()
        for number in range(len(free)):
            mine = np.flatnonzero(used & (device == number))
            if not len(mine):
                continue
            ends = results[f"{kind}_start"][mine] + results[f"{kind}_time"][mine]
            before = np.concatenate([[free[number]], ends[:-1]])
            start[mine] = np.maximum(ready[mine], before)
            free[number] = float(ends[-1])
        return start

    def added_up(self, tasks: Columns, results: Columns) -> Columns:
        """The totals after each task of the chunk, added in task order."""
        cpus = len(self.cpu_free)
        cpu = tasks["task_id"] % cpus
        found: Columns = {f"total_{name}": self._sum(name, results[name]) for name in SUMMED}
        found["failed"] = self._sum("failed", results["status"] == FAILED)
        found["gpu_tasks"] = self._sum("gpu_tasks", results["gpu_time"] > 0)
        found["makespan"] = self._largest("makespan", results["finish"])
        found["clock"] = self._largest("clock", tasks["arrival_time"])
        for kind, device, count in (
            ("cpu", cpu, cpus),
            ("gpu", results["gpu"], len(self.gpu_free)),
        ):
            busy = results[f"{kind}_time"]
            for number in range(count):
                name = f"{kind}_busy[{number}]"
                found[name] = self._sum(name, np.where(device == number, busy, 0.0))
        return found

    def _sum(self, name: str, values: Any) -> Any:
        return self._carry(name, np.add, values)

    def _largest(self, name: str, values: Any) -> Any:
        return self._carry(name, np.maximum, values)

    def _carry(self, name: str, how: np.ufunc, values: Any) -> Any:
        running = how.accumulate(np.concatenate([[self.totals.get(name, 0.0)], values]))[1:]
        self.totals[name] = float(running[-1])
        return running
