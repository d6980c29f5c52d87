"""Means, ratios and tests against values calculated by hand and by scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from services.lab.reports.statistics import (
    Estimate,
    PairedTest,
    corrected,
    estimate,
    holm,
    paired_test,
    ratio,
)


def seeds(*values: float) -> dict[int, float]:
    return dict(enumerate(values, start=1))


def test_a_mean_and_its_t_interval_by_hand() -> None:
    # Mean 4, deviation sqrt((4 + 1 + 0 + 1 + 4) / 4) = 1.5811, t(4, 0.975) = 2.7764:
    # half width 2.7764 * 1.5811 / sqrt(5) = 1.9632.
    result = estimate([2, 3, 4, 5, 6])
    assert result is not None
    assert result.mean == 4
    assert result.n == 5
    assert result.low == pytest.approx(4 - 1.9632, abs=1e-4)
    assert result.high == pytest.approx(4 + 1.9632, abs=1e-4)


def test_one_seed_has_a_mean_and_no_interval() -> None:
    assert estimate([7.5]) == Estimate(7.5, None, None, 1)
    assert estimate([]) is None
    test = paired_test(("a", "b"), seeds(2), seeds(1))
    assert test is not None
    assert test.ratio == Estimate(2.0, None, None, 1)
    assert test.p is None
    assert not test.significant


def test_a_ratio_is_the_geometric_mean_over_the_seeds_both_have() -> None:
    result = ratio({1: 2.0, 2: 8.0, 9: 5.0}, {1: 1.0, 2: 1.0, 4: 3.0})
    assert result is not None
    assert result.n == 2
    assert result.mean == pytest.approx(4.0)  # sqrt(2 * 8)
    # Logs 0.6931 and 2.0794: deviation 0.9803, t(1, 0.975) = 12.7062.
    half = 12.7062 * 0.98026 / math.sqrt(2)
    assert result.low == pytest.approx(4 * math.exp(-half), rel=1e-4)
    assert result.high == pytest.approx(4 * math.exp(half), rel=1e-4)


def test_no_ratio_without_shared_seeds_or_of_nothing() -> None:
    assert ratio({1: 1.0}, {2: 1.0}) is None
    assert ratio(seeds(0.0, 1.0), seeds(1.0, 1.0)) is None
    assert ratio(seeds(1.0), seeds(math.nan)) is None
    assert paired_test(("a", "b"), {1: 1.0}, {}) is None


values = st.lists(st.tuples(st.floats(0.1, 100), st.floats(0.1, 100)), min_size=3, max_size=8)


@settings(max_examples=100, deadline=None)
@given(values)
def test_the_paired_test_is_scipys_on_the_logarithms(pairs: list[tuple[float, float]]) -> None:
    first, second = (np.array(column) for column in zip(*pairs, strict=True))
    logs = np.log(first / second)
    if logs.std() < 1e-6:
        return
    expected = stats.ttest_rel(np.log(first), np.log(second))
    interval = expected.confidence_interval(0.95)
    result = paired_test(("a", "b"), seeds(*first), seeds(*second))
    assert result is not None
    assert result.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert result.ratio.mean == pytest.approx(stats.gmean(first / second), rel=1e-9)
    assert result.ratio.low == pytest.approx(math.exp(interval.low), rel=1e-6)
    assert result.ratio.high == pytest.approx(math.exp(interval.high), rel=1e-6)
    back = paired_test(("b", "a"), seeds(*second), seeds(*first))
    assert back is not None
    assert back.p == pytest.approx(result.p, rel=1e-6, abs=1e-12)
    assert back.ratio.mean == pytest.approx(1 / result.ratio.mean)


def test_equal_samples_are_not_distinguished() -> None:
    test = paired_test(("a", "b"), seeds(3, 4, 5), seeds(3, 4, 5))
    assert test is not None
    assert test.p == 1
    assert test.identical
    assert not test.significant


def test_a_ratio_that_never_changes_is_certain() -> None:
    test = paired_test(("a", "b"), seeds(2, 4, 6), seeds(1, 2, 3))
    assert test is not None
    assert test.p == 0
    assert test.significant
    assert not test.identical


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.04: times 4, 3, 2, 1, and never below the one before.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_correction_is_over_those_that_have_a_p() -> None:
    one = Estimate(2.0, 1.5, 2.5, 3)
    tests = [
        PairedTest("a", "b", one, 0.03),
        PairedTest("a", "c", Estimate(2.0, None, None, 1), None),
        PairedTest("a", "d", one, 0.02),
    ]
    adjusted = [test.p_adjusted for test in corrected(tests)]
    assert adjusted[1] is None
    assert adjusted[0] == pytest.approx(0.04)
    assert adjusted[2] == pytest.approx(0.04)
    # 0.03 alone would be significant; so it is after the correction of two, not of three.
    assert corrected(tests)[0].significant
    third = PairedTest("a", "e", one, 0.9)
    assert not corrected([*tests, third])[0].significant


def run_test(
    names: tuple[str, str], first: dict[int, float], second: dict[int, float]
) -> PairedTest:
    test = paired_test(names, first, second)
    assert test is not None
    return test


def test_the_same_test_counts_once_and_figures_that_never_differ_are_none() -> None:
    ones = seeds(1, 1, 1)
    twice = run_test(("a", "b"), seeds(2.0, 2.1, 2.3), ones)
    again = run_test(("c", "b"), seeds(2.0, 2.1, 2.3), ones)
    other = run_test(("d", "b"), seeds(1.0, 1.2, 0.7), ones)
    same = run_test(("e", "b"), ones, ones)
    adjusted = [test.p_adjusted for test in corrected([twice, again, other, same])]
    # Two distinct tests: the smaller p is doubled, the larger one stays.
    assert twice.p is not None
    assert adjusted == pytest.approx([2 * twice.p, 2 * twice.p, other.p, 1.0])


def test_two_seeds_are_too_few_to_miss_a_difference() -> None:
    assert run_test(("a", "b"), seeds(1, 3), seeds(1, 1)).verdict == "too few seeds"
    three = run_test(("a", "b"), seeds(1, 3, 0.5), seeds(1, 1, 1))
    assert three.verdict == "not distinguished"
    assert run_test(("a", "b"), seeds(2, 4), seeds(1, 2)).verdict == "b is better"
