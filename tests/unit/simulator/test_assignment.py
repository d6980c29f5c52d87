"""Which simulator owns which scheduler."""

from __future__ import annotations

import random
from collections import Counter

from services.simulator.assignment import owner

INSTANCES = [f"host-{number}-ab{number:02d}" for number in range(4)]
SCHEDULERS = [f"scheduler_{number}" for number in range(1000)]


def test_every_simulator_computes_the_same_owner() -> None:
    shuffled = INSTANCES * 2
    random.Random(1).shuffle(shuffled)
    for scheduler in SCHEDULERS:
        assert owner(scheduler, INSTANCES) == owner(scheduler, shuffled)


def test_the_schedulers_are_distributed_evenly() -> None:
    # 250 each; the standard deviation is sqrt(1000 * 1/4 * 3/4) = 13.7, so 60 off is 4 of them.
    counts = Counter(owner(scheduler, INSTANCES) for scheduler in SCHEDULERS)
    assert set(counts) == set(INSTANCES)
    assert all(190 < count < 310 for count in counts.values())


def test_when_a_simulator_leaves_only_its_schedulers_move() -> None:
    left = INSTANCES[2]
    remaining = [instance for instance in INSTANCES if instance != left]
    for scheduler in SCHEDULERS:
        before = owner(scheduler, INSTANCES)
        after = owner(scheduler, remaining)
        assert after == before or before == left


def test_a_single_simulator_owns_all() -> None:
    assert {owner(scheduler, ["only"]) for scheduler in SCHEDULERS} == {"only"}
