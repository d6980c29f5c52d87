"""Statistics over a few seeds: means, ratios and paired tests, with 95 % confidence intervals.

The seed determines the tasks, so schedulers are compared in pairs of the same seed. Times are
compared by their ratio; the t interval and the paired t test use its logarithm, so that a ratio
and its inverse give the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
SIGNIFICANT = 0.05
# With fewer seeds hardly any difference can be shown, so its absence means nothing.
ENOUGH_SEEDS = 3
NOT_DISTINGUISHED, IDENTICAL = "not distinguished", "identical"

# Logarithms of ratios closer than this are rounding, not a difference.
_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds; one seed alone gives no interval."""

    mean: float
    low: float | None
    high: float | None
    n: int

    def transformed(self, function: Callable[[float], float]) -> Estimate:
        """The estimate of a monotonic function of the figure."""
        if self.low is None or self.high is None:
            return Estimate(function(self.mean), None, None, self.n)
        low, high = sorted((function(self.low), function(self.high)))
        return Estimate(function(self.mean), low, high, self.n)


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Is `first` different from `second`? The effect is the ratio first/second."""

    first: str
    second: str
    ratio: Estimate
    p: float | None  # of the paired t test on log ratios; none with one seed
    p_adjusted: float | None = None  # Holm, over the family it was tested in

    @property
    def significant(self) -> bool:
        p = self.p if self.p_adjusted is None else self.p_adjusted
        return p is not None and p < SIGNIFICANT

    @property
    def identical(self) -> bool:
        """The same figure in every seed."""
        ends = (self.ratio.mean, self.ratio.low or 1.0, self.ratio.high or 1.0)
        return all(abs(math.log(end)) < _SAME for end in ends)

    @property
    def verdict(self) -> str:
        """The verdict on figures of which less is better."""
        if self.p is None:
            return "–"
        if self.identical:
            return IDENTICAL
        if self.significant:
            return f"{self.first if self.ratio.mean < 1 else self.second} is better"
        return "too few seeds" if self.ratio.n < ENOUGH_SEEDS else NOT_DISTINGUISHED

    def reversed(self) -> PairedTest:
        """`second` over `first`."""
        inverse = self.ratio.transformed(lambda ratio: 1 / ratio)
        return PairedTest(self.second, self.first, inverse, self.p, self.p_adjusted)


def estimate(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate | None:
    """The mean with its Student t interval; None without values."""
    n = len(values)
    if n == 0:
        return None
    mean = math.fsum(values) / n
    if n == 1:
        return Estimate(mean, None, None, n)
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1) * stats.sem(values))
    return Estimate(mean, mean - half, mean + half, n)


def ratio(
    first: Mapping[int, float], second: Mapping[int, float], *, confidence: float = CONFIDENCE
) -> Estimate | None:
    """first/second over the seeds that both have: the geometric mean and its t interval.

    None when they share no seed, or when a figure is not above 0 and has no logarithm.
    """
    mean = estimate(_log_ratios(first, second), confidence)
    return mean and mean.transformed(math.exp)


def paired_test(
    names: tuple[str, str], first: Mapping[int, float], second: Mapping[int, float]
) -> PairedTest | None:
    """The paired t test on the logarithms. None when there is no ratio."""
    effect = ratio(first, second)
    if effect is None:
        return None
    return PairedTest(*names, effect, _p_value(_log_ratios(first, second)))


def find_test(tests: Sequence[PairedTest], first: str, second: str) -> PairedTest | None:
    """first over second, in whichever direction it was tested."""
    for test in tests:
        if (test.first, test.second) == (first, second):
            return test
        if (test.first, test.second) == (second, first):
            return test.reversed()
    return None


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: keeps the family-wise error rate."""
    order = np.argsort(p_values, kind="stable")
    stepped = np.array(p_values)[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.maximum.accumulate(np.minimum(stepped, 1.0))
    return [float(p) for p in adjusted]


def corrected(tests: Sequence[PairedTest]) -> list[PairedTest]:
    """The family of tests, each with its p after Holm. Tests of the same ratios count once, and
    figures that are the same in every seed do not count."""
    family = {_ratios(test): test.p for test in tests if test.p is not None and not test.identical}
    adjusted = dict(zip(family, holm([*family.values()]), strict=True))
    return [replace(test, p_adjusted=adjusted.get(_ratios(test), test.p)) for test in tests]


def _ratios(test: PairedTest) -> tuple[str, ...]:
    """A key that is the same for tests of the same ratios, up to rounding."""
    numbers = (test.p, test.ratio.mean, test.ratio.low, test.ratio.high)
    return tuple(f"{number or 0.0:.9g}" for number in numbers)


def _log_ratios(first: Mapping[int, float], second: Mapping[int, float]) -> list[float]:
    pairs = [(first[seed], second[seed]) for seed in sorted(first.keys() & second.keys())]
    if not all(a > 0 and b > 0 and math.isfinite(a) and math.isfinite(b) for a, b in pairs):
        return []
    return [math.log(a / b) for a, b in pairs]


def _p_value(logs: Sequence[float]) -> float | None:
    if len(logs) < 2:
        return None
    if all(abs(log) < _SAME for log in logs):
        return 1.0
    if max(logs) - min(logs) < _SAME:  # exactly the same ratio in every seed
        return 0.0
    return float(stats.ttest_1samp(logs, 0.0).pvalue)
