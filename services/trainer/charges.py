"""What a result counts for a learner. A failed task took no time, which must not look good."""

from __future__ import annotations

import numpy as np

from shared.physics import Bools, price
from shared.spec import RunSpec
from shared.tasks import Floats, Tasks

# Somebody has to run a failed task again, on the CPU: worse than to have sent it there at once.
FAILED = 2.0


def charged(
    tasks: Tasks, time: Floats, energy: Floats, failed: Bools, spec: RunSpec
) -> tuple[Floats, Floats]:
    """Time and energy, a failed task's being twice those of the CPU."""
    if not failed.any():
        return time, energy
    again = price(tasks, np.zeros(len(tasks)), spec)
    return (
        np.where(failed, FAILED * again.time, time),
        np.where(failed, FAILED * again.energy, energy),
    )
