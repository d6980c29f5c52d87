"""A failed task takes no time; without a penalty it would look like a good decision."""

from __future__ import annotations

import numpy as np

from shared.domain.physics import Bools, price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks

# A failed task has to be run again on the CPU, so it costs more than running it there at once.
PENALTY = 2.0


def with_failure_penalty(
    tasks: Tasks, time: Floats, energy: Floats, failed: Bools, spec: RunSpec
) -> tuple[Floats, Floats]:
    """Time and energy, those of a failed task replaced by PENALTY times the CPU's."""
    if not failed.any():
        return time, energy
    on_cpu = price(tasks, np.zeros(len(tasks)), spec)
    return (
        np.where(failed, PENALTY * on_cpu.time, time),
        np.where(failed, PENALTY * on_cpu.energy, energy),
    )
