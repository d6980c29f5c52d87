"""What every stored result must satisfy, as equations over whole columns.

The checker does not simulate: it looks whether each stored number follows from the numbers before
it, exactly. Carried from one chunk of tasks to the next are only the ends of the last part on each
device, the latest finish times and the running totals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.chaos.clickhouse import Columns

Spec = dict[str, Any]  # as `runs` has it: complete, so no default is needed here

SUMMED = ("time", "wait", "turnaround", "energy", "cost", "cost_cloud", "cost_electricity")
OK, FAILED = 0, 1  # statuses, as the checker's queries number them
PARENTS_WITHIN = 256  # a task's parents are among so many before it


def priced(tasks: Columns, results: Columns, spec: Spec) -> Columns:
    """What the physics gives for the decisions that were taken: the published formulas.

    They are written out here once more, to be another witness than the simulator's. Sums and
    products are in the order of the formulas, since another one would be rounded otherwise.
    """
    physics = spec["physics"]
    share, memory = results["gpu_fraction"], tasks["memory_required"]
    intensity = tasks["compute_intensity"]
    bandwidth = physics["bandwidth_mb_s"]
    work = _power(tasks["size"] / physics["size_unit"], physics["size_exponent"])
    base = work / (intensity + physics["intensity_offset"])
    speedup = 1.0 + physics["speedup_slope"] * intensity
    overflow = share * memory - spec["cluster"]["gpu_memory_mb"]
    too_big = overflow > 0
    policy = physics["memory_policy"]
    if policy == "cpu":
        share = np.where(too_big, 0.0, share)
    gpu = share * (base / speedup + memory / bandwidth)
    cpu = (1.0 - share) * base
    if policy == "page":
        gpu = np.where(too_big, gpu + overflow / bandwidth, gpu)
    failed = too_big & (policy == "fail")
    gpu, cpu = np.where(failed, 0.0, gpu), np.where(failed, 0.0, cpu)
    energy = physics["gpu_watts"] * gpu + physics["cpu_watts"] * cpu
    costs = {
        "cloud": physics["gpu_dollars_per_s"] * gpu + physics["cpu_dollars_per_s"] * cpu,
        "electricity": energy / 3.6e6 * physics["dollars_per_kwh"],
    }
    return {
        "gpu_time": gpu,
        "cpu_time": cpu,
        "time": gpu + cpu if physics["split"] == "serial" else np.maximum(gpu, cpu),
        "energy": energy,
        "cost": costs[physics["cost_model"]],
        "cost_cloud": costs["cloud"],
        "cost_electricity": costs["electricity"],
        "status": np.where(failed, FAILED, OK).astype(np.uint8),
    }


def _power(base: Any, exponent: float) -> Any:
    """The exponent 1.5 by square root: other exponents differ in bits between machines."""
    if exponent != 1.5:
        raise ValueError(f"the checker knows the exponent 1.5 alone, not {exponent}")
    return base * np.sqrt(base)


@dataclass(slots=True)
class Course:
    """What one scheduler's run carries from chunk to chunk."""

    spec: Spec
    gpu_free: list[float] = field(init=False)
    cpu_free: list[float] = field(init=False)
    finished: Any = field(default_factory=lambda: np.zeros(0))  # of the tasks just before
    totals: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.gpu_free = [0.0] * self.spec["cluster"]["gpus"]
        self.cpu_free = [0.0] * self.spec["cluster"]["cpus"]

    def scheduled(self, tasks: Columns, results: Columns) -> Columns:
        """When parts must have started and tasks finished, given the stored results before."""
        ready = self._ready(tasks, results["finish"])
        on_gpu, on_cpu = results["gpu_time"] > 0, results["cpu_time"] > 0
        cpu = tasks["task_id"] % len(self.cpu_free)
        gpu_start = self._served(self.gpu_free, results, "gpu", results["gpu"], ready, on_gpu)
        gpu_end = np.where(on_gpu, gpu_start + results["gpu_time"], ready)
        after = ready if self.spec["physics"]["split"] == "overlapped" else gpu_end
        cpu_start = self._served(self.cpu_free, results, "cpu", cpu, after, on_cpu)
        cpu_end = np.where(on_cpu, cpu_start + results["cpu_time"], gpu_end)
        finish = np.maximum(gpu_end, cpu_end)
        turnaround = finish - tasks["arrival_time"]
        self.finished = np.concatenate([self.finished, results["finish"]])[-PARENTS_WITHIN:]
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
