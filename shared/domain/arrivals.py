"""When tasks arrive: one exponential draw per task, turned into times by the arrival process.

Only + - * / and comparisons are used, so the times have the same bits on every CPU.
"""

from __future__ import annotations

import numpy as np

from shared.domain.spec_parts.workload_spec import Bursty, Diurnal, Workload
from shared.domain.tasks import Floats


def arrival_times(
    workload: Workload, gap: Floats, first: int, clock: float, operational: float
) -> tuple[Floats, float]:
    """The arrivals of the tasks from number `first` on, and the operational time after them.

    `gap` is exponential with mean 1, and `clock` the arrival of the task before. The operational
    time is when the newest task would have arrived at a constant rate; only Diurnal needs it.
    """
    rate = workload.arrival_rate
    match workload.arrivals:
        case Bursty() as bursty:
            return _running_sum(clock, gap * _stretch(bursty, first, len(gap)) / rate), operational
        case Diurnal() as diurnal:
            constant = _running_sum(operational, gap / rate)
            times = _time_of_day(diurnal, constant)
            # Rounding must not let a task arrive before the last one of the part of day before.
            times = np.maximum.accumulate(np.concatenate(([clock], times)))[1:]
            return times, float(constant[-1])
        case _:
            return _running_sum(clock, gap / rate), operational


def _running_sum(start: float, steps: Floats) -> Floats:
    """Added in the same order whatever the batch size."""
    return np.cumsum(np.concatenate(([start], steps)))[1:]


def _stretch(bursty: Bursty, first: int, count: int) -> Floats:
    """The mean gap before each task, over that of a constant rate. The pause before the first task
    of a burst makes up for the short gaps before the others: the mean of a burst is 1."""
    tasks, factor = bursty.burst_tasks, bursty.factor
    begins = np.arange(first, first + count) % tasks == 0
    return np.where(begins, tasks - (tasks - 1) / factor, 1.0 / factor)


def _time_of_day(diurnal: Diurnal, constant: Floats) -> Floats:
    """The inverse of the cumulated rate, which is a straight line within each part of the day."""
    period, weights = diurnal.period_s, np.array(diurnal.profile)
    cumulated = np.cumsum(weights)
    day = np.floor(constant / period)
    done = np.clip(constant / period - day, 0.0, 1.0) * cumulated[-1]
    # Parts without arrivals are skipped; a day that is done up to rounding ends in its last part.
    last = np.flatnonzero(weights)[-1]
    part = np.minimum(np.searchsorted(cumulated, done, side="right"), last)
    before = np.concatenate(([0.0], cumulated))[part]
    within = np.clip((done - before) / weights[part], 0.0, 1.0)
    return np.asarray((day + (part + within) / len(weights)) * period)
