"""What the learners of a run minimise: a weighted sum of turnaround, energy and cost.

Energy is counted in seconds in which the strongest accelerator and CPU draw their power, and money
in seconds in which the dearest of both are paid for, so that the weights mean what they say on any
platform.
"""

from __future__ import annotations

import numpy as np

from shared.domain.hardware.platform import Platform
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats

JOULES_PER_KWH = 3.6e6
LEAST = 1e-12  # a platform may draw no power, or cost nothing


def penalty(turnaround: Floats, energy: Floats, cost: Floats, spec: RunSpec) -> Floats:
    """The penalty of each task, in seconds."""
    weights, platform = spec.objective, spec.platform
    joules = energy / max(reference(platform.watts, platform), LEAST)
    dollars = cost / max(reference(_dollars_per_second(spec), platform), LEAST)
    return np.asarray(
        weights.turnaround * turnaround + weights.energy * joules + weights.cost * dollars
    )


def charge(spec: RunSpec) -> Floats:
    """What a second on each device type costs beside the time that it takes, in seconds."""
    weights, platform, dollars = spec.objective, spec.platform, _dollars_per_second(spec)
    energy = weights.energy * platform.watts / max(reference(platform.watts, platform), LEAST)
    cost = weights.cost * dollars / max(reference(dollars, platform), LEAST)
    return np.asarray(energy + cost)


def reference(rates: Floats, platform: Platform) -> float:
    """The most that an accelerator and a CPU take together."""
    accelerator = np.array([each.accelerator for each in platform.types])
    return float(rates[accelerator].max(initial=0.0) + rates[~accelerator].max(initial=0.0))


def _dollars_per_second(spec: RunSpec) -> Floats:
    """The price of each device type, by the cost model of the run."""
    if spec.physics.cost_model == "cloud":
        return spec.platform.dollars_per_s
    return spec.platform.watts / JOULES_PER_KWH * spec.physics.dollars_per_kwh
