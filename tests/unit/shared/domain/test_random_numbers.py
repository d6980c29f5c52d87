"""Random numbers that depend on seed, counter and purpose, and on nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from shared.domain.random_numbers import uniform

COUNT = 100_000

# The first outputs of SplitMix64 from the state 1234567, as other implementations publish them.
PUBLISHED = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]
# Seeds whose stream of that purpose starts from this state.
SEEDS = {0: 11906536674387683726, 1: 505821855064485241, 2: 7551851109450838372}

# Results of stored runs are compared with new ones, so no version may draw other numbers.
DRAWN = {
    (0, 0): [0.6524484863740322, 0.6548894655632133, 0.28176129772258496],
    (42, 1): [0.9867112511075029, 0.8204279944149218, 0.41605536023847145],
    (2**63 - 1, 2): [0.06266006427811732, 0.30658242425301363, 0.9763066504736018],
}


def counters(first: int = 0, count: int = COUNT) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.uint64)


@pytest.mark.parametrize("purpose", SEEDS)
def test_draws_are_the_upper_bits_of_splitmix64(purpose: int) -> None:
    drawn = uniform(SEEDS[purpose], counters(count=5), purpose)
    assert drawn.tolist() == [(bits >> 11) / 2**53 for bits in PUBLISHED]


@pytest.mark.parametrize(("seed", "purpose"), DRAWN)
def test_every_version_draws_the_same_numbers(seed: int, purpose: int) -> None:
    """Up to the last counter, where the arithmetic wraps around without a warning."""
    some = np.array([0, 10**12, 2**64 - 1], dtype=np.uint64)
    assert uniform(seed, some, purpose).tolist() == DRAWN[seed, purpose]


def test_a_draw_does_not_depend_on_the_ones_beside_it() -> None:
    whole = uniform(7, counters(count=100))
    alone = [uniform(7, counters(number, 1))[0] for number in range(100)]
    assert whole.tolist() == alone
    assert uniform(7, counters(count=100)[::-1]).tolist() == alone[::-1]


@pytest.mark.parametrize("purpose", [0, 1, 2])
def test_draws_are_uniform_from_0_to_below_1(purpose: int) -> None:
    drawn = uniform(1, counters(), purpose)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    # To five standard errors: the variance of a uniform draw is 1/12, that of its square 1/180.
    assert drawn.mean() == pytest.approx(0.5, abs=5 * (1 / 12 / COUNT) ** 0.5)
    assert drawn.var() == pytest.approx(1 / 12, abs=5 * (1 / 180 / COUNT) ** 0.5)
    # Each of ten bins gets a tenth.
    counts, _ = np.histogram(drawn, bins=10, range=(0, 1))
    assert np.abs(counts / COUNT - 0.1).max() < 5 * (0.1 * 0.9 / COUNT) ** 0.5


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.corrcoef(one, other)[0, 1])


def test_other_purposes_seeds_and_counters_draw_other_numbers() -> None:
    drawn = uniform(1, counters(), 1)
    neighbours = [
        uniform(1, counters(), 2),
        uniform(2, counters(), 1),
        uniform(1, counters(1), 1),
        uniform(1, counters(2**40), 1),
    ]
    for other in neighbours:
        assert (drawn == other).sum() < 5
        assert abs(correlation(drawn, other)) < 5 / COUNT**0.5
