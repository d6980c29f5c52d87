"""How much work tasks offer to a platform: device-seconds per second, over the devices.

A load of 1 keeps every device busy without a pause; above it queues grow without end. The load of
the complete cluster is the time in which all devices together could do the work (the cluster bound)
over the time in which it arrives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shared.domain.bounds.cluster_bound import cluster_bound
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Integers, Tasks, concatenate, take
from shared.domain.times import seconds

# The cluster bound is computed of a sample of this many tasks, at most.
SAMPLE = 10_000
# The busiest time is the shortest in which this share of the tasks arrives.
MOST_TASKS = 0.9


@dataclass(frozen=True, slots=True)
class TypeLoad:
    """The load by tasks that are fastest on this device type; equally fast types share them."""

    tasks: float
    load: float


@dataclass(frozen=True, slots=True)
class Load:
    cluster: float  # of all devices together
    by_type: dict[str, TypeLoad]
    span_s: float  # from the first arrival to the last
    busiest: float  # the cluster's, in the shortest time in which nine of ten tasks arrive
    busiest_span_s: float
    sampled: bool  # of a sample of the tasks


class OfferedLoad:
    """Adds tasks up, in constant memory."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        types = len(spec.platform.types)
        self._work = np.zeros(types)  # device-seconds
        self._tasks = np.zeros(types)
        self._sample: list[Tasks] = []
        self._stride = 1
        self._first: float | None = None
        self._last = 0.0

    def add(self, tasks: Tasks) -> None:
        if not len(tasks):
            return
        if self._first is None:
            self._first = float(tasks.arrival_time[0])
        self._last = float(tasks.arrival_time[-1])
        share, work = self._fastest(tasks)
        self._work += work @ share
        self._tasks += share.sum(axis=0)
        self._sample.append(self._thinned(tasks))
        while sum(map(len, self._sample)) > SAMPLE:
            self._stride *= 2
            self._sample = [self._thinned(batch) for batch in self._sample]

    def _thinned(self, tasks: Tasks) -> Tasks:
        rows: Integers = np.flatnonzero(tasks.task_id % self._stride == 0)
        return take(tasks, rows)

    def _fastest(self, tasks: Tasks) -> tuple[Floats, Floats]:
        """The share of each task (row) for each type, all of it for the fastest, and the
        device-seconds that it takes there."""
        times = seconds(tasks, self._spec)
        best = times.min(axis=1)
        share = np.where(times == best[:, None], self._spec.platform.counts, 0.0)
        share /= share.sum(axis=1)[:, None]
        return share, best if tasks.width is None else best * tasks.width

    def load(self) -> Load | None:
        """None where all tasks arrive at once."""
        span = self._last - (self._first or 0.0)
        if span <= 0:
            return None
        sample = concatenate([batch for batch in self._sample if len(batch)])
        work = self._fastest(sample)[1]
        # What the sample leaves out is like the sample: as many times its work as there is of all.
        scale = float(self._work.sum() / work.sum())
        busiest = _busiest(sample.arrival_time)
        dense = take(sample, busiest)
        dense_span = float(np.ptp(dense.arrival_time)) or span
        types = self._spec.platform.types
        return Load(
            cluster=cluster_bound(sample, self._spec).value * scale / span,
            by_type={
                each.name: TypeLoad(float(self._tasks[k]), float(self._work[k] / span / each.count))
                for k, each in enumerate(types)
            },
            span_s=span,
            busiest=cluster_bound(dense, self._spec).value * scale / dense_span,
            busiest_span_s=dense_span,
            sampled=self._stride > 1,
        )


def _busiest(arrival: Floats) -> slice:
    """The tasks of the shortest time in which so many arrive."""
    count = max(round(MOST_TASKS * len(arrival)), min(2, len(arrival)))
    spans = arrival[count - 1 :] - arrival[: len(arrival) - count + 1]
    first = int(spans.argmin())
    return slice(first, first + count)
