"""Which scheduler is best, and whether the samples are enough to decide that.

Every competitor is compared with the one that has the smallest mean, in pairs of the same unit, by
the ratio of their objectives and its t interval. Over all competitors and all interim checks, the
chance that any interval misses the true ratio is at most 5 % (Bonferroni), so repeated checks do
not turn chance into an answer.

The answer is decided when no scheduler can be better than the best by a noticeable difference. It
need not be known whether one close behind is equal or a little worse.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from services.lab.reports.statistics import SIGNIFICANT, Estimate, estimate, ratio
from shared.domain.schedulers import BUILT_IN, LEARNERS

# Differences below this share are not noticeable.
INDIFFERENT = 0.02

# equal: within INDIFFERENT of the best; not better: perhaps worse, but not better by INDIFFERENT.
Standing = Literal["best", "worse", "equal", "not better", "unknown"]
Values = Mapping[int, float]  # by unit


@dataclass(frozen=True, slots=True)
class Compared:
    """A competitor compared with the best one; `ratio`: its objective over that of the best."""

    scheduler: str
    standing: Standing
    mean: float
    ratio: Estimate | None
    units_needed: int | None = None  # for a decision, estimated


@dataclass(frozen=True, slots=True)
class Verdict:
    best: str  # with the smallest mean
    recommended: str  # the best, or a simpler one that is as good
    compared: list[Compared]  # the best first, then by ratio
    units: int
    confidence: float  # of each interval, so that all together have 95 %

    def named(self, standing: Standing) -> list[str]:
        return [each.scheduler for each in self.compared if each.standing == standing]

    @property
    def decided(self) -> bool:
        return not self.named("unknown")

    @property
    def next_worse(self) -> Compared | None:
        """The first whose interval shows that it is worse. It need not be the first that was
        excluded: that one was worse than what was best then."""
        worse = (each for each in self.compared if each.standing == "worse")
        return next((each for each in worse if _standing(each.ratio) == "worse"), None)

    def of(self, scheduler: str) -> Compared:
        return next(each for each in self.compared if each.scheduler == scheduler)


def judge(
    values: Mapping[str, Values], looks: int = 1, excluded: frozenset[str] = frozenset()
) -> Verdict:
    """`values`: by competitor and unit, what is to be minimised. The `excluded` were worse at an
    earlier check, so they have fewer units."""
    means = {name: float(np.mean([*own.values()])) for name, own in values.items()}
    order = sorted(means, key=lambda name: (name in excluded, means[name], _complexity(name)))
    best, others = order[0], order[1:]
    confidence = 1 - SIGNIFICANT / (looks * max(len(others), 1))
    compared = [Compared(best, "best", means[best], None)]
    for name in others:
        beside = ratio(values[name], values[best], confidence=confidence)
        standing: Standing = "worse" if name in excluded else _standing(beside)
        unknown = standing == "unknown"
        needed = _units_needed(values[name], values[best], confidence) if unknown else None
        compared.append(Compared(name, standing, means[name], beside, needed))
    # Not by the means: those of excluded ones are over fewer units.
    compared[1:] = sorted(compared[1:], key=_mean_ratio)
    as_good = [best, *(each.scheduler for each in compared if each.standing == "equal")]
    simplest = min(as_good, key=lambda name: (name in LEARNERS, as_good.index(name)))
    return Verdict(best, simplest, compared, len(values[best]), confidence)


def _standing(beside: Estimate | None) -> Standing:
    if beside is None or beside.low is None or beside.high is None:
        return "unknown"
    if beside.low > 1 / (1 + INDIFFERENT):
        if beside.high < 1 + INDIFFERENT:
            return "equal"
        return "worse" if beside.low > 1 else "not better"
    return "unknown"


def _mean_ratio(each: Compared) -> float:
    return each.ratio.mean if each.ratio else math.inf


def _units_needed(first: Values, second: Values, confidence: float) -> int | None:
    """About how many units would show that `first` is not better; None: there are too few units for
    an estimate, or no number would."""
    pairs = [(first[unit], second[unit]) for unit in first.keys() & second.keys()]
    if len(pairs) < 3 or not all(a > 0 and b > 0 for a, b in pairs):
        return None
    logs = [math.log(a / b) for a, b in pairs]
    mean, deviation = float(np.mean(logs)), float(np.std(logs, ddof=1))
    room = abs(mean + math.log(1 + INDIFFERENT))
    needed = (float(stats.norm.ppf((1 + confidence) / 2)) * deviation / room) ** 2
    return max(math.ceil(needed), len(pairs) + 1)


def _complexity(name: str) -> tuple[bool, int]:
    return name in LEARNERS, BUILT_IN.index(name) if name in BUILT_IN else len(BUILT_IN)


def difference(
    first: Values, second: Values, scale: float = 1.0, confidence: float = 1 - SIGNIFICANT
) -> Estimate | None:
    """first - second in pairs of the same unit: the mean and its interval."""
    units = sorted(first.keys() & second.keys())
    return estimate([scale * (first[unit] - second[unit]) for unit in units], confidence)
