"""A measured platform with the results of real runs added to its measurements.

A result is a measurement at the nearest measured size: what counts is its ratio to the time that
the curve gives for its own size. With n measurements of mean 1 and deviation d before, and m ratios
of mean r and deviation s, the mean becomes (n + m r) / (n + m), and the deviation that of all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from services.lab.platforms.imported import Imported
from shared.domain.measured_times import Curve, MeasuredTimes
from shared.domain.spec import RunSpec
from shared.errors import SpecError
from shared.platforms.platform_file import PlatformFile
from shared.store.client import Store
from shared.store.tasks import read_tasks

SPEC = "SELECT spec FROM runs FINAL WHERE run = {run:String}"
# Tasks that ran completely on one device.
RESULTS = """
    SELECT task_id, if(gpu_time > 0, device, cpu) AS device, time - transfer_time AS seconds
    FROM scheduler_results FINAL
    WHERE run = {run:String} AND status = 'ok' AND attempt >= 1
      AND (gpu_time > 0) != (cpu_time > 0) AND time > transfer_time
"""


@dataclass(frozen=True, slots=True)
class RealResult:
    kind: str
    type: str
    size: float
    seconds: float  # without the transfer


def results_of_run(store: Store, run: str) -> list[RealResult]:
    rows = store.query(SPEC, {"run": run})
    if not rows:
        raise SpecError([f"no run {run} is stored"])
    spec = RunSpec.parse(json.loads(rows[0]["spec"]))
    tasks = read_tasks(store, run)
    if not tasks.kind:
        return []
    row_of = {int(task_id): row for row, task_id in enumerate(tasks.task_id)}
    platform = spec.platform
    results = []
    for result in store.query(RESULTS, {"run": run}):
        row = row_of[result["task_id"]]
        type_ = platform.types[platform.type_of[result["device"]]].name
        results.append(
            RealResult(tasks.kind[row], type_, float(tasks.size[row]), result["seconds"])
        )
    return results


def refined(
    platform: PlatformFile, results: Sequence[RealResult]
) -> tuple[Imported, list[dict[str, Any]]]:
    """The platform, and by curve how many results it got and their mean ratio to the curve."""
    by_curve: dict[tuple[str, str], list[RealResult]] = {}
    for result in results:
        by_curve.setdefault((result.kind, result.type), []).append(result)
    unknown = by_curve.keys() - {(curve.kind, curve.type) for curve in platform.times}
    if unknown:
        kind, type_ = min(unknown)
        raise SpecError(
            [f"platform {platform.name} has no times of {kind} on {type_}: another platform's run?"]
        )
    curves, changed = [], []
    for curve in platform.times:
        own = by_curve.get((curve.kind, curve.type), [])
        if not own:
            curves.append(curve)
            continue
        ratios = _ratios(curve, own)
        curves.append(_refined_curve(curve, own, ratios))
        changed.append(
            {
                "kind": curve.kind,
                "type": curve.type,
                "results": len(own),
                "ratio": float(ratios.mean()),
            }
        )
    fields = platform.model_dump(mode="json", exclude_unset=True, exclude={"times", "assumed"})
    fields["sources"] = [
        *platform.sources,
        f"{len(results)} results of real runs, added at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    ]
    return Imported(fields, tuple(curves), assumed=list(platform.assumed)), changed


def _ratios(curve: Curve, results: Sequence[RealResult]) -> np.ndarray[Any, np.dtype[np.float64]]:
    expected = MeasuredTimes([curve], [curve.type]).seconds(
        [curve.kind] * len(results), np.array([result.size for result in results])
    )[:, 0]
    return np.asarray([result.seconds for result in results] / expected)


def _refined_curve(
    curve: Curve, results: Sequence[RealResult], ratios: np.ndarray[Any, np.dtype[np.float64]]
) -> Curve:
    sizes = np.log(curve.sizes)
    nearest = np.array([int(abs(sizes - math.log(each.size)).argmin()) for each in results])
    seconds, counts = list(curve.seconds), list(curve.counts or (1,) * len(curve.sizes))
    deviations = list(curve.deviations or (0.0,) * len(curve.sizes))
    for point in np.unique(nearest):
        new, n = ratios[nearest == point], counts[point]
        total = n + len(new)
        middle = (n + new.sum()) / total
        # Sums of squared distances from the new mean, of the old measurements and the new ones.
        squares = n * (deviations[point] ** 2 + (1 - middle) ** 2) + ((new - middle) ** 2).sum()
        seconds[point] *= float(middle)
        deviations[point] = float(math.sqrt(squares / total) / middle)
        counts[point] = total
    return curve.model_copy(
        update={
            "seconds": tuple(float(f"{each:.4g}") for each in seconds),
            "deviations": tuple(float(f"{each:.4g}") for each in deviations),
            "counts": tuple(counts),
        }
    )
