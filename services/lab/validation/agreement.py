"""How far simulated figures are from real ones, compared with how far real ones differ.

An error is relative to the mean of the repeated real runs: |simulated / mean - 1|. Their spread is
the largest |real / mean - 1|. Only the part of an error above the spread is the simulation's fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean

import numpy as np
from scipy import stats

from shared.domain.hardware.certificate import Error


@dataclass(frozen=True, slots=True)
class Outcome:
    """The seconds of one scheduler in one run."""

    turnaround: float  # mean over the tasks
    makespan: float


Outcomes = Mapping[str, Outcome]  # by scheduler


@dataclass(frozen=True, slots=True)
class Comparison:
    """One workload: its real runs and its simulation."""

    real: Sequence[Outcomes]
    simulated: Outcomes


@dataclass(frozen=True, slots=True)
class Figure:
    """A simulated figure and the same one of repeated real runs."""

    simulated: float
    real: Sequence[float]

    @property
    def deviation(self) -> float:
        """Above 0: the simulation says more than was measured."""
        return self.simulated / mean(self.real) - 1

    @property
    def spread(self) -> float:
        middle = mean(self.real)
        return max(abs(each / middle - 1) for each in self.real)


@dataclass(frozen=True, slots=True)
class Order:
    """The order of the schedulers of one workload or of several, by mean turnaround."""

    kendall_tau: float | None  # mean over the workloads; None: fewer than two schedulers
    pairs: int  # whose real runs differ by more than their repetitions
    kept: int  # of them in the same order in the simulation


def error_of(figures: Sequence[Figure]) -> Error:
    deviations = np.abs([figure.deviation for figure in figures])
    spreads = np.array([figure.spread for figure in figures])
    return Error(
        median=_digits(np.median(deviations)),
        p90=_digits(np.percentile(deviations, 90)),
        spread=_digits(np.median(spreads)),
        beyond=_digits(np.median(np.maximum(deviations - spreads, 0))),
    )


def bias_of(figures: Sequence[Figure]) -> float:
    """Median with its sign."""
    return _digits(np.median([figure.deviation for figure in figures]))


def figures_of(comparisons: Iterable[Comparison], measure: str, scheduler: str) -> list[Figure]:
    return [
        Figure(
            getattr(each.simulated[scheduler], measure),
            [getattr(outcomes[scheduler], measure) for outcomes in each.real],
        )
        for each in comparisons
    ]


def order_of(comparisons: Sequence[Comparison]) -> Order:
    taus, pairs, kept = [], 0, 0
    for each in comparisons:
        names = sorted(each.simulated)
        real = {name: [outcomes[name].turnaround for outcomes in each.real] for name in names}
        simulated = {name: each.simulated[name].turnaround for name in names}
        tau = stats.kendalltau(
            [mean(real[name]) for name in names], [simulated[name] for name in names]
        ).statistic
        if np.isfinite(tau):
            taus.append(float(tau))
        for first, second in combinations(names, 2):
            if max(real[first]) < min(real[second]):
                better, worse = first, second
            elif max(real[second]) < min(real[first]):
                better, worse = second, first
            else:
                continue
            pairs += 1
            kept += simulated[better] < simulated[worse]
    return Order(_digits(mean(taus)) if taus else None, pairs, kept)


def _digits(value: float | np.floating) -> float:
    return float(f"{float(value):.4g}")
