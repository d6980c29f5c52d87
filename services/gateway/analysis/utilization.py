"""How busy each device of one scheduler's virtual cluster was, over simulated time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from services.gateway.analysis.device_work import Work
from services.gateway.analysis.schemas import MeterUtilization, Utilization
from shared.domain.hardware.platform import Platform
from shared.domain.tasks import Floats, Integers

BUCKETS = 30
# A window has about this many arrivals, and one of these lengths: seconds to weeks.
WINDOW_TASKS = 600
_HOURS = (1, 2, 6, 12, 24, 48, 168, 336, 672)
WINDOWS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, *(hours * 3600 for hours in _HOURS))
DIGITS = 6  # of a share


def fitting_window(clock: float, tasks: int) -> float:
    """Seconds, on the time scale of a run in which so many tasks have arrived until now.

    >>> fitting_window(100, 1000), fitting_window(30 * 86400, 100)
    (60, 2419200)
    """
    seconds = WINDOW_TASKS * clock / max(tasks, 1)
    return min(WINDOWS, key=lambda window: abs(np.log(window / max(seconds, 1e-9))))


def utilization(
    run: str, scheduler: str, platform: Platform, start: float, end: float, work: Work
) -> Utilization:
    edges = np.linspace(start, end, BUCKETS + 1)
    count = np.array([meter.devices for meter in platform.meters])
    busy = shares(work.begin, work.length, platform.meter_of[work.device], edges, count)
    mean = busy.mean(axis=1)
    return Utilization(
        run=run,
        scheduler=scheduler,
        start=start,
        end=end,
        step=(end - start) / BUCKETS,
        average=float(np.average(mean, weights=count)),
        devices=[
            MeterUtilization(
                name=meter.name,
                type=meter.type,
                node=meter.node,
                devices=meter.devices,
                utilization=used,
                busy=row,
            )
            for meter, used, row in zip(
                platform.meters, mean.tolist(), busy.round(DIGITS).tolist(), strict=True
            )
        ],
    )


def shares(
    begin: Floats, length: Floats, meter: Integers, edges: Floats, devices: NDArray[np.integer]
) -> Floats:
    """By meter and step between edges: the share that the parts on the meter's devices take. On
    one device they never overlap."""
    worked = np.stack(
        [
            np.bincount(meter, np.clip(edge - begin, 0.0, length), minlength=len(devices))
            for edge in edges
        ],
        axis=1,
    )
    step = np.outer(devices, np.diff(edges))
    spent = np.divide(np.diff(worked, axis=1), step, out=np.zeros(step.shape), where=step > 0)
    return np.asarray(np.clip(spent, 0.0, 1.0))
