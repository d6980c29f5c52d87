"""Finds prices of device time by replaying tasks through the queues with many prices at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shared.domain.learning import device_prices
from shared.domain.learning.device_prices import DevicePrices, limited
from shared.domain.tasks import Bools, Floats, Integers

# Instead of an infinite time: larger than any, and its products are finite.
IMPOSSIBLE = 1e100

# Numbers of one step of the replay; with more devices, fewer candidates are tried at once.
MOST_NUMBERS = 8192
FEWEST_CANDIDATES = 16


@dataclass(frozen=True, slots=True)
class Replay:
    """Tasks in the order of their arrival, and the devices that they may go to. Dependencies,
    widths and homes of tasks are left out: prices need not be exact."""

    arrival: Floats
    expected: Floats  # seconds of each task (row) on each device type; infinite: it cannot run
    real: Floats  # in the same shape: what is added to the queue
    type_of: Integers
    bulk: Bools
    scale: float  # seconds of an average task
    charge: Floats  # what a second on each device type costs, in seconds of turnaround

    @classmethod
    def of(
        cls,
        arrival: Floats,
        expected: Floats,
        real: Floats,
        type_of: Integers,
        bulk: Bools,
        charge: Floats,
    ) -> Replay:
        """Without the tasks that no device can run."""
        rows = np.flatnonzero(np.isfinite(expected).any(axis=1))
        least = expected[rows].min(axis=1)
        scale = float(least.mean()) if len(rows) else 1.0
        return cls(arrival[rows], expected[rows], real[rows], type_of, bulk, scale, charge)


def replay_cost(replay: Replay, prices: Floats) -> tuple[Floats, Floats]:
    """For each vector of prices (row): the mean turnaround of all tasks, and what their seconds
    cost beside it; and the most seconds that were ever queued on all devices together."""
    device = DevicePrices.of(prices, replay.scale, replay.type_of, replay.bulk)
    count, devices = device.second.shape
    free, wait = np.zeros((count, devices)), np.empty((count, devices))
    score, per_load = np.empty((count, devices)), np.empty((count, devices))
    load, total, first = np.empty((count, 1)), np.zeros(count), np.arange(count) * devices
    most_queued = np.zeros((count, 1))
    expected = np.minimum(replay.expected, IMPOSSIBLE)[:, replay.type_of]
    real = np.minimum(replay.real, IMPOSSIBLE)[:, replay.type_of]
    extra = real * replay.charge[replay.type_of] if replay.charge.any() else None
    for row, arrival in enumerate(replay.arrival.tolist()):
        np.subtract(free, arrival, out=wait)
        np.maximum(wait, 0.0, out=wait)
        np.add.reduce(wait, axis=1, keepdims=True, out=load)
        np.maximum(most_queued, load, out=most_queued)
        np.multiply(load, device.per_load, out=per_load)
        np.multiply(wait, device.per_wait, out=score)
        score += per_load
        score += device.second
        score *= expected[row]
        score += wait
        choice = score.argmin(axis=1)
        place = first + choice
        turnaround = wait.take(place)
        turnaround += real[row].take(choice)
        free.put(place, turnaround + arrival)
        total += turnaround
        if extra is not None:
            total += extra[row].take(choice)
    return total / max(len(replay.arrival), 1), most_queued[:, 0]


@dataclass(frozen=True, slots=True)
class SearchResult:
    prices: Floats
    steps: Floats  # how far the next search should look
    cost: float  # of the replay
    cost_before: float  # with the prices that the search began with
    cost_without: float  # without prices: earliest finish
    most_queued: float  # seconds, on all devices together


def search(
    replay: Replay,
    prices: Floats,
    steps: Floats,
    least_steps: Floats,
    *,
    rounds: int,
    candidates: int,
    speed: float,
    random: np.random.Generator,
) -> SearchResult:
    """The cross-entropy method (Rubinstein 1999): normal candidates around the prices, and in each
    round a move by the share `speed` to the mean of the best quarter. The result is never worse in
    the replay than where it began, nor than no prices at all."""
    centre, before, spread = prices, prices, steps
    count = max(min(candidates, MOST_NUMBERS // len(replay.type_of)), FEWEST_CANDIDATES)
    for _ in range(rounds):
        drawn = centre + spread * random.standard_normal((count, len(prices)))
        tried = limited(drawn)
        best = np.argsort(replay_cost(replay, tried)[0], kind="stable")[: count // 4]
        centre = centre + speed * (tried[best].mean(axis=0) - centre)
        spread = np.maximum(spread + speed * (tried[best].std(axis=0) - spread), least_steps)
    final = np.stack([centre, before, device_prices.none(replay.charge)])
    cost, most_queued = replay_cost(replay, final)
    chosen = int(cost.argmin())
    before_search, without = float(cost[1]), float(cost[2])
    return SearchResult(
        final[chosen], spread, float(cost[chosen]), before_search, without,
        float(most_queued[chosen]),
    )  # fmt: skip
