"""The workload that learners are pre-trained on, fitted to the first part of a trace.

The trainer draws pre-training tasks from the run's workload. A fitted one has the widths of the
first tasks of the trace and the distribution of their sizes, intensities and memory; where task
times are measured, their kinds, each with its own share, sizes, widths and memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shared.domain.spec import RunSpec
from shared.domain.tasks import LARGEST, Floats, Integers, Tasks, take


def fitted_workload(tasks: Tasks, spec: RunSpec) -> dict[str, Any]:
    """The fields of a workload like these tasks."""
    workload: dict[str, Any] = {
        "divisible": tasks.divisible is None or bool(tasks.divisible.mean() > 0.5)
    }
    span = float(tasks.arrival_time[-1] - tasks.arrival_time[0])
    if span > 0:
        workload["arrival_rate"] = len(tasks) / span
    if spec.platform.measured is not None:
        return {**workload, "kinds": _kinds(tasks)}
    mix = {
        "size": _log_normal(tasks.size),
        "intensity": _intensity(tasks.compute_intensity),
        "memory": {"values": _memory(tasks.memory_required)},
    }
    return {**workload, "mix": mix, "widths": _widths(tasks.width)}


def _kinds(tasks: Tasks) -> list[dict[str, Any]]:
    names, kind = np.unique(np.asarray(tasks.kind, dtype=np.str_), return_inverse=True)
    shares = []
    for number, name in enumerate(names.tolist()):
        same = take(tasks, np.flatnonzero(kind == number))
        shares.append(
            {
                "kind": name,
                "weight": len(same),
                "size": _log_normal(same.size),
                "widths": _widths(same.width),
                "memory_mb_per_size": float(same.memory_required.sum() / same.size.sum()),
            }
        )
    return shares


def _widths(width: Integers | None) -> list[dict[str, int]]:
    """None: one device each."""
    if width is None:
        return []
    widths, count = np.unique(width, return_counts=True)
    pairs = zip(widths.tolist(), count.tolist(), strict=True)
    return [{"width": each, "weight": weight} for each, weight in pairs]


def _log_normal(values: Floats) -> dict[str, Any]:
    logs = np.log(values)
    return {
        "kind": "lognormal",
        "median": float(np.exp(logs.mean())),
        "sigma": float(logs.std()),
        "high": float(min(values.max(), LARGEST)),
    }


def _memory(values: Floats) -> dict[str, Any]:
    """Log-normal where there are two or more different amounts above 0."""
    above = values[values > 0]
    if len(np.unique(above)) < 2:
        return {"kind": "uniform", "low": float(values.min()), "high": float(values.max())}
    return _log_normal(above)


def _intensity(values: Floats) -> dict[str, Any]:
    """Two bells, divided at the middle of the range."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        return {"kind": "uniform", "low": low, "high": high}
    upper = values > (low + high) / 2
    centres = np.where(upper, values[upper].mean(), values[~upper].mean())
    return {
        "kind": "bimodal",
        "low": float(values[~upper].mean()),
        "high": float(values[upper].mean()),
        "spread": float(np.sqrt(((values - centres) ** 2).mean())),
        "high_share": float(upper.mean()),
    }
