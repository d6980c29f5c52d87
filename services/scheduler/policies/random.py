import numpy as np
from numpy.typing import NDArray

from services.scheduler.policy import Policy
from shared.spec import RunSpec
from shared.tasks import Decisions, Floats, Tasks

Bits = NDArray[np.uint64]

# SplitMix64 (Steele, Lea, Flood 2014): turns a counter into random bits.
GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)


class Random(Policy):
    """A share drawn evenly from 0..1.

    The draw is a hash of (seed, task id), so that every replica, and every restart, draws the same.
    Beats a rule only where the rule is wrong.
    """

    name = "random"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=uniform(spec.seed, tasks.task_id.astype(np.uint64)))


def uniform(seed: int, counter: Bits) -> Floats:
    """Numbers in [0, 1), one per counter."""
    start = _mix(np.array([seed], dtype=np.uint64) + GAMMA)
    bits = _mix(start + (counter + np.uint64(1)) * GAMMA)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(z: Bits) -> Bits:
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    return z ^ (z >> np.uint64(31))
