"""A batch of tasks and a batch of decisions, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# How many tasks back a parent may lie: the virtual cluster remembers this many finish times.
DEPENDENCY_WINDOW = 256

# Largest size, MB or arrival time: beyond it the physics of one task would drown all the others.
LARGEST = 1e9


@dataclass(frozen=True, slots=True)
class Tasks:
    """Columns of equal length; `parents` has the ids that each task waits for, or is empty
    when no task of the batch waits."""

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
    """What a policy says about each task of a batch. A field left out gets its usual value:
    the GPUs in rotation by task id, no model, no exploration."""

    gpu_fraction: Floats
    gpu: NDArray[np.integer] | None = None
    model_version: int = 0
    explored: NDArray[np.bool_] | None = None
    probability: Floats | None = None


def take(tasks: Tasks, rows: slice) -> Tasks:
    return Tasks(
        tasks.task_id[rows],
        tasks.size[rows],
        tasks.compute_intensity[rows],
        tasks.memory_required[rows],
        tasks.arrival_time[rows],
        tasks.parents[rows],
    )


def concatenate(pieces: Sequence[Tasks]) -> Tasks:
    """One batch of several; parents are left behind, learners do not look at them."""
    return Tasks(
        np.concatenate([piece.task_id for piece in pieces]),
        np.concatenate([piece.size for piece in pieces]),
        np.concatenate([piece.compute_intensity for piece in pieces]),
        np.concatenate([piece.memory_required for piece in pieces]),
        np.concatenate([piece.arrival_time for piece in pieces]),
    )
