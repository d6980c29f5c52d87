"""When a scheduler counts as recovered: back near the Oracle over the tasks that follow."""

from __future__ import annotations

import numpy as np

from shared.physics import Floats

# Within so much of the Oracle over so many tasks.
NEAR, NEAR_OVER = 1.1, 50
NEAR_PERCENT = f"{NEAR - 1:.0%}".replace("%", " %")


def recovered_after(spent: Floats, oracle: Floats) -> int | None:
    """Tasks until a scheduler is near the Oracle over the next ones; None: it never is."""
    window = np.ones(min(NEAR_OVER, len(oracle)))
    ratio = np.convolve(spent, window, "valid") / np.convolve(oracle, window, "valid")
    near = np.flatnonzero(ratio <= NEAR)
    return int(near[0]) if len(near) else None
