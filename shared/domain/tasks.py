"""A batch of tasks and a batch of decisions, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# How many tasks back a parent may be: the virtual cluster keeps this many finish times.
DEPENDENCY_WINDOW = 256

# Largest size, MB or arrival time: a larger task would dominate every sum.
LARGEST = 1e9


@dataclass(frozen=True, slots=True)
class Tasks:
    """Columns of equal length; `parents` has the ids that each task depends on, or is empty when no
    task of the batch depends on another."""

    task_id: Integers
    size: Floats
    compute_intensity: Floats
    memory_required: Floats
    arrival_time: Floats
    parents: Sequence[Sequence[int]] = ()

    def __len__(self) -> int:
        return len(self.task_id)


@dataclass(frozen=True, slots=True)
class Decisions:
    """A policy's decision for each task of a batch. Defaults: the GPUs in rotation by task id, no
    model, no exploration."""

    gpu_fraction: Floats
    gpu: NDArray[np.integer] | None = None
    model_version: int = 0
    explored: NDArray[np.bool_] | None = None
    probability: Floats | None = None


def take(tasks: Tasks, rows: slice) -> Tasks:
    return Tasks(**{field.name: getattr(tasks, field.name)[rows] for field in fields(Tasks)})


def concatenate(batches: Sequence[Tasks]) -> Tasks:
    """One batch of several, without their parents: learners do not use them."""
    columns: dict[str, Any] = {
        field.name: np.concatenate([getattr(batch, field.name) for batch in batches])
        for field in fields(Tasks)
        if field.name != "parents"
    }
    return Tasks(**columns)
