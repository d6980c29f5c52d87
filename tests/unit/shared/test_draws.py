"""Random numbers that depend on seed, counter and purpose, and on nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from shared.draws import uniform

COUNT = 100_000
MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15


def counters(first: int = 0, count: int = COUNT) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.uint64)


def split_mix(seed: int, counter: int, purpose: int) -> float:
    """SplitMix64 as published, in plain integers: a stream per purpose, a place per counter."""

    def mix(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    start = mix((seed + (purpose + 1) * GAMMA) & MASK)
    return (mix((start + (counter + 1) * GAMMA) & MASK) >> 11) / 2**53


@pytest.mark.parametrize("purpose", [0, 1, 2])
@pytest.mark.parametrize("seed", [0, 42, 2**63 - 1])
def test_a_draw_is_a_hash_of_seed_counter_and_purpose(seed: int, purpose: int) -> None:
    drawn = uniform(seed, counters(10**12, 20), purpose)
    assert drawn.tolist() == [split_mix(seed, 10**12 + n, purpose) for n in range(20)]


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


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_wrapping_around_is_no_cause_for_a_warning(seed: int) -> None:
    last = np.array([2**64 - 1], dtype=np.uint64)
    assert uniform(seed, last, 2).tolist() == [split_mix(seed, 2**64 - 1, 2)]
