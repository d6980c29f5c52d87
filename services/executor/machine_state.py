"""What a scheduler may know of the machine at this moment, in the form that cluster policies read.

Finished parts have their real times. For all others only the scheduler's own estimates count: a
running part is expected to end at its start plus the estimate, and those behind it follow one after
the other. Their real ends are not known, so they are infinite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.executor.clock import SchedulerClock
from services.executor.device_queue import DeviceQueue
from services.executor.jobs import Job, Part
from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster

UNKNOWN = math.inf


@dataclass(slots=True)
class _Estimates:
    """When parts and tasks are expected to end."""

    observation: Observation
    now: float
    parts: dict[int, float] = field(default_factory=dict)  # by id() of the part
    tasks: dict[int, float] = field(default_factory=dict)

    def add(self, device: int, part: Part, end: float) -> None:
        self.observation.add(device, end, UNKNOWN)
        self.parts[id(part)] = end

    def place(self, part: Part, ready: float) -> None:
        """Place a part that is in no queue yet, as the virtual cluster would."""
        start = self.observation.expected.place(part.device, ready, part.expected)
        self.add(part.device, part, start + part.expected)


def observe(
    queues: Sequence[DeviceQueue],
    unfinished: Mapping[int, Job],
    idle_since: Sequence[float],
    clock: SchedulerClock,
    next_task: int,
    overlapped: bool,
) -> dict[str, Any]:
    """`idle_since`: when each device ended its last part. `unfinished`: jobs by task, in the order
    in which they were started."""
    now = clock.now()
    expected = Cluster(list(idle_since), clock=now, next_task=next_task)
    estimates = _Estimates(Observation(expected), now)
    for number, queue in enumerate(queues):
        end = clock.at(queue.first_since)
        for part in queue.parts:
            end += part.expected
            estimates.add(number, part, end)
            expected.free[number] = end
    for job in unfinished.values():
        _expect(job, estimates, overlapped)
    known = {task: job.last_child for task, job in unfinished.items()}
    expected.finished = {task: (estimates.tasks[task], last) for task, last in known.items()}
    busy = estimates.observation.parts
    real = Cluster(
        [UNKNOWN if number in busy else idle for number, idle in enumerate(idle_since)],
        clock=now,
        next_task=next_task,
        finished={task: (UNKNOWN, last) for task, last in known.items()},
    )
    return {"cluster": real.to_json(), "observation": estimates.observation.to_json()}


def _expect(job: Job, estimates: _Estimates, overlapped: bool) -> None:
    """Add the parts of this job that wait for parents or for its other part, and its expected
    finish."""
    ready = max([estimates.now, *(estimates.tasks.get(task, 0.0) for task in job.waits_for)])
    for part in job.parts:
        if part.measured is None and id(part) not in estimates.parts:
            estimates.place(part, ready)
        if not overlapped and part.measured is None:
            ready = max(ready, estimates.parts[id(part)])
    ends = [estimates.parts[id(part)] for part in job.parts if part.measured is None]
    estimates.tasks[job.task_id] = max([estimates.now, *ends])
