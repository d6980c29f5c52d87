"""What results say about the queues that each task met."""

from __future__ import annotations

import numpy as np

from services.trainer.learner import Results
from shared.domain.tasks import Floats, Integers


def queues_before(results: Results, device: Integers, devices: int) -> Floats:
    """Seconds that each device (column) had left when each task (row) arrived, as far as these
    results say; real ones, where the scheduler could know expected ones. `device` ran each task
    (-1: it is left out)."""
    arrival = results.tasks.arrival_time
    finish = arrival + results.turnaround
    ends = np.where(device[:, None] == np.arange(devices), finish[:, None], 0.0)
    ends = np.maximum.accumulate(ends, axis=0)
    before = np.concatenate([np.zeros((1, devices)), ends[:-1]])
    return np.maximum(before - arrival[:, None], 0.0)
