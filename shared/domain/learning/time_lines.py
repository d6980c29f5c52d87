"""A straight line in the logarithms for the seconds of a task on each device type, with lines of
their own for kinds of tasks. Trees correct what it leaves; it continues where they have seen no
task.

A kind's line is added to that of the device type, and the line of that kind on that type to both.
Both are shrunk towards 0: of a kind that was never run on a type, its times on the others tell
whether it is slow; of a kind that was never run at all, nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shared.domain.portable_math import log
from shared.domain.tasks import Floats, Integers, Tasks

# Results that say as much about a kind as the assumption that it is like the others.
SHRINK = 1.0
# Enough to make every equation solvable, and too little to be seen.
RIDGE = 1e-6
PASSES = 3


def numbers_of(tasks: Tasks) -> Floats:
    """Log size, intensity and log memory of each task (row)."""
    return np.column_stack(
        [log(tasks.size), tasks.compute_intensity, log(1.0 + tasks.memory_required)]
    )


def kinds_of(tasks: Tasks) -> Sequence[str]:
    return tasks.kind or [""] * len(tasks)


@dataclass(frozen=True, slots=True)
class TimeLines:
    kinds: tuple[str, ...]
    centre: float  # log size that lines of kinds turn around
    line: Floats  # types x 4: constant, log size, intensity, log memory
    of_kind: Floats  # (kinds + 1) x 2: constant and log size; the last row is of unknown kinds
    of_both: Floats  # types x (kinds + 1) x 2
    counts: Floats  # types x (kinds + 1): results

    @classmethod
    def fit(
        cls, kinds: tuple[str, ...], numbers: Floats, kind: Integers, type: Integers, y: Floats,
        types: int,
    ) -> TimeLines:  # fmt: skip
        """`y`: log seconds of each task (row of `numbers`) on the one type that ran it."""
        centre = float(numbers[:, 0].mean())
        x = np.column_stack([np.ones(len(y)), numbers])
        turned = numbers[:, 0] - centre
        both = type * (len(kinds) + 1) + kind
        cells = types * (len(kinds) + 1)
        line, kind_part, both_part = np.zeros((types, 4)), np.zeros(len(y)), np.zeros(len(y))
        of_kind, of_both = np.zeros((len(kinds) + 1, 2)), np.zeros((cells, 2))
        for _ in range(PASSES if len(kinds) > 1 else 1):
            line = _lines(x, type, y - kind_part - both_part, types)
            if len(kinds) > 1:
                rest = y - np.einsum("ij,ij->i", x, line[type])
                of_kind = _shrunk(kind, turned, rest - both_part, len(kinds) + 1)
                kind_part = of_kind[kind, 0] + of_kind[kind, 1] * turned
                of_both = _shrunk(both, turned, rest - kind_part, cells)
                both_part = of_both[both, 0] + of_both[both, 1] * turned
        counts = np.bincount(both, minlength=cells).astype(float)
        shape = types, len(kinds) + 1
        return cls(kinds, centre, line, of_kind, of_both.reshape(*shape, 2), counts.reshape(shape))

    def numbers_of_kinds(self, kinds: Sequence[str]) -> Integers:
        """The row of each task's kind."""
        known = {kind: number for number, kind in enumerate(self.kinds)}
        return np.array([known.get(kind, len(self.kinds)) for kind in kinds], np.int64)

    def kind_parts(self, numbers: Floats, kind: Integers) -> Floats:
        """What a task's kind adds on each type (column)."""
        turned = numbers[:, 0] - self.centre
        of_kind = self.of_kind[kind]
        common = of_kind[:, 0] + of_kind[:, 1] * turned
        own = [each[kind, 0] + each[kind, 1] * turned for each in self.of_both]
        return np.column_stack([common + each for each in own])

    def log_seconds(self, numbers: Floats, kind_parts: Floats) -> Floats:
        """The logarithm of the seconds of each task (row) on each type (column). No matrix product:
        these sums have the same bits on every CPU."""
        columns = [
            each[0] + each[1] * numbers[:, 0] + each[2] * numbers[:, 1] + each[3] * numbers[:, 2]
            for each in self.line
        ]
        return np.column_stack(columns) + kind_parts

    def kind_spread(self) -> float:
        """Deviation between kinds: how wrong an estimate is that knows nothing of the kind."""
        present = self.counts.sum(axis=0)[:-1] > 0
        return float(self.of_kind[:-1][present, 0].std()) if present.sum() > 1 else 0.0


def _lines(x: Floats, type: Integers, y: Floats, types: int) -> Floats:
    """Least squares for each type; a type without results gets the mean line of the others."""
    line, ridge = np.zeros((types, x.shape[1])), RIDGE * np.eye(x.shape[1])
    present = np.bincount(type, minlength=types) > 0
    for number in np.flatnonzero(present):
        rows = type == number
        line[number] = np.linalg.solve(x[rows].T @ x[rows] + ridge, x[rows].T @ y[rows])
    if present.any():
        line[~present] = line[present].mean(axis=0)
    return line


def _shrunk(group: Integers, x: Floats, y: Floats, groups: int) -> Floats:
    """The constant and the slope of each group, by ridge regression."""

    def sums(values: Floats) -> Floats:
        return np.asarray(np.bincount(group, values, groups), np.float64)

    n, sx, sxx = sums(np.ones(len(x))) + SHRINK, sums(x), sums(x * x) + SHRINK
    sy, sxy = sums(y), sums(x * y)
    determinant = n * sxx - sx * sx
    solved = np.column_stack([sxx * sy - sx * sxy, n * sxy - sx * sy])
    return np.asarray(solved / determinant[:, None])
