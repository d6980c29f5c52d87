"""Many virtual clusters at once, each with a run of its own or a copy of one: the t-th task of all
of them is placed in one step.

Bit for bit what `virtual_cluster` and a scheduler's `ClusterView` compute, for runs in which every
task starts behind what its device was given and takes as long as expected; `check_parallel` says
which are not. (`rollouts` is for streams made of resampled tasks, from any state on.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shared.domain.cluster.whole_tasks import groups_of, whole_prices
from shared.domain.hardware.platform import NOWHERE
from shared.domain.learning.agent_observation import AgentObserver, Numbers
from shared.domain.learning.device_queues import DeviceQueues
from shared.domain.learning.objective import penalty
from shared.domain.spec import RunSpec
from shared.domain.tasks import Bools, Floats, Integers, Tasks, concatenate
from shared.domain.workload import Cursor, generate
from shared.errors import ArenaError


class NotParallel(ArenaError):
    """The runs of this spec can only be simulated one by one."""


@dataclass(frozen=True, slots=True)
class ParallelRuns:
    """Columns of (task, run); of (task, run, group) where it depends on the group of devices."""

    arrival: Floats
    task: Numbers  # what an observation has of the task
    types: Numbers
    expected: Floats  # seconds of the whole task; infinite: it cannot run there
    seconds: Floats  # that it takes if it is given to it all the same
    energy: Floats
    cost: Floats
    instead: Integers  # the device that it runs on then; NOWHERE: on the one it was given to
    as_given: Bools  # of each task: no run has another device

    @classmethod
    def of(
        cls, spec: RunSpec, seeds: Sequence[int], count: int, observer: AgentObserver
    ) -> ParallelRuns:
        """The first `count` tasks of the runs of these seeds."""
        tasks = concatenate([_tasks(spec, seed, count) for seed in seeds])
        check_parallel(tasks, spec)
        rows, prices = observer.rows(tasks), whole_prices(tasks, spec)

        def by_task(column: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(
                column.reshape(len(seeds), count, *column.shape[1:]).swapaxes(0, 1)
            )

        def by_group(columns: list[np.ndarray]) -> np.ndarray:
            return by_task(np.stack(columns, axis=1))

        instead = by_group([each.instead for each in prices])
        return cls(
            arrival=by_task(tasks.arrival_time),
            task=by_task(rows.task),
            types=by_task(rows.types),
            expected=by_group([each.expected for each in prices]),
            seconds=by_group([each.price.gpu_time + each.price.cpu_time for each in prices]),
            energy=by_group([each.price.energy for each in prices]),
            cost=by_group([each.price.cost for each in prices]),
            instead=instead,
            as_given=(instead == NOWHERE).all(axis=(1, 2)),
        )

    def __len__(self) -> int:
        return len(self.arrival)

    @property
    def count(self) -> int:
        """How many runs."""
        return int(self.arrival.shape[1])


def _tasks(spec: RunSpec, seed: int, count: int) -> Tasks:
    tasks, _ = generate(spec.model_copy(update={"seed": seed}), Cursor(), count)
    return tasks


def check_parallel(tasks: Tasks, spec: RunSpec) -> None:
    reasons = {
        "tasks wait for others": bool(tasks.parents),
        "tasks take several devices": tasks.width is not None,
        "real times differ from expected ones": spec.physics.noise != 0,
    }
    if obstacles := [reason for reason, holds in reasons.items() if holds]:
        raise NotParallel(f"the runs of this spec are simulated one by one: {', '.join(obstacles)}")


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What the task of each cluster costs."""

    turnaround: Floats
    energy: Floats
    cost: Floats
    penalty: Floats  # what learners minimise


class ParallelClusters:
    """Cluster i has run i % runs.count. All start idle."""

    def __init__(self, spec: RunSpec, observer: AgentObserver, runs: ParallelRuns, count: int):
        if count % runs.count:
            raise ValueError(f"{count} clusters cannot have {runs.count} runs equally often")
        self._spec, self._observer, self._runs = spec, observer, runs
        self._group_of, first = groups_of(spec.platform)
        self._queues = DeviceQueues.idle(count, len(spec.platform))
        self._first_group = np.arange(count) % runs.count * len(first)
        self.position = 0
        self._arrive()

    def __len__(self) -> int:
        return len(self._first_group)

    def _arrive(self) -> None:
        """Move each cluster to the moment at which its current task can start."""
        self._arrival = np.tile(self._runs.arrival[self.position], len(self) // self._runs.count)
        self._queues.now = self._arrival + self._spec.physics.decision_s

    @property
    def complete(self) -> bool:
        """Whether all tasks of the runs have been placed."""
        return self.position == len(self._runs)

    def observe(self, out: Numbers) -> None:
        """Write what each cluster's policy sees of the current task: a row for each. When all are
        placed it is the last one, with the queues after it."""
        runs, position = self._runs, min(self.position, len(self._runs) - 1)
        now = self._queues.now.reshape(-1, runs.count, 1)
        available = self._queues.available().reshape(*now.shape[:2], -1)
        finish = available + runs.expected[position][:, self._group_of]
        self._observer.fill(
            out.reshape(*now.shape[:2], -1, copy=False),
            runs.task[position],
            runs.types[position],
            np.subtract(available, now, out=available),
            np.subtract(finish, now, out=finish),
        )

    def possible(self) -> Bools:
        """The devices (columns) that can run the current task of each cluster (row)."""
        by_device = np.isfinite(self._runs.expected[self.position][:, self._group_of])
        return np.tile(by_device, (len(self) // self._runs.count, 1))

    def place(self, device: Integers) -> Outcomes:
        """Give the task of each cluster to a device, and move on to the next."""
        runs, position = self._runs, self.position
        column = self._first_group + self._group_of[device]
        seconds = runs.seconds[position].reshape(-1)[column]
        if not runs.as_given[position]:
            instead = runs.instead[position].reshape(-1)[column]
            device = np.where(instead == NOWHERE, device, instead)
        turnaround = self._queues.place(device, seconds) - self._arrival
        energy = runs.energy[position].reshape(-1)[column]
        cost = runs.cost[position].reshape(-1)[column]
        self.position += 1
        if not self.complete:
            self._arrive()
        return Outcomes(turnaround, energy, cost, penalty(turnaround, energy, cost, self._spec))
