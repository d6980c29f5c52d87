"""The seconds of whole tasks on every device type: the one place that knows where times come from.

With size N, intensity I and memory M, the formula gives for a device type

    base time  T = (N / 1000) ** 1.5 / (I + 0.5)
    seconds    T / (speed (1 + slope I)) + M / bandwidth

where a CPU has slope 0 and no transfer. A measured platform has a table instead of T. With noise,
the real time is the expected one times a log-normal factor with mean 1 of (seed, task, type).
"""

from __future__ import annotations

import math
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from shared.domain.portable_math import exp, log, normal_quantile, power
from shared.domain.random_numbers import uniform
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks


def seconds(tasks: Tasks, spec: RunSpec) -> Floats:
    """The expected time of each task (row) on each device type (column), transfer included, as if
    it fitted the memory. Infinite: the type cannot run the task."""
    platform, physics = spec.platform, spec.physics
    times = np.empty((len(tasks), len(platform.types)), order="F")
    if platform.measured is not None:
        times[:] = platform.measured.seconds(tasks.kind or [""] * len(tasks), tasks.size)
    else:
        work = power(tasks.size / physics.size_unit, physics.size_exponent)
        base = work / (tasks.compute_intensity + physics.intensity_offset)
        for column, kind in enumerate(platform.types):
            speedup: Floats | float = kind.speed
            if kind.speedup_slope:
                speedup = speedup * (1.0 + kind.speedup_slope * tasks.compute_intensity)
            np.divide(base, speedup, out=times[:, column])
    for column, bandwidth in enumerate(platform.bandwidth_mb_s):
        if math.isfinite(bandwidth):
            times[:, column] += tasks.memory_required / bandwidth
    if tasks.width is not None:
        times[tasks.width[:, None] > platform.counts] = np.inf
    return times


def real_seconds(tasks: Tasks, spec: RunSpec) -> Floats:
    """The time that each task will really take. Only for the simulator, the Oracle and references:
    no real scheduler can know it."""
    times = seconds(tasks, spec)
    noise = spec.physics.noise
    if noise == 0:
        return times
    if noise == "measured":
        measured = spec.platform.measured
        if measured is None:
            return times
        deviation = measured.deviation(tasks.kind or [""] * len(tasks), tasks.size)
    else:
        deviation = np.full(times.shape, float(noise))
    counter = tasks.task_id.astype(np.uint64)
    for column, kind in enumerate(spec.platform.types):
        draw = uniform(spec.seed, counter, _purpose(kind.name))
        times[:, column] *= _log_normal(draw, deviation[:, column])
    return times


def _log_normal(draw: Floats, deviation: Floats) -> Floats:
    """Mean 1 and this standard deviation."""
    variance = log(1.0 + deviation * deviation)
    z = normal_quantile(np.maximum(draw, 2.0**-54))
    return np.asarray(exp(np.sqrt(variance) * z - variance / 2))


@lru_cache
def _purpose(device_type: str) -> int:
    """What the random numbers of a device type are for; from its name, so that more types change
    nothing."""
    return int.from_bytes(blake2b(f"noise of {device_type}".encode(), digest_size=7).digest())
