"""Ranks schedulers by a weighted score over turnaround, execution time, energy and cost.

References (the Oracle, the clairvoyant scheduler) are listed at the place of their score, but ranks
and the Pareto front are those of the competitors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from shared.domain.schedulers import REFERENCES
from shared.messages.standing import Standing

# Where the best value is 0 every ratio to it would be infinite: the smallest value above 0 then
# counts as this many times the best.
BEYOND_FREE = 1000.0


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each measure counts."""

    turnaround: float = 0.0
    time: float = 0.0
    energy: float = 0.0
    cost: float = 0.0

    @property
    def total(self) -> float:
        return self.turnaround + self.time + self.energy + self.cost


MEASURES = tuple(field.name for field in fields(Weights))
# What counts unless a client gives weights of its own.
DEFAULT_WEIGHTS = Weights(turnaround=1.0)


@dataclass(frozen=True, slots=True)
class Averages:
    """The averages of a scheduler per task."""

    turnaround: float
    time: float  # of execution
    energy: float
    cost: float

    @classmethod
    def of(cls, standing: Standing) -> Averages:
        totals = (getattr(standing, f"total_{measure}") for measure in MEASURES)
        return cls(*(total / standing.tasks for total in totals))

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(getattr(self, measure) for measure in MEASURES)


@dataclass(frozen=True, slots=True)
class Place:
    name: str
    rank: int | None  # among competitors, equal scores share one; None: a reference
    score: float
    pareto: bool


def scores(averages: Mapping[str, Averages], weights: Weights) -> dict[str, float]:
    """Each scheduler's weighted mean of its ratios to the best value; 1 is best in every measure.

    >>> scores({"a": Averages(1, 1, 4, 1), "b": Averages(2, 2, 2, 1)}, Weights(3, energy=1))
    {'a': 1.25, 'b': 1.75}
    """
    result = dict.fromkeys(averages, 0.0)
    for measure in MEASURES:
        weight = getattr(weights, measure) / weights.total
        values = {name: getattr(average, measure) for name, average in averages.items()}
        unit, least = _unit(list(values.values()))
        for name, value in values.items():
            result[name] += weight * (value / unit if value > least else 1.0)
    return result


def _unit(values: list[float]) -> tuple[float, float]:
    """The divisor of the ratios, and the smallest value, whose ratio is 1."""
    least = min(values, default=0.0)
    spent = [value for value in values if value > 0]
    return (least if least > 0 else min(spent, default=1.0) / BEYOND_FREE), least


def pareto_front(averages: Mapping[str, Averages]) -> set[str]:
    """Competitors for which no other is better in one measure and as good in the others."""
    competitors = {name: own for name, own in averages.items() if name not in REFERENCES}
    return {
        name
        for name, own in competitors.items()
        if not any(_dominates(other, own) for other in competitors.values())
    }


def _dominates(one: Averages, other: Averages) -> bool:
    return one != other and all(a <= b for a, b in zip(one.values, other.values, strict=True))


def rank(averages: Mapping[str, Averages], weights: Weights) -> list[Place]:
    """The places of the schedulers, best first. Equal scores share a rank, sorted by name."""
    front = pareto_front(averages)
    of = scores(averages, weights)
    competitors = sorted(score for name, score in of.items() if name not in REFERENCES)
    return [
        Place(
            name,
            None if name in REFERENCES else competitors.index(score) + 1,
            score,
            name in front,
        )
        for score, name in sorted((score, name) for name, score in of.items())
    ]
