"""Random numbers that depend on (seed, counter, purpose) alone, so that all replicas agree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shared.domain.tasks import Floats

Bits = NDArray[np.uint64]

# SplitMix64 (Steele, Lea, Flood 2014): turns a counter into random bits.
GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)


def uniform(seed: int, counter: Bits, purpose: int = 0) -> Floats:
    """Numbers in [0, 1), one per counter; each purpose has its own sequence."""
    # Arrays, because numpy warns when a scalar integer wraps around, as it must here.
    start = _mix(np.array([seed], np.uint64) + np.array([purpose + 1], np.uint64) * GAMMA)
    bits = _mix(start + (counter + np.uint64(1)) * GAMMA)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(z: Bits) -> Bits:
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    return z ^ (z >> np.uint64(31))
