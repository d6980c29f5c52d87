"""The virtual cluster: when each task runs on the devices that it was given.

A task is ready at its arrival and after all of its parents have finished. In task order, each part
is placed into the earliest idle gap of its device in which it can run once it is ready, else behind
the last part: the insertion rule of HEFT (Topcuoglu, Hariri, Wu 2002). So a part that waits for
parents, or for the task's other part, blocks nobody behind it. Without these the rule is first
come, first served.

The clock is the latest arrival so far. What ended by then is past and forgotten: idle gaps are not
used any more, and a task with parents is ready at the clock at the earliest. Where tasks arrive in
order this changes nothing.

In `serial` the CPU's part is ready when the accelerator's ends; in `overlapped` both are ready with
the task. A part of length zero occupies nothing. A task of width w runs on w devices at once.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shared.domain.hardware.platform import Platform
from shared.domain.physics import Price
from shared.domain.tasks import (
    DEPENDENCY_WINDOW,
    Floats,
    Integers,
    Tasks,
    known_last_child,
)

# Idle gaps that a device remembers; of more, the shortest is forgotten. All devices together
# remember no more than fits into a message many times.
MOST_GAPS = 128
MOST_GAPS_OF_ALL = 65_536

Gap = tuple[float, float]  # begin and end


@dataclass(slots=True)
class Cluster:
    """What each device is given already, and when the tasks end that others may wait for."""

    free: list[float]  # when the last part of each device ends
    gaps: dict[int, list[Gap]] = field(default_factory=dict)  # of each device before that, in order
    clock: float = 0.0  # the latest arrival
    next_task: int = 0
    # By unfinished task that may still have children: when it ends, and its last child's id.
    finished: dict[int, tuple[float, int]] = field(default_factory=dict)

    @classmethod
    def idle(cls, devices: int) -> Cluster:
        return cls([0.0] * devices)

    def copy(self) -> Cluster:
        gaps = {device: list(gaps) for device, gaps in self.gaps.items()}
        return Cluster(list(self.free), gaps, self.clock, self.next_task, dict(self.finished))

    def earliest(self, device: int, ready: float, length: float) -> float:
        """When a part of this length can start."""
        for begin, end in self.gaps.get(device, ()):
            start = begin if begin > ready else ready
            if start + length <= end and end > self.clock:
                return start
        free = self.free[device]
        return free if free > ready else ready

    def earliest_together(self, devices: Sequence[int], ready: float, length: float) -> float:
        """When a part of this length can start on all of these devices at once."""
        start = ready
        while True:
            latest = max(self.earliest(device, start, length) for device in devices)
            if latest == start:
                return start
            start = latest

    def place(self, device: int, ready: float, length: float) -> float:
        """Reserve the device for a part; returns when the part starts."""
        gaps = self.gaps.get(device)
        if gaps is not None:
            if gaps[0][1] <= self.clock:
                self._forget_past(device, gaps)
            for at, (begin, end) in enumerate(gaps):
                start = begin if begin > ready else ready
                if start + length <= end:
                    parts = ((begin, start), (start + length, end))
                    gaps[at : at + 1] = [part for part in parts if part[0] < part[1]]
                    self._forget_shortest(device, gaps)
                    return start
        start = self.free[device]
        if start < ready:
            if ready > self.clock:
                gaps = self.gaps.setdefault(device, [])
                gaps.append((start, ready))
                self._forget_shortest(device, gaps)
            start = ready
        self.free[device] = start + length
        return start

    def place_together(self, devices: Sequence[int], ready: float, length: float) -> float:
        """Reserve all of these devices for the same time."""
        start = self.earliest_together(devices, ready, length)
        for device in devices:
            self.place(device, start, length)
        return start

    def _forget_past(self, device: int, gaps: list[Gap]) -> None:
        gaps[:] = [gap for gap in gaps if gap[1] > self.clock]
        if not gaps:
            del self.gaps[device]

    def _forget_shortest(self, device: int, gaps: list[Gap]) -> None:
        if not gaps:
            del self.gaps[device]
        elif len(gaps) > min(MOST_GAPS, max(MOST_GAPS_OF_ALL // len(self.free), 1)):
            gaps.remove(min(gaps, key=lambda gap: gap[1] - gap[0]))

    def advance(self, tasks: Tasks, finish: Floats) -> None:
        """Move behind these tasks: forget what is past, remember whom others may wait for."""
        first, self.next_task = self.next_task, self.next_task + len(tasks)
        self.clock = max(self.clock, float(tasks.arrival_time.max()))
        for device, gaps in list(self.gaps.items()):
            if gaps[0][1] <= self.clock:
                self._forget_past(device, gaps)
        if self.finished:
            self.finished = {
                task: (end, last_child)
                for task, (end, last_child) in self.finished.items()
                if end > self.clock and last_child >= self.next_task
            }
        last_child = known_last_child(tasks)
        rows = np.flatnonzero((finish > self.clock) & (last_child >= self.next_task))
        known = zip(finish[rows].tolist(), last_child[rows].tolist(), strict=True)
        self.finished.update(zip((first + rows).tolist(), known, strict=True))

    def to_json(self) -> dict[str, Any]:
        gaps = [(device, *gap) for device in sorted(self.gaps) for gap in self.gaps[device]]
        ends, last_children = (
            zip(*self.finished.values(), strict=True) if self.finished else ((), ())
        )
        return {
            "free": pack(self.free),
            "gaps": [pack(column) for column in zip(*gaps, strict=True)],
            "clock": self.clock,
            "next_task": self.next_task,
            "finished": [_pack_steps(self.finished), pack(ends), _pack_steps(last_children)],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Cluster:
        if "gpu_free" in data:
            return _from_first_format(data)
        gaps: dict[int, list[Gap]] = {}
        for device, begin, end in zip(*map(unpack, data["gaps"]), strict=True):
            gaps.setdefault(int(device), []).append((begin, end))
        tasks, ends, last_children = data["finished"]
        known = zip(unpack(ends), _unpack_steps(last_children), strict=True)
        finished = dict(zip(_unpack_steps(tasks), known, strict=True))
        next_task = int(data["next_task"])
        return cls(unpack(data["free"]), gaps, float(data["clock"]), next_task, finished)


def pack(numbers: Iterable[float]) -> str:
    return base64.b64encode(np.asarray(numbers, dtype="<f8").tobytes()).decode()


def unpack(text: str) -> list[float]:
    numbers: list[float] = np.frombuffer(base64.b64decode(text), dtype="<f8").tolist()
    return numbers


def _pack_steps(numbers: Iterable[int]) -> str:
    """From each number to the next, which is nearly always the same step: almost no bytes."""
    steps = np.array(list(numbers), dtype="<i8")
    steps[1:] -= steps[:-1].copy()
    return base64.b64encode(zlib.compress(steps.tobytes(), 1)).decode()


def _unpack_steps(text: str) -> list[int]:
    steps = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i8")
    numbers: list[int] = np.cumsum(steps).tolist()
    return numbers


def _from_first_format(data: dict[str, Any]) -> Cluster:
    """The state that versions before 0.2 stored: one node, and the latest tasks' finish."""
    free = [float(time) for time in (*data["gpu_free"], *data["cpu_free"])]
    next_task = int(data["next_task"])
    latest = unpack(data["finished"])
    first = next_task - len(latest)
    finished = {
        task: (finish, task + DEPENDENCY_WINDOW) for task, finish in enumerate(latest, first)
    }
    return Cluster(free, next_task=next_task, finished=finished)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When each part started and each task finished. A part of length 0 starts when it could."""

    gpu_start: Floats
    cpu_start: Floats
    finish: Floats


def run(
    cluster: Cluster,
    tasks: Tasks,
    device: Integers,
    cpu: Integers,
    price: Price,
    split: str,
    platform: Platform,
    order: Integers | None = None,
) -> Schedule:
    """Serve the next tasks; moves the cluster forward. Results do not depend on batch sizes.
    `order`: the row numbers in the order in which tasks are served, instead of by id."""
    overlapped = split == "overlapped"
    both_parts = (price.gpu_time > 0) & (price.cpu_time > 0)
    waits = bool(tasks.parents) or (not overlapped and bool(both_parts.any()))
    if waits or cluster.gaps or tasks.width is not None or order is not None:
        schedule = _insert(cluster, tasks, device, cpu, price, overlapped, platform, order)
    else:
        schedule = _first_come_first_served(cluster, tasks, device, cpu, price, overlapped)
    cluster.advance(tasks, schedule.finish)
    return schedule


def _first_come_first_served(
    cluster: Cluster, tasks: Tasks, device: Integers, cpu: Integers, price: Price, overlapped: bool
) -> Schedule:
    """What the insertion rule comes to without gaps and without parts that wait for others."""
    free = cluster.free
    arrival = tasks.arrival_time.tolist()
    gpu_start, cpu_start, finish = arrival.copy(), arrival.copy(), arrival.copy()
    columns = (price.gpu_time, price.cpu_time, device, cpu)
    for i, (ready, gpu_time, cpu_time, chosen, host) in enumerate(
        zip(arrival, *(column.tolist() for column in columns), strict=True)
    ):
        end = ready
        if gpu_time > 0:
            start = free[chosen]
            if start < ready:
                start = ready
            gpu_start[i] = start
            free[chosen] = end = start + gpu_time
            if not overlapped:
                cpu_start[i] = end
        if cpu_time > 0:
            start = free[host]
            if start < ready:
                start = ready
            cpu_start[i] = start
            free[host] = start = start + cpu_time
            if start > end:
                end = start
        finish[i] = end
    return Schedule(np.array(gpu_start), np.array(cpu_start), np.array(finish))


def _insert(
    cluster: Cluster,
    tasks: Tasks,
    device: Integers,
    cpu: Integers,
    price: Price,
    overlapped: bool,
    platform: Platform,
    order: Integers | None,
) -> Schedule:
    """The insertion rule."""
    free, gaps, clock = cluster.free, cluster.gaps, cluster.clock
    arrival = tasks.arrival_time.tolist()
    gpu_start, cpu_start, finish = arrival.copy(), arrival.copy(), arrival.copy()
    width = None if tasks.width is None else tasks.width.tolist()
    known = KnownEnds(cluster, tasks, finish) if tasks.parents else None
    rows = np.arange(len(tasks)) if order is None else order
    columns = (tasks.arrival_time, price.gpu_time, price.cpu_time, device, cpu)

    def place(chosen: int, ready: float, length: float, i: int) -> float:
        if width is None or width[i] == 1:
            return cluster.place(chosen, ready, length)
        return cluster.place_together(platform.gang(chosen, width[i]), ready, length)

    for i, ready, gpu_time, cpu_time, chosen, host in zip(
        rows.tolist(), *(column[rows].tolist() for column in columns), strict=True
    ):
        if ready > clock:
            cluster.clock = clock = ready
        if known is not None and (parents := tasks.parents[i]):
            ready = known.latest(parents, i, clock)
        gpu_start[i] = end = ready
        if gpu_time > 0:
            start = free[chosen]
            # Most parts go behind the last one and leave no gap of use: a call less.
            if width is not None or chosen in gaps or start < ready > clock:
                start = place(chosen, ready, gpu_time, i)
            else:
                if start < ready:
                    start = ready
                free[chosen] = start + gpu_time
            gpu_start[i] = start
            end = start + gpu_time
        after = cpu_start[i] = ready if overlapped else end
        if cpu_time > 0:
            start = free[host]
            if width is not None or host in gaps or start < after > clock:
                start = place(host, after, cpu_time, i)
            else:
                if start < after:
                    start = after
                free[host] = start + cpu_time
            cpu_start[i] = start
            if start + cpu_time > end:
                end = start + cpu_time
        finish[i] = end
    return Schedule(np.array(gpu_start), np.array(cpu_start), np.array(finish))


class KnownEnds:
    """When the tasks of this batch and of those before end; `finish` is filled as they are placed.

    A parent that should have had its last child before is forgotten, in this batch as in those
    before."""

    def __init__(self, cluster: Cluster, tasks: Tasks, finish: list[float]) -> None:
        self._before, self._first = cluster.finished, cluster.next_task
        self._finish, self._last_child = finish, known_last_child(tasks).tolist()

    def end(self, parent: int, i: int, clock: float) -> float:
        """When a parent of the i-th task ends, or the clock if that is later."""
        row = parent - self._first
        if row < 0:
            end = self._before.get(parent, (clock, 0))[0]
        else:
            end = self._finish[row] if self._last_child[row] >= self._first + i else clock
        return end if end > clock else clock

    def latest(self, parents: Iterable[int], i: int, clock: float) -> float:
        """When the last parent of the i-th task ends, at the clock or later."""
        return max((self.end(parent, i, clock) for parent in parents), default=clock)
