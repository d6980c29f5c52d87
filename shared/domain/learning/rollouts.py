"""Roll-outs: many streams of tasks at once on copies of the virtual cluster, to find what a
placement costs later tasks.

Tasks run whole, each device serves them first come, first served. `queued` has a row for each
stream and a column for each device: the seconds of work that it has left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from shared.domain.learning.attention_network import AttentionNetwork, DeviceTypes
from shared.domain.learning.device_queues import DeviceQueues
from shared.domain.tasks import Bools, Floats, Integers

# Rows of roll-outs that are computed together: their arrays stay in the CPU's cache.
ROWS_AT_ONCE = 8192

# The score of each device (column) for the task of each stream (row); the lowest is chosen.
Score = Callable[[Floats, Integers], Floats]


@dataclass(frozen=True, slots=True)
class Sample:
    """Tasks to draw streams from."""

    gap: Floats  # seconds between the arrival of the task before and this one's
    expected: Floats  # seconds of each task (row) on each device type (column); infinite: never
    real: Floats  # the same, as it turned out

    def __len__(self) -> int:
        return len(self.gap)

    @property
    def time_scale(self) -> float:
        """The mean seconds of a task on its best device type."""
        return float(self.expected.min(axis=1).mean())


@dataclass(frozen=True, slots=True)
class Streams:
    """Row t: the t-th task of each stream (column)."""

    gap: Floats
    task: Integers  # its row in the sample

    @classmethod
    def draw(
        cls, sample: Sample, length: int, count: int, spread: float, random: np.random.Generator
    ) -> Streams:
        """Arrivals in their order, starting at a random one, and tasks in random order: this keeps
        bursts, and all streams differ. `spread`: relative deviation of the rate."""
        start = random.integers(0, len(sample), count)
        order = (start + np.arange(length)[:, None]) % len(sample)
        pace = np.maximum(1.0 + spread * random.standard_normal(count), 0.5)
        task = random.integers(0, len(sample), (length, count))
        return cls(sample.gap[order] * pace, task)

    def __len__(self) -> int:
        return len(self.task)


class Rollouts:
    """Streams of one sample on clusters of these device types."""

    def __init__(self, sample: Sample, types: DeviceTypes) -> None:
        self.sample, self.types = sample, types
        self.expected = sample.expected[:, types.type_of]
        self.real = sample.real[:, types.type_of]
        self._base = self.expected * (1.0 + types.score_per_second[types.type_of])
        self._running_price = types.running_price[types.type_of]

    def base(self, queued: Floats, task: Integers) -> Floats:
        """The rule that the network corrects: earliest finish with prices on device time."""
        return queued + self._base[task]

    def earliest_finish(self, queued: Floats, task: Integers) -> Floats:
        return queued + self.expected[task]

    def corrected(self, network: AttentionNetwork) -> Score:
        """The rule of the agent, without its guard."""
        of_task, of_types = network.embed(self.sample.expected, self.types)
        of_devices = of_types[:, self.types.type_of]

        def score(queued: Floats, task: Integers) -> Floats:
            finish = queued + self.expected[task]
            correction = network.correction(of_task[task], of_devices[task], queued, finish)
            return queued + self._base[task] + correction

        return score

    def place(self, queues: DeviceQueues, task: Integers, device: Integers) -> Floats:
        """Give each stream's task to a device; returns its cost: turnaround, and execution at the
        type's price."""
        seconds = self.real[task, device]
        turnaround = queues.place(device, seconds) - queues.now
        return np.asarray(turnaround + self._running_price[device] * seconds)

    def run(
        self,
        queues: DeviceQueues,
        following: Iterable[tuple[Floats, Integers]],
        score: Score,
        discount: float = 1.0,
    ) -> Floats:
        """The cost of the tasks of each stream, those of later ones discounted; moves `queues`.
        `following`: the next task of all streams, and its gap, again and again."""
        total, weight = np.zeros(len(queues.now)), 1.0
        for gap, task in following:
            queues.now += gap
            device = score(queues.queued(), task).argmin(axis=1)
            total += weight * self.place(queues, task, device)
            weight *= discount
        return total

    def mean_cost(self, streams: Streams, score: Score) -> Floats:
        """Per task, of each stream, from an idle cluster on."""
        queues = DeviceQueues.idle(streams.task.shape[1], len(self.types.type_of))
        return np.asarray(
            self.run(queues, zip(streams.gap, streams.task, strict=True), score) / len(streams)
        )

    def states(
        self,
        streams: Streams,
        score: Score,
        times: Integers,
        explore: float,
        random: np.random.Generator,
    ) -> Floats:
        """The queues that the tasks of these times find: (times, streams, devices). Sometimes
        another device than the best is taken, so that the states differ."""
        count = streams.task.shape[1]
        queues, states = DeviceQueues.idle(count, len(self.types.type_of)), []
        requested_times = set(times.tolist())
        for time in range(int(times.max()) + 1):
            queues.now += streams.gap[time]
            queued = queues.queued()
            if time in requested_times:
                states.append(queued)
            task = streams.task[time]
            scores = score(queued, task)
            other = np.where(np.isfinite(scores), random.random(scores.shape), np.inf)
            explores = random.random(count) < explore
            self.place(queues, task, np.where(explores, other.argmin(1), scores.argmin(1)))
        return np.array(states)

    def costs_to_go(
        self,
        queued: Floats,
        streams: Streams,
        times: Integers,
        score: Score,
        horizon: int,
        discount: float,
        most_tried: int,
    ) -> Floats:
        """For each state and each device that its task may be placed on: the cost of that task
        and of the `horizon` tasks behind it, which `score` places. The same tasks follow for all
        devices, so that differences are exact. Infinite: the device cannot run the task, or is not
        one of the `most_tried` of the least score."""
        devices = len(self.types.type_of)
        stream = np.tile(np.arange(streams.task.shape[1]), len(times))
        begin = np.repeat(times, streams.task.shape[1])
        task, states = streams.task[begin, stream], queued.reshape(-1, devices)
        state, device = np.nonzero(self._promising(states, task, score, most_tried))
        costs = np.full(states.shape, np.inf)
        for part in np.array_split(np.arange(len(state)), len(state) // ROWS_AT_ONCE + 1):
            rows, queues = state[part], DeviceQueues.of(states[state[part]])
            cost = self.place(queues, task[rows], device[part])
            future = ((begin[rows] + step, stream[rows]) for step in range(1, horizon + 1))
            following = ((streams.gap[each], streams.task[each]) for each in future)
            costs[rows, device[part]] = cost + discount * self.run(
                queues, following, score, discount
            )
        return costs

    def _promising(self, queued: Floats, task: Integers, score: Score, most: int) -> Bools:
        """The devices that can run each task; of many those of the least scores."""
        possible = np.isfinite(self.expected[task])
        if queued.shape[1] <= most:
            return possible
        scores, type_of = score(queued, task), self.types.type_of
        for device in range(1, len(type_of)):
            # Try only one of several equal devices with equal queues.
            equal = queued[:, :device] == queued[:, device, None]
            twice = (equal & (type_of[:device] == type_of[device])).any(axis=1)
            scores[twice, device] = np.inf
        limit = np.partition(scores, most - 1, axis=1)[:, most - 1, None]
        return np.asarray(possible & (scores <= limit) & np.isfinite(scores))
