"""Statistics over a few seeds: means, ratios and paired tests, with 95 % confidence intervals.

The seed determines the tasks, so schedulers are compared in pairs of the same seed. Times are
compared by their ratio; the t interval and the paired t test use its logarithm, so that a ratio
and its inverse give the same result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scipy import stats

CONFIDENCE = 0.95
SIGNIFICANT = 0.05

# Logarithms of ratios closer than this are rounding, not a difference.
_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds; one seed alone gives no interval."""

    mean: float
    low: float | None
    high: float | None
    n: int


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
        low, high = self.ratio.low, self.ratio.high
        alike = abs(math.log(self.ratio.mean)) < _SAME
        return alike and (low is None or high is None or high - low < 1e-9)

    def reversed(self) -> PairedTest:
        """`second` over `first`."""
        low, high = self.ratio.low, self.ratio.high
        inverse = Estimate(
            1 / self.ratio.mean,
            None if high is None else 1 / high,
            None if low is None else 1 / low,
            self.ratio.n,
        )
        return PairedTest(self.second, self.first, inverse, self.p, self.p_adjusted)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "significant": self.significant}


def estimate(values: Sequence[float]) -> Estimate | None:
    """The mean with its Student t interval; None without values."""
    n = len(values)
    if n == 0:
        return None
    mean = math.fsum(values) / n
    half = _half_width(values, mean)
    if half is None:
        return Estimate(mean, None, None, n)
    return Estimate(mean, mean - half, mean + half, n)


def ratio(first: Mapping[int, float], second: Mapping[int, float]) -> Estimate | None:
    """first/second over the seeds that both have: the geometric mean and its t interval.

    None when they share no seed, or when a figure is not above 0 and has no logarithm.
    """
    logs = _log_ratios(first, second)
    mean = estimate(logs) if logs else None
    if mean is None:
        return None
    return Estimate(
        math.exp(mean.mean),
        None if mean.low is None else math.exp(mean.low),
        None if mean.high is None else math.exp(mean.high),
        mean.n,
    )


def paired_test(
    names: tuple[str, str], first: Mapping[int, float], second: Mapping[int, float]
) -> PairedTest | None:
    """The paired t test on the logarithms. None when there is no ratio."""
    effect = ratio(first, second)
    if effect is None:
        return None
    logs = _log_ratios(first, second)
    return PairedTest(*names, effect, _p_value(logs))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: keeps the family-wise error rate."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def corrected(tests: Sequence[PairedTest]) -> list[PairedTest]:
    """The family of tests, each with its p after Holm; tests without a p are left out of it."""
    members = [i for i, test in enumerate(tests) if test.p is not None]
    adjusted = dict(zip(members, holm([tests[i].p or 0.0 for i in members]), strict=True))
    return [
        PairedTest(test.first, test.second, test.ratio, test.p, adjusted.get(i))
        for i, test in enumerate(tests)
    ]


def _log_ratios(first: Mapping[int, float], second: Mapping[int, float]) -> list[float]:
    pairs = [(first[seed], second[seed]) for seed in sorted(first.keys() & second.keys())]
    if not all(a > 0 and b > 0 and math.isfinite(a) and math.isfinite(b) for a, b in pairs):
        return []
    return [math.log(a / b) for a, b in pairs]


def _half_width(values: Sequence[float], mean: float) -> float | None:
    n = len(values)
    if n < 2:
        return None
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * _deviation(values, mean) / math.sqrt(n)


def _deviation(values: Sequence[float], mean: float) -> float:
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _p_value(logs: Sequence[float]) -> float | None:
    n = len(logs)
    if n < 2:
        return None
    mean = math.fsum(logs) / n
    if all(abs(log) < _SAME for log in logs):
        return 1.0
    error = _deviation(logs, mean) / math.sqrt(n)
    if error < _SAME * abs(mean):  # exactly the same ratio in every seed
        return 0.0
    return float(2 * stats.t.sf(abs(mean) / error, n - 1))
