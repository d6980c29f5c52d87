"""A scheduler's view of its cluster while it places a batch of tasks. This is earliest finish time:

    for task in cluster.arrivals():
        cluster.place(cluster.finish().argmin())
    return cluster.decisions()

Between two tasks the view moves to the next arrival: parts that have ended by then are known with
their real times, all others as the scheduler expected them (see
`shared.domain.cluster.observation`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from shared.domain.cluster.cluster_tracker import ClusterTracker, expected_parts
from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.hardware.platform import NOWHERE
from shared.domain.physics import moving_seconds, price, whole_seconds
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Floats, Integers, Tasks, take
from shared.domain.times import real_seconds, seconds
from shared.errors import ArenaError

# Up to this many devices, the seconds of all tasks on all devices are computed at once.
FEW_DEVICES = 64


class WrongPlacement(ArenaError):
    """A policy did not place every task of the batch once, in a possible order, on a device."""


class ClusterView:
    """What a policy may know, and how it decides. Arrays have a number for each device."""

    def __init__(
        self,
        cluster: Cluster,
        observation: Observation,
        tasks: Tasks,
        spec: RunSpec,
        *,
        knows_real_times: bool = False,
        prepared: Any = None,
    ) -> None:
        """Moves `cluster`, the real one, and `observation` forward as tasks are placed."""
        self.prepared = prepared  # what the policy's `prepare` returned for this batch
        self._tasks, self._spec, self._platform = tasks, spec, spec.platform
        self._tracker = ClusterTracker(cluster, observation, tasks, spec)
        self._real_times = real_seconds(tasks, spec)
        self._moving = moving_seconds(tasks, spec)
        self._real_whole = self._alone_on_a_device().T.tolist()
        self._type = self._platform.type_of.tolist()
        self._accelerator = [self._platform.types[kind].accelerator for kind in self._type]
        count = len(tasks)
        self._share, self._expected_time = [0.0] * count, [0.0] * count
        self._device, self._cpu = [NOWHERE] * count, [NOWHERE] * count
        self._probability, self._explored = np.ones(count), np.zeros(count, np.bool_)
        self._scores: dict[int, list[float]] = {}
        self._order: Integers | None = None
        self._row, self._placed, self._complete = -1, True, False
        self._predicted: Floats | None = None
        self._expect(self._real_times if knows_real_times else seconds(tasks, spec))

    def _alone_on_a_device(self) -> Floats:
        """Real seconds of each whole task on each device type; infinite: there is more to it."""
        alone = whole_seconds(self._tasks, self._spec, self._real_times)
        if self._moving is not None:
            alone[:] = math.inf
        elif self._tasks.width is not None:
            alone[self._tasks.width > 1] = math.inf
        return alone

    def expect(self, times: Floats) -> None:
        """Use these expected seconds instead of the platform's: of each whole task (row) on each
        device type (column), transfer included."""
        self._predicted = times
        self._expect(times)

    def _expect(self, times: Floats) -> None:
        self._times = times
        self._by_type = whole_seconds(self._tasks, self._spec, times)
        self._whole = self._by_type.T.tolist()  # of each device type, by row
        few = len(self._platform) <= FEW_DEVICES
        self._by_device = self._on_devices(slice(None)) if few else None

    def _on_devices(self, rows: slice) -> Floats:
        by_device = self._by_type[rows][:, self._platform.type_of]
        if self._moving is not None and self._tasks.home is not None:
            away = self._tasks.home[rows, None] != self._platform.node_of[None, :]
            by_device = by_device + np.where(away, self._moving[rows, None], 0.0)
        return by_device

    @property
    def now(self) -> float:
        """When the current task arrives."""
        return self._tracker.now

    @property
    def ready(self) -> float:
        """When the current task is expected to be ready: now, or when its parents have finished."""
        return self._tracker.ready

    def arrivals(self, order: Integers | None = None) -> Iterator[int]:
        """The row of each task when it arrives; it has to be placed before the next one. `order`
        puts tasks that arrive at the same moment into another order than by id."""
        if order is not None:
            self._order = _checked(order, self._tasks)
        arrive = self._tracker.arrive
        for row in range(len(self._tasks)) if order is None else order.tolist():
            self._row, self._placed = row, False
            arrive(row)
            yield row
            if not self._placed:
                raise WrongPlacement(f"task {self._tasks.task_id[row]} was not placed")
        self._tracker.finish_batch()
        self._complete = True

    def seconds(self) -> Floats:
        """Expected time of the whole task on each device; infinite: it cannot run there."""
        if self._by_device is not None:
            row: Floats = self._by_device[self._row]
            return row
        return np.asarray(self._on_devices(slice(self._row, self._row + 1))[0])

    def available(self) -> Floats:
        """When each device is expected to have done what it was given; now, if it is idle."""
        return self._tracker.available()

    def queued(self) -> Floats:
        """Seconds of work that each device is expected to have left."""
        return self.available() - self._tracker.now

    def waiting(self) -> Integers:
        """How many tasks wait for each device, as far as the scheduler can know."""
        return self._tracker.waiting()

    def finish(self) -> Floats:
        """When the whole task is expected to finish on each device."""
        by_device = self._by_device
        seconds = self.seconds() if by_device is None else by_device[self._row]
        return self._tracker.finish(seconds)

    def place(
        self,
        device: int | np.integer,
        share: float | None = None,
        cpu: int = NOWHERE,
        probability: float | None = None,
        explored: bool = False,
        scores: Floats | None = None,
    ) -> None:
        """Give the whole task to a device, or a share of it to an accelerator and the rest to a CPU
        of the same node (left out: one in rotation by task id).

        `probability` is that of this choice, `explored` says that it was made to learn from it;
        `scores` are what was compared, one for each device (lower is better): people can see why.
        """
        row, device = self._row, int(device)  # argmin gives numpy's integers
        if self._placed:
            raise WrongPlacement(f"task {self._tasks.task_id[row]} was placed twice")
        if not 0 <= device < len(self._type):
            raise WrongPlacement(f"device {device}: the cluster has {len(self._type)}, from 0 on")
        if probability is not None or scores is not None:
            self._remember_choice(row, probability, explored, scores)
        if self._accelerator[device]:
            share = 1.0 if share is None else self._checked_share(share, cpu)
            self._share[row], self._device[row], self._cpu[row] = share, device, cpu
        else:
            share, self._cpu[row] = 1.0, device
        kind = self._type[device]
        expected, real = self._whole[kind][row], self._real_whole[kind][row]
        if share == 1.0 and expected + real < math.inf:
            self._expected_time[row] = expected
            self._tracker.place_whole(device, expected, real)
        else:
            self._place_by_physics()
        self._placed = True

    def _checked_share(self, share: float, cpu: int) -> float:
        if not 0 <= share <= 1:
            raise WrongPlacement(f"share {share}: from 0 to 1")
        if cpu != NOWHERE and (not 0 <= cpu < len(self._type) or self._accelerator[cpu]):
            raise WrongPlacement(f"cpu {cpu}: not the number of a CPU of the cluster")
        return float(share)

    def _remember_choice(
        self, row: int, probability: float | None, explored: bool, scores: Floats | None
    ) -> None:
        if probability is not None:
            self._probability[row], self._explored[row] = probability, explored
        if scores is not None and len(scores) <= FEW_DEVICES:
            self._scores[row] = scores.tolist()

    def decisions(self) -> Decisions:
        if not self._complete:
            raise WrongPlacement("the batch is not complete: place every task of `arrivals()`")
        return Decisions(
            gpu_fraction=np.array(self._share),
            device=np.array(self._device),
            cpu=np.array(self._cpu),
            explored=self._explored,
            probability=self._probability,
            expected_time=np.array(self._expected_time),
            order=self._order,
            predicted=self._predicted,
            scores=[self._scores.get(row, []) for row in range(len(self._tasks))]
            if self._scores
            else None,
        )

    def _place_by_physics(self) -> None:
        """A task that is split, moved or wide, or that its device cannot run: the physics says
        which parts it has."""
        one = slice(self._row, self._row + 1)
        task, spec = take(self._tasks, one), self._spec
        share = np.array(self._share[one])
        device, cpu = self._platform.complete(
            task.task_id, share, np.array(self._device[one]), np.array(self._cpu[one])
        )
        expected = price(task, share, spec, device, cpu, times=self._times[one])
        real = price(task, share, spec, device, cpu, times=self._real_times[one])
        self._expected_time[self._row] = float(expected.time[0])
        gpu, rest = expected_parts(task, share, device, cpu, expected.time, real, spec)
        self._tracker.place_parts(
            int(device[0]),
            int(cpu[0]),
            (float(gpu[0]), float(rest[0])),
            (float(real.gpu_time[0]), float(real.cpu_time[0])),
        )


def _checked(order: Integers, tasks: Tasks) -> Integers:
    """Raise unless every row is there once, no task is before an earlier arrival, or a parent."""
    order = np.asarray(order, np.int64)
    if not np.array_equal(np.sort(order), np.arange(len(tasks))):
        raise WrongPlacement("order: not every row of the batch once")
    if (np.diff(tasks.arrival_time[order]) < 0).any():
        raise WrongPlacement("order: only tasks that arrive at the same moment can change places")
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order))
    first = int(tasks.task_id[0])
    for row, parents in enumerate(tasks.parents):
        for parent in parents:
            if parent >= first and turn[parent - first] > turn[row]:
                raise WrongPlacement(f"order: task {first + row} is before its parent {parent}")
    return order
