"""Task times from measured tables: one curve of seconds over size for each kind and device type.

Between two measured sizes the time follows a straight line in log-log; beyond them the line of the
two nearest sizes is continued, and `outside` tells which tasks that concerns. A curve of one point
is proportional to the size.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from pydantic import Field, model_validator

from shared.domain.portable_math import exp, log
from shared.domain.spec_model import NonNegative, Positive, SpecModel, problem_at
from shared.domain.tasks import Bools, Floats, Integers

NO_CURVE = -1

LONGEST_KIND = 100  # characters

# Sizes that differ by less cannot be told apart by their logarithms.
SMALLEST_STEP = 1e-9


class Curve(SpecModel):
    """What was measured of one kind of task on one device type."""

    kind: str = Field(min_length=1, max_length=LONGEST_KIND)
    type: str
    sizes: tuple[Positive, ...] = Field(min_length=1, description="rising")
    seconds: tuple[Positive, ...] = Field(description="mean at each size, without transfers")
    deviations: tuple[NonNegative, ...] = Field(
        default=(), description="standard deviation over the mean at each size; left out: unknown"
    )
    counts: tuple[int, ...] = Field(default=(), description="measurements at each size")

    @model_validator(mode="after")
    def _columns_match(self) -> Curve:
        for name in ("seconds", "deviations", "counts"):
            values = getattr(self, name)
            if len(values) != len(self.sizes) and (values or name == "seconds"):
                raise problem_at(f"{len(values)} values for {len(self.sizes)} sizes", name)
        for number, (before, size) in enumerate(pairwise(self.sizes), 1):
            if size < before * (1 + SMALLEST_STEP):
                message = f"sizes must rise from one to the next ({size:g} after {before:g})"
                raise problem_at(message, "sizes", number)
        return self


class _Steps:
    """The numbers where the next piece of each curve begins. The pieces of all curves are numbered
    one after the other."""

    def __init__(self, edges: Sequence[Floats]) -> None:
        self._edges = np.concatenate(edges)
        self._count = np.array([len(each) for each in edges])
        self._first = np.cumsum(self._count) - self._count

    def piece(self, curve: Integers, x: Floats) -> Integers:
        """The piece of each curve that x is in: a binary search for all at once."""
        low, high, first = np.zeros(curve.shape, np.int64), self._count[curve], self._first[curve]
        for _ in range(int(self._count.max()).bit_length()):
            middle = (low + high) >> 1
            edge = self._edges[np.minimum(first + middle, len(self._edges) - 1)]
            beyond = (low < high) & (edge <= x)
            low, high = np.where(beyond, middle + 1, low), np.where(beyond, high, middle)
        return np.asarray(first + curve + low)


class MeasuredTimes:
    """The curves of a platform, ready to look up for many tasks at once."""

    def __init__(self, curves: Sequence[Curve], types: Sequence[str]) -> None:
        self.kinds = tuple(dict.fromkeys(curve.kind for curve in curves))
        self._number = {kind: number for number, kind in enumerate(self.kinds)}
        # Which curve a kind (row) has on a type (column); the last row is of unknown kinds.
        self._curve = np.full((len(self.kinds) + 1, len(types)), NO_CURVE)
        column = {name: number for number, name in enumerate(types)}
        for number, curve in enumerate(curves):
            self._curve[self._number[curve.kind], column[curve.type]] = number
        self._low = np.array([curve.sizes[0] for curve in curves])
        self._high = np.array([curve.sizes[-1] for curve in curves])
        x = [log(np.array(curve.sizes)) for curve in curves]
        y = [log(np.array(curve.seconds)) for curve in curves]
        # Lines from each point to the next; of a single point with exponent 1.
        self._lines = _Steps([each[1:-1] for each in x])
        self._x, self._y = (
            np.concatenate([each[: max(len(each) - 1, 1)] for each in z]) for z in (x, y)
        )
        self._dx, self._dy = (
            np.concatenate([np.diff(each) if len(each) > 1 else np.ones(1) for each in z])
            for z in (x, y)
        )
        # A deviation holds half-way to the next point.
        self._nearest = _Steps([(each[1:] + each[:-1]) / 2 for each in x])
        self._deviation = np.concatenate(
            [curve.deviations or (0.0,) * len(curve.sizes) for curve in curves]
        )

    def sizes_of(self, kind: str) -> tuple[float, float]:
        """The smallest and the largest measured size of a kind, on any device type."""
        curves = self._curve[self._number[kind]]
        curves = curves[curves != NO_CURVE]
        return float(self._low[curves].min()), float(self._high[curves].max())

    def types_of(self, kind: str) -> list[int]:
        """The numbers of the device types that a kind was measured on."""
        measured = self._curve[self._number.get(kind, -1)] != NO_CURVE
        return [int(number) for number in np.flatnonzero(measured)]

    def seconds(self, kind: Sequence[str], size: Floats) -> Floats:
        """One row per task, one column per type; infinite where the kind was never measured."""
        curve, x = self._curves_of(kind), log(size)[:, None]
        line = self._lines.piece(curve, x)
        steps = (x - self._x[line]) / self._dx[line]
        times = exp(self._y[line] + self._dy[line] * steps)
        return np.where(curve == NO_CURVE, np.inf, times)

    def deviation(self, kind: Sequence[str], size: Floats) -> Floats:
        """Relative standard deviation, in the same shape: that of the nearest measured size."""
        curve = self._curves_of(kind)
        deviations = self._deviation[self._nearest.piece(curve, log(size)[:, None])]
        return np.where(curve == NO_CURVE, 0.0, deviations)

    def outside(self, kind: Sequence[str], size: Floats) -> Bools:
        """In the same shape: whether the time is continued beyond the measured sizes."""
        curve, sizes = self._curves_of(kind), size[:, None]
        beyond = (sizes < self._low[curve]) | (sizes > self._high[curve])
        return np.asarray((curve != NO_CURVE) & beyond)

    def _curves_of(self, kind: Sequence[str]) -> Integers:
        numbers = [self._number.get(each, -1) for each in kind]
        return self._curve[np.array(numbers, np.int64)]
