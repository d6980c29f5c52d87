"""The statistics of a certificate, against values worked out by hand and by scipy."""

from __future__ import annotations

import pytest

from services.lab.validation.agreement import (
    Comparison,
    Figure,
    Outcome,
    bias_of,
    error_of,
    figures_of,
    order_of,
)


def outcomes(**turnaround: float) -> dict[str, Outcome]:
    return {name: Outcome(value, 10 * value) for name, value in turnaround.items()}


def test_an_error_is_relative_to_the_mean_of_the_repeated_runs() -> None:
    figure = Figure(simulated=1.2, real=[0.9, 1.1])
    assert figure.deviation == pytest.approx(0.2)
    assert figure.spread == pytest.approx(0.1)


def test_errors_have_median_p90_spread_and_what_is_beyond_it() -> None:
    # Errors 0.1, 0.2, 0.05, 0; spreads 0.1, 0.1, 0.1, 0; beyond 0, 0.1, 0, 0.
    figures = [
        Figure(1.1, [0.9, 1.1]),
        Figure(0.8, [0.9, 1.1]),
        Figure(1.05, [0.9, 1.1]),
        Figure(2, [2, 2]),
    ]
    error = error_of(figures)
    assert error.median == pytest.approx(0.075)
    assert error.p90 == pytest.approx(0.1 + 0.7 * 0.1)  # between the third and the fourth
    assert error.spread == pytest.approx(0.1)
    assert error.beyond == pytest.approx(0, abs=1e-9)
    assert bias_of(figures) == pytest.approx(0.025)  # of -0.2, 0, 0.05, 0.1


def test_figures_are_taken_by_scheduler_and_measure() -> None:
    comparison = Comparison([outcomes(eft=1, random=3), outcomes(eft=2, random=5)],
                            outcomes(eft=1.5, random=4))  # fmt: skip
    assert figures_of([comparison], "turnaround", "random") == [Figure(4, [3, 5])]
    assert figures_of([comparison], "makespan", "eft") == [Figure(15, [10, 20])]


def test_only_pairs_that_differ_by_more_than_the_repetitions_must_keep_their_order() -> None:
    # a and b overlap; c is above both, d above all.
    real = [outcomes(a=1, b=1.5, c=3, d=9), outcomes(a=2, b=1.8, c=4, d=8)]
    same = order_of([Comparison(real, outcomes(a=2, b=1, c=3, d=4))])
    assert (same.pairs, same.kept) == (5, 5)
    swapped = order_of([Comparison(real, outcomes(a=1, b=2, c=5, d=4))])
    assert (swapped.pairs, swapped.kept) == (5, 4)


def test_tau_is_the_mean_over_workloads() -> None:
    real = [outcomes(a=1, b=2, c=3, d=4)]
    # 1 of 6 pairs is reversed: (5 - 1) / 6; then all of them: -1.
    one = Comparison(real, outcomes(a=1, b=3, c=2, d=4))
    all_ = Comparison(real, outcomes(a=4, b=3, c=2, d=1))
    assert order_of([one]).kendall_tau == pytest.approx(4 / 6, abs=1e-4)
    assert order_of([one, all_]).kendall_tau == pytest.approx((4 / 6 - 1) / 2, abs=1e-4)


def test_schedulers_that_are_all_equal_have_no_order() -> None:
    equal = outcomes(a=1, b=1)
    assert order_of([Comparison([equal], equal)]).kendall_tau is None
