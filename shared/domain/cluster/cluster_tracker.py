"""Moves the virtual cluster and a scheduler's observation of it forward, task by task.

The worker of a cluster policy does so while the policy decides, the simulator with the decisions
that it gets: both arrive at the same observation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster, KnownEnds
from shared.domain.physics import Price, price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Integers, Tasks
from shared.domain.times import seconds

# When a wide task can start on all of its devices is found in this many rounds at the most: delays
# are rounded, so that the last digit might change for ever.
MOST_ROUNDS = 256


class ClusterTracker:
    """`now`: when the current task is decided; `ready`: when its parents should be done."""

    def __init__(
        self, cluster: Cluster, observation: Observation, tasks: Tasks, spec: RunSpec
    ) -> None:
        """Both are moved forward as tasks are placed: pass copies to keep them."""
        tasks = tasks.delayed(spec.physics.decision_s)
        self.tasks, self.spec, self.platform = tasks, spec, spec.platform
        self._real, self._observation, self._assumed = cluster, observation, observation.expected
        self._overlapped = spec.physics.split == "overlapped"
        self._arrival, self._parents = tasks.arrival_time.tolist(), tasks.parents
        self._width = None if tasks.width is None else tasks.width.tolist()
        self._expected_finish, self._real_finish = list(self._arrival), list(self._arrival)
        self._expected_ends = KnownEnds(self._assumed, tasks, self._expected_finish)
        self._real_ends = KnownEnds(cluster, tasks, self._real_finish)
        # When each device has done what it was given, and how much of that is behind its first
        # part, which may be late.
        self._end, self._behind_first = np.array(self._assumed.free), np.zeros(len(self.platform))
        self.now = self.ready = self._real_ready = cluster.clock
        self._now = np.array(self.now)  # numpy computes faster with it than with a Python number
        self._row = -1
        # While every part ends when expected, no ends have to be watched.
        self._watching = False
        self._ends: list[tuple[float, int]] = []  # of the first part of each device that is busy
        if any(observation.late.values()) or any(
            part[0] != part[1] for parts in observation.parts.values() for part in parts
        ):
            self._watch_ends()

    def arrive(self, row: int) -> None:
        """Move to the arrival of the next task."""
        self._row = row
        self.ready = self._real_ready = arrival = self._arrival[row]
        if arrival > self.now:
            self.now = self._now[()] = self._real.clock = self._assumed.clock = arrival
            ends = self._ends
            while ends and ends[0][0] <= arrival:
                device = heappop(ends)[1]
                next_end = self._observation.finish_parts(device, arrival)
                if next_end is not None:
                    heappush(ends, (next_end, device))
                self._refresh(device)
        if self._parents and (parents := self._parents[row]):
            self._await_parents(parents)

    def available(self) -> Floats:
        """When each device is expected to have done what it was given; now, if it is idle."""
        earliest = self._behind_first + self._now if self._watching else self._now
        available: Floats = np.maximum(self._end, earliest)
        return available

    def finish(self, seconds: Floats) -> Floats:
        """When the current task would finish on each device that it took these seconds on."""
        earliest = self._behind_first + self._now if self._watching else self._now
        finish: Floats = np.maximum(self._end, earliest)
        if self._width is not None and self._width[self._row] > 1:
            finish = self._together(finish, self._width[self._row])
        if self.ready > self.now:
            np.maximum(finish, self.ready, out=finish)
        finish += seconds
        if self._assumed.gaps:
            for device in list(self._assumed.gaps):
                if math.isfinite(length := float(seconds[device])):
                    finish[device] = self._earliest(device, self.ready, length) + length
        return finish

    def place_parts(
        self,
        device: int,
        cpu: int,
        expected: tuple[float, float],
        real: tuple[float, float],
    ) -> None:
        """Give the current task's two parts to a device and a CPU: their expected and real
        seconds."""
        row, ready, real_ready = self._row, self.ready, self._real_ready
        end, real_end = ready, real_ready
        if real[0] > 0:
            end, real_end = self._place_wide(device, ready, real_ready, expected[0], real[0])
        if real[1] > 0:
            if not self._overlapped:
                ready, real_ready = end, real_end
            cpu_end, cpu_real_end = self._place_wide(cpu, ready, real_ready, expected[1], real[1])
            end, real_end = max(end, cpu_end), max(real_end, cpu_real_end)
        self._expected_finish[row], self._real_finish[row] = end, real_end

    def place_whole(self, device: int, expected: float, real: float) -> None:
        """Give the current task, of width 1, to one device."""
        row, ready, now = self._row, self.ready, self.now
        if expected != real and not self._watching:
            self._watch_ends()
        waits = ready > now or self._real_ready > now
        if waits or device in self._assumed.gaps or device in self._real.gaps:
            ends = self._place(device, ready, self._real_ready, expected, real)
            self._expected_finish[row], self._real_finish[row] = ends
            return
        # Without gaps and waiting for parents this is `_place`, in a third of the time.
        observation, free, real_free = self._observation, self._assumed.free, self._real.free
        end, real_end, late, delay = free[device], real_free[device], 0.0, 0.0
        parts = observation.parts.get(device)
        if parts is not None and parts[0][1] <= now:
            observation.finish_parts(device, now)
            parts = observation.parts.get(device)
        if parts is None:
            end = (end if end > ready else ready) + expected
            real_end = (real_end if real_end > ready else ready) + real
            observation.parts[device] = [(end, real_end, 1)]
            if self._watching:
                heappush(self._ends, (real_end, device))
        else:
            end, real_end = end + expected, real_end + real
            parts.append((end, real_end, 1))
            if len(parts) > observation.most_parts:
                observation.shorten(parts)
            if self._watching:
                late, first = observation.late.get(device, 0.0), parts[0][0]
                delay = late if late > now - first else now - first
                self._behind_first[device] = end - first
        free[device], real_free[device], self._end[device] = end, real_end, end + late
        self._expected_finish[row], self._real_finish[row] = end + delay, real_end

    def waiting(self) -> Integers:
        """How many tasks wait for each device, as far as is known."""
        self._finish_parts()
        counts = np.zeros(len(self.platform), np.int64)
        for device in self._observation.parts:
            counts[device] = self._observation.waiting(device)
        return counts

    def finish_batch(self) -> None:
        """Move both behind this batch."""
        self._finish_parts()
        self._assumed.advance(self.tasks, np.array(self._expected_finish))
        self._real.advance(self.tasks, np.array(self._real_finish))

    def _watch_ends(self) -> None:
        """From now on parts may end at other times than expected."""
        self._watching = True
        self._finish_parts()
        self._ends = [(parts[0][1], device) for device, parts in self._observation.parts.items()]
        heapify(self._ends)
        self._behind_first[:] = 0.0  # of those that have become idle unwatched
        for device in self._observation.parts:
            self._refresh(device)

    def _finish_parts(self) -> None:
        """Take note of all parts that have ended by now."""
        for device in list(self._observation.parts):
            self._observation.finish_parts(device, self.now)

    def _await_parents(self, parents: Sequence[int]) -> None:
        row, now = self._row, self.now
        self.ready = self._real_ready = now
        for parent in parents:
            real_end = self._real_ends.end(parent, row, now)
            if real_end > now:
                self._real_ready = max(self._real_ready, real_end)
                self.ready = max(self.ready, self._expected_ends.end(parent, row, now))

    def _place_wide(
        self, device: int, ready: float, real_ready: float, length: float, real_length: float
    ) -> tuple[float, float]:
        """Reserve as many devices as the task is wide."""
        if self._width is None or self._width[self._row] == 1:
            return self._place(device, ready, real_ready, length, real_length)
        gang = self.platform.gang(device, self._width[self._row])
        start = self._earliest_together(gang, ready, length)
        real_start = self._real.earliest_together(gang, real_ready, real_length)
        ends = [self._place(each, start, real_start, length, real_length) for each in gang]
        return max(end for end, _ in ends), ends[0][1]

    def _place(
        self, device: int, ready: float, real_ready: float, length: float, real_length: float
    ) -> tuple[float, float]:
        """Reserve one device; returns when the part is expected to end and when it really ends."""
        observation = self._observation
        if length != real_length and not self._watching:
            self._watch_ends()
        observation.finish_parts(device, self.now)
        delay = observation.delay(device, self.now)
        end = self._assumed.place(device, ready - delay, length) + length
        real_end = self._real.place(device, real_ready, real_length) + real_length
        if observation.add(device, end, real_end) and self._watching:
            heappush(self._ends, (real_end, device))
        self._refresh(device)
        return end + delay, real_end

    def _together(self, available: Floats, width: int) -> Floats:
        """When that many devices, from each one on, are available at once."""
        together = np.full(len(available), np.inf)
        for same in self.platform.of_type:
            if width <= len(same):
                ends = available[np.concatenate([same, same[: width - 1]])]
                windows = np.lib.stride_tricks.sliding_window_view(ends, width)
                together[same] = windows.max(axis=1)
        return together

    def _earliest(self, device: int, ready: float, length: float) -> float:
        self._observation.finish_parts(device, self.now)
        delay = self._observation.delay(device, self.now)
        return self._assumed.earliest(device, ready - delay, length) + delay

    def _earliest_together(self, gang: Sequence[int], ready: float, length: float) -> float:
        start = ready
        for _ in range(MOST_ROUNDS):
            latest = max(self._earliest(each, start, length) for each in gang)
            if latest <= start:
                break
            start = latest
        return start

    def _refresh(self, device: int) -> None:
        """The device's numbers after its queue has changed."""
        free, parts = self._assumed.free[device], self._observation.parts.get(device)
        self._end[device] = free + self._observation.late.get(device, 0.0)
        self._behind_first[device] = 0.0 if parts is None else free - parts[0][0]


def expected_parts(
    tasks: Tasks,
    share: Floats,
    device: Integers,
    cpu: Integers,
    expected_time: Floats,
    real: Price,
    spec: RunSpec,
) -> tuple[Floats, Floats]:
    """Expected seconds of both parts, of a scheduler that expects this execution time: a part that
    is alone takes all of it, two parts are in the proportion of the platform's expected times."""
    on_gpu, on_cpu = real.gpu_time > 0, real.cpu_time > 0
    gpu, rest = np.where(on_gpu, expected_time, 0.0), np.where(on_cpu, expected_time, 0.0)
    split = on_gpu & on_cpu
    if split.any():
        usual = price(tasks, share, spec, device, cpu, times=seconds(tasks, spec))
        factor = np.divide(expected_time, usual.time, out=np.ones(len(tasks)), where=split)
        gpu = np.where(split, usual.gpu_time * factor, gpu)
        rest = np.where(split, usual.cpu_time * factor, rest)
    return gpu, rest


def follow(
    cluster: Cluster,
    observation: Observation,
    tasks: Tasks,
    share: Floats,
    device: Integers,
    cpu: Integers,
    expected_time: Floats,
    real: Price,
    spec: RunSpec,
    order: Integers | None = None,
) -> None:
    """Moves both as the scheduler did that made these decisions."""
    tracker = ClusterTracker(cluster, observation, tasks, spec)
    gpu, rest = expected_parts(tasks, share, device, cpu, expected_time, real, spec)
    rows = np.arange(len(tasks)) if order is None else order
    columns = (rows, device, cpu, gpu, rest, real.gpu_time, real.cpu_time)
    lists = [rows.tolist(), *(column[rows].tolist() for column in columns[1:])]
    wide = tasks.width is not None
    for row, chosen, host, on_gpu, on_cpu, real_gpu, real_cpu in zip(*lists, strict=True):
        tracker.arrive(row)
        if wide or (real_gpu > 0) == (real_cpu > 0):
            tracker.place_parts(chosen, host, (on_gpu, on_cpu), (real_gpu, real_cpu))
        elif real_gpu > 0:
            tracker.place_whole(chosen, on_gpu, real_gpu)
        else:
            tracker.place_whole(host, on_cpu, real_cpu)
    tracker.finish_batch()
