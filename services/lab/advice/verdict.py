"""Who is best, and whether the samples can tell.

Every competitor is compared with the one of the least mean in pairs of the same unit: a t test on
the logarithms of the ratios, Holm's correction over the competitors. The samples are looked at
several times, so the level of each look is the level of the answer divided by the looks
(Bonferroni): looking again and again must not turn chance into an answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from services.lab.reports.statistics import (
    SIGNIFICANT,
    Estimate,
    PairedTest,
    corrected,
    estimate,
    paired_test,
)
from shared.domain.schedulers import BUILT_IN, LEARNERS

# Differences below this share make no difference to anybody.
INDIFFERENT = 0.02

Standing = Literal["best", "worse", "equal", "unknown"]
Values = Mapping[int, float]  # by unit


@dataclass(frozen=True, slots=True)
class Compared:
    """A competitor beside the best one; `ratio`: its objective over that of the best."""

    scheduler: str
    standing: Standing
    mean: float
    ratio: Estimate | None
    p: float | None  # after Holm
    units_needed: int | None = None  # to tell, about


@dataclass(frozen=True, slots=True)
class Verdict:
    best: str  # of the least mean
    recommended: str  # the best, or a simpler one that is as good
    compared: list[Compared]  # least mean first
    units: int

    def named(self, standing: Standing) -> list[str]:
        return [each.scheduler for each in self.compared if each.standing == standing]

    @property
    def decided(self) -> bool:
        return not self.named("unknown")

    def of(self, scheduler: str) -> Compared:
        return next(each for each in self.compared if each.scheduler == scheduler)


def judge(
    values: Mapping[str, Values], looks: int = 1, out: frozenset[str] = frozenset()
) -> Verdict:
    """`values`: of each competitor, what is to be small, by unit. Those that are `out` were found
    worse at an earlier look and have fewer units since."""
    means = {name: float(np.mean([*own.values()])) for name, own in values.items()}
    order = sorted(means, key=lambda name: (name in out, means[name], _complexity(name)))
    best, others = order[0], order[1:]
    tests = [paired_test((name, best), values[name], values[best]) for name in others]
    known = {test.first: test for test in corrected([test for test in tests if test])}
    level = SIGNIFICANT / looks
    compared = [Compared(best, "best", means[best], None, None)]
    for name in others:
        test = known.get(name)
        standing: Standing = "worse" if name in out else _standing(test, level)
        needed = _units_needed(values[name], values[best], level) if standing == "unknown" else None
        ratio, p = (test.ratio, test.p_adjusted) if test else (None, None)
        compared.append(Compared(name, standing, means[name], ratio, p, needed))
    as_good = [best, *(each.scheduler for each in compared if each.standing == "equal")]
    simplest = min(as_good, key=lambda name: (name in LEARNERS, as_good.index(name)))
    return Verdict(best, simplest, compared, len(values[best]))


def _standing(test: PairedTest | None, level: float) -> Standing:
    if test is None or test.p is None:
        return "unknown"
    if test.identical:
        return "equal"
    low, high = test.ratio.low, test.ratio.high
    if low is None or high is None:
        return "unknown"
    if low > 1 / (1 + INDIFFERENT) and high < 1 + INDIFFERENT:
        return "equal"
    p = test.p if test.p_adjusted is None else test.p_adjusted
    return "worse" if p < level and test.ratio.mean > 1 else "unknown"


def _units_needed(first: Values, second: Values, level: float) -> int | None:
    """About how many units would tell a difference, or its absence; None: there are too few to
    say, or no number would."""
    pairs = [(first[unit], second[unit]) for unit in first.keys() & second.keys()]
    if len(pairs) < 3 or not all(a > 0 and b > 0 for a, b in pairs):
        return None
    logs = [math.log(a / b) for a, b in pairs]
    mean, deviation = abs(float(np.mean(logs))), float(np.std(logs, ddof=1))
    room = max(mean, math.log(1 + INDIFFERENT) - mean)
    needed = (float(stats.norm.ppf(1 - level / 2)) * deviation / room) ** 2
    return max(math.ceil(needed), len(pairs) + 1)


def _complexity(name: str) -> tuple[bool, int]:
    return name in LEARNERS, BUILT_IN.index(name) if name in BUILT_IN else len(BUILT_IN)


def difference(first: Values, second: Values, scale: float = 1.0) -> Estimate | None:
    """first - second in pairs of the same unit: the mean and its 95 % interval."""
    units = sorted(first.keys() & second.keys())
    return estimate([scale * (first[unit] - second[unit]) for unit in units])
