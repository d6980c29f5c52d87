"""Which simulator serves which scheduler."""

from __future__ import annotations

import random
from collections import Counter

from services.simulator.sharing import owner

INSTANCES = [f"host-{number}-ab{number:02d}" for number in range(4)]
SCHEDULERS = [f"scheduler_{number}" for number in range(1000)]


def test_everybody_works_out_the_same_owner() -> None:
    shuffled = INSTANCES * 2
    random.Random(1).shuffle(shuffled)
    for scheduler in SCHEDULERS:
        assert owner(scheduler, INSTANCES) == owner(scheduler, shuffled)


def test_the_schedulers_are_spread_evenly() -> None:
    # 250 each; the standard deviation is sqrt(1000 * 1/4 * 3/4) = 13.7, so 60 off is no chance.
    share = Counter(owner(scheduler, INSTANCES) for scheduler in SCHEDULERS)
    assert set(share) == set(INSTANCES)
    assert all(190 < count < 310 for count in share.values())


def test_only_the_schedulers_of_one_that_left_move() -> None:
    left = INSTANCES[2]
    remaining = [instance for instance in INSTANCES if instance != left]
    for scheduler in SCHEDULERS:
        before = owner(scheduler, INSTANCES)
        after = owner(scheduler, remaining)
        assert after == before or before == left


def test_one_alone_serves_everything() -> None:
    assert {owner(scheduler, ["only"]) for scheduler in SCHEDULERS} == {"only"}
