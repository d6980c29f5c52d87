"""The longest chain of dependencies: no schedule ends before it, however many devices there are."""

from __future__ import annotations

from shared.domain.physics import fastest, price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.times import real_seconds


def critical_path(tasks: Tasks, spec: RunSpec) -> float:
    """Seconds from the first arrival to the end of the last task if each started when it has
    arrived and its parents have finished, on the devices that are fastest for it. Parents that are
    not among the tasks are ignored."""
    times = real_seconds(tasks, spec)
    best = fastest(tasks, spec, times=times)
    time = price(tasks, best.gpu_fraction, spec, best.device, best.cpu, times=times).time.tolist()
    arrival: list[float] = tasks.arrival_time.tolist()
    ends: dict[int, float] = {}
    for row, task in enumerate(tasks.task_id.tolist()):
        ready = max((ends.get(parent, 0.0) for parent in tasks.parents[row]), default=0.0)
        ends[task] = max(arrival[row], ready) + time[row]
    return max(ends.values()) - min(arrival)
