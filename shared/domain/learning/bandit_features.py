"""What `bandit` sees of a task on a device: its cost is assumed to be linear in these.

    w,  x L / scale,  x w / scale,  and x, which has a coefficient for each device type

where x are the task's expected seconds there, w the seconds queued on the device and L their mean
over all devices. Earliest finish is the cost w + x.
"""

from __future__ import annotations

import numpy as np

from shared.domain.tasks import Floats, Integers

COMMON = ("queue", "load", "wait")  # features of all types
# No queue and no time is ever free, and more load makes no device cheaper.
LEAST_COMMON, LEAST_SECOND = (0.5, 0.0, 0.0), 0.5


def count(types: int) -> int:
    return len(COMMON) + types


def earliest_finish(types: int) -> Floats:
    """The coefficients of w + x."""
    return np.array([1.0, 0.0, 0.0] + [1.0] * types)


def least(types: int) -> Floats:
    return np.array([*LEAST_COMMON, *[LEAST_SECOND] * types])


def features(
    seconds: Floats, load: Floats, queued: Floats, type: Integers, types: int, scale: float
) -> Floats:
    """The features of tasks (rows) on the one device that each was given."""
    matrix = np.zeros((len(seconds), count(types)))
    matrix[:, 0] = queued
    matrix[:, 1] = seconds * load / scale
    matrix[:, 2] = seconds * queued / scale
    matrix[np.arange(len(seconds)), len(COMMON) + type] = seconds
    return matrix
