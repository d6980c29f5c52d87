"""Ranks schedulers by a weighted score over time, energy and cost; finds the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared.messages.standing import Standing

# Where the best value is 0 every ratio to it would be infinite: the smallest value above 0 then
# counts as this many times the best.
BEYOND_FREE = 1000.0


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each measure counts."""

    time: float = 1.0
    energy: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Averages:
    """Per task."""

    time: float
    energy: float
    cost: float

    @classmethod
    def of(cls, standing: Standing) -> Averages:
        totals = (standing.total_time, standing.total_energy, standing.total_cost)
        return cls(*(total / standing.tasks for total in totals))


@dataclass(frozen=True, slots=True)
class Place:
    name: str
    rank: int  # equal scores share one
    score: float
    pareto: bool


def scores(averages: Mapping[str, Averages], weights: Weights) -> dict[str, float]:
    """Each scheduler's weighted mean of its ratios to the best value; 1 is best in every measure.

    >>> scores({"a": Averages(1, 4, 1), "b": Averages(2, 2, 1)}, Weights(time=3, energy=1))
    {'a': 1.25, 'b': 1.75}
    """
    total = weights.time + weights.energy + weights.cost
    result = dict.fromkeys(averages, 0.0)
    for measure in ("time", "energy", "cost"):
        weight = getattr(weights, measure) / total
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
    """Schedulers for which no other is better in one measure and as good in the others."""
    return {
        name
        for name, own in averages.items()
        if not any(_dominates(other, own) for other in averages.values())
    }


def _dominates(one: Averages, other: Averages) -> bool:
    a, b = (one.time, one.energy, one.cost), (other.time, other.energy, other.cost)
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def rank(averages: Mapping[str, Averages], weights: Weights) -> list[Place]:
    """Best first; equal scores by name, with the same rank."""
    front = pareto_front(averages)
    ordered = sorted((score, name) for name, score in scores(averages, weights).items())
    places: list[Place] = []
    for position, (score, name) in enumerate(ordered, start=1):
        tied = bool(places) and places[-1].score == score
        places.append(Place(name, places[-1].rank if tied else position, score, name in front))
    return places
