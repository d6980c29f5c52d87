"""How well measured curves predict a size that was not measured.

Each size of a curve is left out in turn and predicted from the others. Sizes between two others are
interpolated, the first and the last one are beyond the others: there the line is continued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from shared.domain.hardware.measured_times import Curve, MeasuredTimes
from shared.domain.tasks import Floats


@dataclass(frozen=True, slots=True)
class Prediction:
    kind: str
    type: str
    size: float
    inside: bool  # between two measured sizes
    error: float  # predicted over measured seconds, less 1


def reproduction_error(curves: Sequence[Curve]) -> float:
    """The largest relative difference of a looked-up time from the table's."""
    worst = 0.0
    for curve in curves:
        looked_up = _look_up(curve, curve.sizes)
        worst = max(worst, float(np.max(np.abs(looked_up / np.array(curve.seconds) - 1))))
    return worst


def by_kind(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """For each kind its points and four errors: the median and the largest of the sizes inside,
    the median and the largest of those at the ends. None where no curve has three sizes."""
    predicted = predictions(curves)
    kinds = []
    for kind in dict.fromkeys(curve.kind for curve in curves):
        errors: list[float | None] = []
        for inside in (True, False):
            own = [
                abs(each.error) for each in predicted if (each.kind, each.inside) == (kind, inside)
            ]
            errors += [median(own), max(own)] if own else [None, None]
        points = sum(len(curve.sizes) for curve in curves if curve.kind == kind)
        kinds.append({"kind": kind, "points": points, "errors": errors})
    return kinds


def predictions(curves: Sequence[Curve]) -> list[Prediction]:
    """Predictions for curves with three sizes or more."""
    rows = []
    for curve in curves:
        last = len(curve.sizes) - 1
        for number, size in enumerate(curve.sizes) if last >= 2 else ():
            predicted = _look_up(_without(curve, number), [size])[0]
            error = float(predicted / curve.seconds[number] - 1)
            rows.append(Prediction(curve.kind, curve.type, size, 0 < number < last, error))
    return rows


def _without(curve: Curve, number: int) -> Curve:
    return Curve(
        kind=curve.kind,
        type=curve.type,
        sizes=curve.sizes[:number] + curve.sizes[number + 1 :],
        seconds=curve.seconds[:number] + curve.seconds[number + 1 :],
    )


def _look_up(curve: Curve, sizes: Sequence[float]) -> Floats:
    measured = MeasuredTimes([curve], [curve.type])
    return measured.seconds([curve.kind] * len(sizes), np.array(sizes, float))[:, 0]
