"""The features of a task that learners use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shared.domain.portable_math import log
from shared.domain.tasks import Tasks

Matrix = NDArray[np.float32]

FOREST_FEATURES = (
    "size",
    "compute_intensity",
    "memory_required",
    "memory_per_size",
    "intensity_per_memory",
)
AGENT_FEATURES = ("log_size", "compute_intensity", "log_memory")


def forest_features(tasks: Tasks) -> Matrix:
    """One row per task, in the order of FOREST_FEATURES."""
    # A task may need no memory at all.
    memory = np.maximum(tasks.memory_required, 1e-3)
    columns = (
        tasks.size,
        tasks.compute_intensity,
        tasks.memory_required,
        tasks.memory_required / tasks.size,
        tasks.compute_intensity / memory,
    )
    return np.column_stack(columns).astype(np.float32)


def agent_state(tasks: Tasks) -> Matrix:
    """One row per task, in the order of AGENT_FEATURES. Logarithms, since both have long tails; the
    network normalises with the constants it was made with."""
    columns = (log(tasks.size), tasks.compute_intensity, log(1.0 + tasks.memory_required))
    return np.column_stack(columns).astype(np.float32)
