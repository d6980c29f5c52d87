"""A measured platform, refined by the results of real runs.

The profile gives each curve its shape over the sizes. Its level and its spread in a real run are
those of the results: what counts is the ratio of a result to the time that the curve gives for its
size. A curve with few results is moved towards the mean of all curves of its device type, which
counts as `PRIOR_RESULTS` results. The time that schedulers take to decide is the mean time from
arrival to start of the tasks whose device was idle.
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
from shared.domain.hardware.measured_times import Curve, MeasuredTimes
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats
from shared.errors import SpecError
from shared.platforms.platform_file import PlatformFile
from shared.store.client import Store
from shared.store.tasks import read_tasks

SPEC = "SELECT spec FROM runs FINAL WHERE run = {run:String}"
# Tasks that ran completely on one device.
RESULTS = """
    SELECT scheduler, task_id, if(gpu_time > 0, device, cpu) AS device,
           time - transfer_time AS seconds, if(gpu_time > 0, gpu_start, cpu_start) AS start, finish
    FROM scheduler_results FINAL
    WHERE run = {run:String} AND status = 'ok' AND attempt >= 1
      AND (gpu_time > 0) != (cpu_time > 0) AND time > transfer_time
    ORDER BY scheduler, device, start
"""
PRIOR_RESULTS = 10


@dataclass(frozen=True, slots=True)
class RealResult:
    kind: str
    type: str
    size: float
    seconds: float  # without the transfer
    delay: float | None = None  # from arrival to start, if its device was idle when it arrived


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
    busy_until: dict[tuple[str, int], float] = {}  # by scheduler and device
    for result in store.query(RESULTS, {"run": run}):
        row = row_of[result["task_id"]]
        type_ = platform.types[platform.type_of[result["device"]]].name
        served = (str(result["scheduler"]), int(result["device"]))
        arrival = float(tasks.arrival_time[row])
        was_idle = busy_until.get(served, 0.0) <= arrival
        delay = float(result["start"]) - arrival if was_idle else None
        busy_until[served] = float(result["finish"])
        results.append(
            RealResult(tasks.kind[row], type_, float(tasks.size[row]), result["seconds"], delay)
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
    ratios = {
        (curve.kind, curve.type): _ratios(curve, by_curve[curve.kind, curve.type])
        for curve in platform.times
        if (curve.kind, curve.type) in by_curve
    }
    curves, changed = [], []
    for curve in platform.times:
        of_type = [each for (_, type_), each in ratios.items() if type_ == curve.type]
        if not of_type:
            curves.append(curve)
            continue
        own = ratios.get((curve.kind, curve.type), np.empty(0))
        curves.append(_refined_curve(curve, own, np.concatenate(of_type)))
        if len(own):
            changed.append(
                {
                    "kind": curve.kind,
                    "type": curve.type,
                    "results": len(own),
                    "ratio": float(own.mean()),
                }
            )
    fields = platform.model_dump(mode="json", exclude_unset=True, exclude={"times", "assumed"})
    fields["sources"] = [
        *platform.sources,
        f"{len(results)} results of real runs, added at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    ]
    delays = [each.delay for each in results if each.delay is not None]
    if delays:
        decision_s = float(f"{np.mean(delays):.3g}")
        fields["physics"] = {**fields.get("physics", {}), "decision_s": max(decision_s, 0.0)}
    return Imported(fields, tuple(curves), assumed=list(platform.assumed)), changed


def _ratios(curve: Curve, results: Sequence[RealResult]) -> Floats:
    expected = MeasuredTimes([curve], [curve.type]).seconds(
        [curve.kind] * len(results), np.array([result.size for result in results])
    )[:, 0]
    return np.asarray([result.seconds for result in results] / expected)


def _refined_curve(curve: Curve, own: Floats, of_type: Floats) -> Curve:
    """`own`: ratios of this curve's results; `of_type`: of all results on its device type."""
    weight = PRIOR_RESULTS + len(own)
    level = (PRIOR_RESULTS * of_type.mean() + own.sum()) / weight
    prior = ((of_type / of_type.mean() - 1) ** 2).mean()
    squares = PRIOR_RESULTS * prior + ((own / level - 1) ** 2).sum()
    deviation = float(f"{math.sqrt(squares / weight):.4g}")
    counts = curve.counts or (1,) * len(curve.sizes)
    return curve.model_copy(
        update={
            "seconds": tuple(float(f"{each * level:.4g}") for each in curve.seconds),
            "deviations": (deviation,) * len(curve.sizes),
            "counts": tuple(count + len(own) for count in counts),
        }
    )
