"""The workload that learners are pre-trained on, fitted to the first part of a trace.

The trainer draws pre-training tasks from the run's workload mix. A fitted mix has the distribution
of sizes, intensities and memory that the first tasks of the trace have; it has no kinds and widths.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shared.domain.tasks import LARGEST, Floats, Tasks


def fitted_workload(tasks: Tasks) -> dict[str, Any]:
    """The fields `mix` and `arrival_rate` of a workload like these tasks."""
    workload: dict[str, Any] = {
        "mix": {
            "size": _log_normal(tasks.size),
            "intensity": _intensity(tasks.compute_intensity),
            "memory": {"values": _memory(tasks.memory_required)},
        }
    }
    span = float(tasks.arrival_time[-1] - tasks.arrival_time[0])
    if span > 0:
        workload["arrival_rate"] = len(tasks) / span
    return workload


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
