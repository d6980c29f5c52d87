"""What a second of each device's time is worth: how `predictive` weighs a device against another.

A task of x seconds on a device that is free in w seconds has the score

    w + x (1 + price + load price * L + wait price * w)

where L is the mean of the seconds queued on all devices; L and w of the last two terms are counted
in average tasks. Earliest finish is the case in which all prices are 0. A second on a device that
other tasks will need is worth more than a second of this task, and more still the more work is
queued: so a task takes a device only if it gains enough. For a single queue the exact form of this
is known (the value function in Hyytiä, Penttinen, Aalto: "Size- and state-aware
dispatching problem with queue-specific job sizes", 2012).

The first devices of each type that has several are its bulk lane. There the load adds a price of
its own, as a rule a lower one, and waiting adds none: under load the long tasks gather in that
lane, and the short ones do not wait behind them (size interval task assignment: Harchol-Balter,
Crovella, Murta 1999).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shared.domain.hardware.platform import Platform
from shared.domain.tasks import Bools, Floats, Integers

# Behind the price of each device type, a vector of prices has these.
COMMON = ("load", "wait", "bulk", "bulk_load")

# Where a search begins. In time on the default node: about what is best at two thirds load.
START_TYPE, START_COMMON = 1.0, (0.3, 0.5, 0.3, 0.1)
STEP_TYPE, STEP_COMMON = 0.5, (0.25, 0.3, 0.4, 0.15)
# Above -1, so that time is never free.
LEAST_TYPE, LEAST_COMMON = -0.5, (0.0, 0.0, -0.4, 0.0)


def start(types: int) -> Floats:
    return np.array([START_TYPE] * types + list(START_COMMON))


def steps(types: int) -> Floats:
    """How far a search looks in each direction."""
    return np.array([STEP_TYPE] * types + list(STEP_COMMON))


def none(charge: Floats) -> Floats:
    """Earliest finish, but for what a second on each device type costs (`charge`)."""
    return np.concatenate([charge, np.zeros(len(COMMON))])


def limited(prices: Floats) -> Floats:
    """The nearest allowed prices; works on many vectors at once."""
    least = [LEAST_TYPE] * (prices.shape[-1] - len(COMMON)) + list(LEAST_COMMON)
    return np.maximum(prices, least)


def bulk_lane(platform: Platform, share: float) -> Bools:
    """Which devices are in the bulk lane of their type."""
    bulk = np.zeros(len(platform), np.bool_)
    for devices in platform.of_type:
        if share > 0 and len(devices) > 1:
            bulk[devices[: math.ceil(share * len(devices))]] = True
    return bulk


@dataclass(frozen=True, slots=True)
class DevicePrices:
    """The prices of each device (last axis); with a vector of prices per candidate, those of each
    candidate."""

    second: Floats  # 1 + price
    per_load: Floats  # for each second queued on all devices together
    per_wait: Floats  # for each second queued on this one

    @classmethod
    def of(cls, prices: Floats, scale: float, type_of: Integers, bulk: Bools) -> DevicePrices:
        """`scale`: seconds of an average task."""
        load, wait, bulk_price, bulk_load = (
            prices[..., number, None] for number in range(-len(COMMON), 0)
        )
        second = 1.0 + prices[..., type_of] + np.where(bulk, bulk_price, 0.0)
        per_load = np.where(bulk, bulk_load, load) / (scale * len(type_of))
        return cls(second, per_load, np.where(bulk, 0.0, wait) / scale)
