from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from services.scheduler.learned_policy import LearnedClusterPolicy
from services.scheduler.start_delay import first_come, start_delay
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.learning.device_prices import DevicePrices, bulk_lane
from shared.domain.learning.price_search import IMPOSSIBLE
from shared.domain.physics import whole_seconds
from shared.domain.portable_math import exp
from shared.domain.random_numbers import uniform
from shared.domain.schedulers import PREDICTIVE
from shared.domain.spec import RunSpec
from shared.domain.tasks import Bools, Decisions, Floats, Integers, Tasks
from shared.messages.time_model import TimeModel

EXPLORE, CHOOSE = 11, 12  # purposes of random numbers: whether to explore, and which type to try
NONE = -1


# Numbers that are computed at once for the next tasks.
MOST_NUMBERS = 65_536
# Prices were found in a replay. They count for tasks up to this many times as long as its longest,
# and for queues up to this many times as long: what they would do beyond, nobody has tried.
BEYOND_REPLAY = 3.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is known of each task (row) without the cluster."""

    times: Floats  # predicted, on each device type (column)
    whole: Floats  # the same with paging, and infinite where the task does not fit
    prices: DevicePrices
    bonus: Floats | None  # share of its time by which a type may be faster; None: nothing is new
    tried: list[int]  # the type to try, or NONE
    chance: list[list[float]]  # of trying each type
    priced: Bools  # whether the prices are for tasks of this length; else it is earliest finish
    most_queued: float  # seconds on all devices together, for which the prices are

    def terms(self, type_of: Integers) -> Iterator[tuple[Floats, Floats, Floats]]:
        """For each task and device: what the task costs there without a queue, what each second
        queued in the cluster adds, and what each second queued on the device does."""
        second, step = self.prices.second, max(MOST_NUMBERS // len(type_of), 1)
        for first in range(0, len(self.whole), step):
            rows = slice(first, first + step)
            times = np.minimum(self.whole[rows][:, type_of], IMPOSSIBLE)
            cost = second if self.bonus is None else second - self.bonus[rows][:, type_of]
            priced = self.priced[rows, None]
            yield from zip(
                times * np.where(priced, cost, 1.0),
                times * np.where(priced, self.prices.per_load, 0.0),
                times * np.where(priced, self.prices.per_wait, 0.0) + 1.0,
                strict=True,
            )


class Predictive(LearnedClusterPolicy):
    """Trees predict a task's seconds on each device type; it goes where these, the queue and the
    price of the device's time come to the least.

    The times are learned from its own results. The prices are those with which the newest tasks,
    replayed through the queues, would have had the least turnaround; they rise with the load, and
    under load long tasks gather on a few devices. A few tasks try another device type.
    """

    name = PREDICTIVE
    learner = PREDICTIVE

    def load_model(self, body: bytes) -> Any:
        model = TimeModel.open(body)
        model.log_seconds(np.ones((1, 3)), np.zeros(1, np.int64))
        return model

    def prepare_with(self, model: TimeModel, tasks: Tasks, spec: RunSpec) -> Prepared:
        rule, platform = spec.learning.predictive, spec.platform
        if len(model.low) != len(platform.types):
            raise ValueError(f"a model of {len(model.low)} device types, not {len(platform.types)}")
        times = model.seconds(tasks, spec)
        whole = whole_seconds(tasks, spec, times)
        bulk = bulk_lane(platform, rule.bulk_share)
        prices = DevicePrices.of(model.prices, model.scale, platform.type_of, bulk)
        unknown = model.uncertainty(tasks)
        bonus = None if unknown is None else 1.0 - exp(-rule.optimism * unknown)
        tried, chance = explorations(whole, tasks, spec)
        priced = whole.min(axis=1) <= BEYOND_REPLAY * model.longest
        if tasks.width is not None:
            priced &= tasks.width == 1  # the replay has no wide tasks
        most_queued = BEYOND_REPLAY * model.most_queued
        return Prepared(
            times, whole, prices, bonus, tried.tolist(), chance.tolist(), priced, most_queued
        )

    def decide(self, tasks: Tasks, cluster: ClusterView, spec: RunSpec) -> Decisions:
        known = cluster.prepared
        if known is None:  # no model yet: earliest finish
            for _ in cluster.arrivals():
                cluster.place(cluster.finish().argmin())
            return cluster.decisions()
        cluster.expect(known.times)
        type_of, of_type, simple = spec.platform.type_of, spec.platform.of_type, first_come(spec)
        kinds, tried, chance = type_of.tolist(), known.tried, known.chance
        greedy = 1.0 - spec.learning.predictive.explore
        terms = known.terms(type_of)
        for row, (alone, per_load, per_wait) in zip(cluster.arrivals(), terms, strict=True):
            queued = cluster.queued()
            total = np.add.reduce(queued)
            if total <= known.most_queued:
                score = per_wait * queued
                score += per_load * total
                score += alone
            else:
                score = alone + queued
            if not simple:
                score += start_delay(cluster)
            device = best = int(score.argmin())
            if tried[row] != NONE:
                same = of_type[tried[row]]
                device = int(same[score[same].argmin()])
            probability = chance[row][kinds[device]] + (greedy if device == best else 0.0)
            cluster.place(
                device, probability=probability, explored=tried[row] != NONE, scores=score
            )
        return cluster.decisions()


def explorations(times: Floats, tasks: Tasks, spec: RunSpec) -> tuple[Integers, Floats]:
    """For each task the type to try, or NONE, and the chance of trying each type (column). All
    types that are not much slower than the fastest have the same chance."""
    rule = spec.learning.predictive
    # Infinite times are equal: a task that can run nowhere may try every type.
    allowed = times <= rule.explore_limit * times.min(axis=1)[:, None]
    count = allowed.sum(axis=1)
    counter = tasks.task_id.astype(np.uint64)
    explored = uniform(spec.seed, counter, EXPLORE) < rule.explore
    turn = np.floor(uniform(spec.seed, counter, CHOOSE) * count)
    chosen: Integers = (np.cumsum(allowed, axis=1) > turn[:, None]).argmax(axis=1)
    chance = np.where(allowed, rule.explore / count[:, None], 0.0)
    return np.where(explored, chosen, NONE), chance
