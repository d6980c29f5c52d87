"""Who is best: a weighted score over time, energy and cost, and the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Where the best spends nothing, no multiple of it is enough for the others, and JSON has no
# infinity: the least that is not nothing counts as this many times the best.
BEYOND_FREE = 1000.0


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each measure counts."""

    time: float = 1.0
    energy: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Averages:
    """What a task takes on average."""

    time: float
    energy: float
    cost: float


@dataclass(frozen=True, slots=True)
class Place:
    name: str
    rank: int  # equal scores share one
    score: float
    pareto: bool


def scores(averages: Mapping[str, Averages], weights: Weights) -> dict[str, float]:
    """How many times the best of all each scheduler takes, by weight: 1 is best in all that counts.

    >>> scores({"a": Averages(1, 4, 1), "b": Averages(2, 2, 1)}, Weights(time=3, energy=1))
    {'a': 1.25, 'b': 1.75}
    """
    total = weights.time + weights.energy + weights.cost
    found = dict.fromkeys(averages, 0.0)
    for measure in ("time", "energy", "cost"):
        weight = getattr(weights, measure) / total
        values = {name: getattr(average, measure) for name, average in averages.items()}
        unit, least = _unit(list(values.values()))
        for name, value in values.items():
            found[name] += weight * (value / unit if value > least else 1.0)
    return found


def _unit(values: list[float]) -> tuple[float, float]:
    """What the ratios are of, and the least of all, whose ratio is 1."""
    least = min(values, default=0.0)
    spent = [value for value in values if value > 0]
    return (least if least > 0 else min(spent, default=1.0) / BEYOND_FREE), least


def pareto_front(averages: Mapping[str, Averages]) -> set[str]:
    """The schedulers that no other beats in one measure without losing in another."""
    return {
        name
        for name, own in averages.items()
        if not any(_dominates(other, own) for other in averages.values())
    }


def _dominates(one: Averages, other: Averages) -> bool:
    mine, theirs = (one.time, one.energy, one.cost), (other.time, other.energy, other.cost)
    return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))


def rank(averages: Mapping[str, Averages], weights: Weights) -> list[Place]:
    """Best first; equal scores by name, with the same rank."""
    front = pareto_front(averages)
    ordered = sorted((score, name) for name, score in scores(averages, weights).items())
    places: list[Place] = []
    for position, (score, name) in enumerate(ordered, start=1):
        tied = bool(places) and places[-1].score == score
        places.append(Place(name, places[-1].rank if tied else position, score, name in front))
    return places
