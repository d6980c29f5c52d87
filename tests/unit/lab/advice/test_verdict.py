"""Who is called best, and when the samples are said not to tell."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from services.lab.advice.answer import recommendation, to_use
from services.lab.advice.verdict import difference, judge


def around(mean: float, spread: float, units: int = 12, seed: int = 1) -> dict[int, float]:
    draw = random.Random(seed)
    return {unit: mean * (1 + spread * draw.uniform(-1, 1)) for unit in range(units)}


def times(values: dict[int, float], factor: float, spread: float, seed: int) -> dict[int, float]:
    draw = random.Random(seed)
    return {unit: v * factor * (1 + spread * draw.uniform(-1, 1)) for unit, v in values.items()}


def test_one_that_is_better_in_every_pair_is_recommended() -> None:
    # The units differ by far more than the schedulers do: only pairs can tell.
    good = around(10, 0.9)
    verdict = judge({"greedy": times(good, 1.2, 0.02, 2), "eft": good})
    assert (verdict.recommended, verdict.decided) == ("eft", True)
    assert verdict.named("worse") == ["greedy"]
    ratio = verdict.of("greedy").ratio
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.low > 1.1


def test_differences_that_nobody_would_notice_make_the_simpler_one_as_good() -> None:
    good = around(10, 0.5)
    verdict = judge({"predictive": good, "eft": times(good, 1.004, 0.004, 2)})
    assert (verdict.best, verdict.recommended) == ("predictive", "eft")
    assert verdict.decided


def test_what_lies_within_chance_is_not_told_and_it_says_what_would() -> None:
    good = around(10, 0.1)
    verdict = judge({"eft": good, "predictive": times(good, 1.03, 0.6, 2)})
    assert not verdict.decided
    unclear = verdict.of(verdict.named("unknown")[0])
    assert unclear.units_needed is not None
    assert unclear.units_needed > 12


def test_one_that_may_be_worse_but_not_better_leaves_the_answer_decided() -> None:
    good = around(10, 0.5)
    # Log ratios of mean 0.02 and deviation 0.037 in 12 pairs: from -0.012 to 0.052.
    close = {unit: v * math.exp(0.02 + 0.035 * (-1) ** unit) for unit, v in good.items()}
    verdict = judge({"predictive": good, "attention_agent": close}, looks=4)
    assert verdict.named("not better") == ["attention_agent"]
    assert (verdict.recommended, verdict.decided) == ("predictive", True)


@pytest.mark.parametrize(("looks", "others"), [(4, 1), (1, 4)])
def test_more_looks_and_more_competitors_ask_for_stronger_evidence(looks: int, others: int) -> None:
    good = around(10, 0.1, units=5)
    # Log ratios of mean 0.1 and deviation 0.079: t = 2.83 of 4 degrees of freedom, p = 0.047.
    logs = [0.0, 0.05, 0.1, 0.15, 0.2]
    worse = {unit: value * math.exp(logs[unit]) for unit, value in good.items()}
    assert judge({"eft": good, "greedy": worse}).named("worse") == ["greedy"]
    names = [f"other_{n}" for n in range(others)]
    verdict = judge({"eft": good} | dict.fromkeys(names, worse), looks)
    assert verdict.named("unknown") == names


def test_intervals_hold_together_as_often_as_they_say() -> None:
    """Schedulers that are all equal: how often is one of them called worse at any of the looks?"""
    draw, wrong, trials = np.random.default_rng(5), 0, 400
    for _ in range(trials):
        logs = draw.normal(0, 0.1, (5, 32))
        called = False
        for units in (4, 8, 16, 32):
            values = {
                f"other_{n}": dict(enumerate(np.exp(logs[n, :units]).tolist())) for n in range(5)
            }
            called = called or bool(judge(values, looks=4).named("worse"))
        wrong += called
    # 5 % at most, and the best of the sample is compared with the others, which makes it more.
    assert wrong / trials < 0.1


def test_one_that_was_out_before_is_never_best_again() -> None:
    verdict = judge(
        {"eft": around(10, 0.1), "greedy": {0: 1.0, 1: 1.0}}, excluded=frozenset({"greedy"})
    )
    assert verdict.best == "eft"
    assert verdict.named("worse") == ["greedy"]


def test_one_unit_tells_nothing() -> None:
    assert judge({"eft": {0: 1.0}, "greedy": {0: 9.0}}).named("unknown") == ["greedy"]


def test_differences_are_paired_and_scaled() -> None:
    found = difference({0: 3.0, 1: 5.0}, {0: 1.0, 1: 2.0, 2: 100.0}, scale=60)
    assert found is not None
    assert found.mean == pytest.approx(60 * (2 + 3) / 2)
    assert found.n == 2


def test_a_tie_of_two_is_an_answer_when_all_others_are_worse() -> None:
    first = around(10, 0.9)
    values = {
        "predictive": first,
        "attention_agent": times(first, 1.0, 0.3, 2),
        "eft": times(first, 1.5, 0.02, 3),
        "greedy": times(first, 9.0, 0.02, 4),
    }
    verdict = judge(values)
    assert not verdict.decided
    text = recommendation(verdict)
    assert text.startswith(f"Use {verdict.best} or ")
    assert "the data do not show which of them is best; next is eft, 1." in text
    assert f" times the objective of {verdict.best} [" in text
    assert sorted(to_use(verdict)) == ["attention_agent", "predictive"]


def test_a_tie_of_all_is_no_answer() -> None:
    first = around(10, 0.9)
    verdict = judge({"predictive": first, "attention_agent": times(first, 1.0, 0.3, 2)})
    assert recommendation(verdict).startswith("The data do not show which of ")
    assert to_use(verdict) == []


def test_without_a_decision_the_simplest_of_those_as_good_as_the_best_is_named() -> None:
    first = around(10, 0.1)
    verdict = judge(
        {
            "attention_agent": first,
            "eft": times(first, 1.002, 0.002, 2),
            "predictive": times(first, 1.1, 0.5, 3),
            "greedy": times(first, 2, 0.05, 4),
        }
    )
    assert verdict.best == "attention_agent"
    assert to_use(verdict) == ["eft", "predictive"]
    text = recommendation(verdict)
    assert text.startswith("Use eft or predictive: the data do not show which of them is best; ")
    assert "; attention_agent would do as well as eft (within 2%); next is greedy, " in text


def test_an_excluded_one_that_is_closer_is_the_next_one() -> None:
    good = around(10, 0.1)
    # It took part in the first units only, which happened to be the longest.
    first = {unit: value * (3 if unit < 4 else 1) for unit, value in good.items()}
    close = {unit: 1.2 * first[unit] for unit in range(4)}
    values = {"eft": first, "greedy": times(first, 1.7, 0.05, 2), "least_loaded": close}
    verdict = judge(values, looks=4, excluded=frozenset({"least_loaded"}))
    assert [each.scheduler for each in verdict.compared] == ["eft", "least_loaded", "greedy"]


def test_one_that_was_excluded_is_the_next_one_only_if_it_is_worse_now() -> None:
    first = around(10, 0.1)
    values = {
        "eft": first,
        "predictive": times(first, 1.05, 0.3, 2),
        "least_loaded": dict([*times(first, 1.4, 0.9, 3).items()][:3]),
        "greedy": times(first, 3, 0.05, 4),
    }
    verdict = judge(values, excluded=frozenset({"least_loaded"}))
    beside = verdict.of("least_loaded").ratio
    assert beside is not None
    assert beside.low is not None
    assert beside.low < 1
    assert verdict.of("least_loaded").standing == "worse"
    assert verdict.next_worse is not None
    assert verdict.next_worse.scheduler == "greedy"
