"""The question of a capacity search: a field of the spec, its values, and the target."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.errors import SpecError

# By the name in a target: the figure of /api/runs/{run}/figures.
FIGURES = {
    "mean_turnaround": "avg_turnaround",
    "p50_turnaround": "turnaround_p50",
    "p95_turnaround": "turnaround_p95",
    "p99_turnaround": "turnaround_p99",
    "mean_wait": "avg_wait",
    "mean_time": "avg_time",
    "mean_energy": "avg_energy",
    "mean_cost": "avg_cost",
    "makespan": "makespan",
    "failed": "failed",
}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_TARGET = re.compile(r"\s*([a-z0-9_]+)\s*(<=|>=|<|>)\s*(\S+)\s*")
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?::(\d+))?")
MOST_VALUES = 100_000


@dataclass(frozen=True, slots=True)
class Target:
    """`p95_turnaround<=2`"""

    figure: str
    comparison: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Target:
        example = "such as p95_turnaround<=2 (seconds, joules, dollars)"
        match = _TARGET.fullmatch(text)
        if match is None:
            raise SpecError([f"target: {text!r} is not FIGURE<=NUMBER, {example}"])
        name, comparison, number = match.groups()
        if name not in FIGURES:
            raise SpecError([f"target: unknown figure {name!r}; allowed: {', '.join(FIGURES)}"])
        try:
            limit = float(number)
        except ValueError:
            raise SpecError([f"target: {number!r} is not a number, {example}"]) from None
        return cls(name, comparison, limit)

    def value(self, figures: dict[str, Any]) -> float:
        return float(figures[FIGURES[self.figure]])

    def is_met(self, value: float) -> bool:
        return COMPARISONS[self.comparison](value, self.limit)

    def __str__(self) -> str:
        return f"{self.figure} {self.comparison} {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Variation:
    """`cluster.devices.1.count=1..64`"""

    path: str
    values: range

    @classmethod
    def parse(cls, text: str) -> Variation:
        path, equals, values = (part.strip() for part in text.partition("="))
        match = _RANGE.fullmatch(values)
        if not (path and equals and match):
            raise SpecError(
                [f"vary: {text!r} is not PATH=FIRST..LAST, such as cluster.gpus=1..64 (or 1..64:2)"]
            )
        first, last, step = (int(number or 1) for number in match.groups())
        if last < first or step < 1:
            raise SpecError([f"vary: {values} has no values: the last is below the first"])
        numbers = range(first, last + 1, step)
        if len(numbers) > MOST_VALUES:
            raise SpecError([f"vary: {len(numbers):,} values; at most {MOST_VALUES:,}: use a step"])
        return cls(path, numbers)

    def change(self, value: int) -> str:
        return f"{self.path}={value}"
