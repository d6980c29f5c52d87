"""The bounds of the makespan: no schedule of these tasks is shorter.

The Oracle is the floor of execution time per task, but it knows nothing of queues. The floor of
the makespan comes from a relaxation in which tasks may be cut freely over all device types, nothing
waits, nothing depends and data is where it is needed (see `relaxation`). It knows the real times.

The memory of accelerators limits what may run there (see `physics.price`):

- `page`: what does not fit pays its transfer again, beyond the share that fits.
- `cpu`: no more than what fits.
- `fail`: a task that fails is charged the time of the slowest type that can run it, wherever it
  was sent. So what does not fit counts that time, on any type.

A task also fails where neither its accelerator nor its CPU can run it, or where it does not fit and
there is no CPU that can run it. Where that is possible, it counts like `fail`. A task that no type
can run takes no time. A task that may not be split is limited as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shared.domain.bounds.relaxation import Method, Work, relax
from shared.domain.hardware.platform import NOWHERE
from shared.domain.physics import fastest, price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Bools, Floats, Integers, Tasks, take
from shared.domain.times import real_seconds

# Up to this number of tasks HiGHS solves the linear program; about forty times for arrivals.
MOST_SOLVED = 10_000
MOST_SOLVED_OFTEN = 500

# Each start point of the arrival bound leaves this share of the tasks of the one before.
_THINNING = 2**-0.5


@dataclass(frozen=True, slots=True)
class Bound:
    """No schedule is shorter than `value`. The best that this kind of bound can give lies between
    `value` and `upper`: the difference is what the method left open."""

    value: float  # seconds
    upper: float
    method: Method | None  # None: the bound is that of a single task

    @property
    def gap(self) -> float:
        """Relative."""
        return (self.upper - self.value) / self.upper if self.upper > 0 else 0.0


def cluster_bound(tasks: Tasks, spec: RunSpec) -> Bound:
    """No schedule of these tasks is shorter, from its first start to its last finish. Knows neither
    arrivals nor dependencies."""
    relaxed = relax(_work(tasks, spec, real_seconds(tasks, spec)), MOST_SOLVED)
    return Bound(relaxed.lower, relaxed.upper, relaxed.method)


def arrival_bound(tasks: Tasks, spec: RunSpec) -> Bound:
    """No schedule finishes these tasks earlier: seconds from *simulated time 0*, not from the
    first arrival. Subtract the first arrival to hold it against a makespan that starts there.

    From any moment t on, all that arrives at t or later is still to be done: the finish is no
    earlier than t plus the cluster bound of those tasks. Tried at about forty moments, from the
    first arrival to the last with ever fewer tasks left; and each task on its own cannot end
    before its arrival plus its fastest execution.
    """
    if len(tasks) == 0:
        return Bound(0.0, 0.0, None)
    times = real_seconds(tasks, spec)
    alone = _last_alone(tasks, spec, times)
    best, upper = Bound(alone, alone, None), alone
    arrival = tasks.arrival_time[np.isfinite(times).any(axis=1)]
    work, starts = _work(tasks, spec, times), np.sort(arrival)
    prices: Floats | None = None
    remaining = len(arrival)
    while remaining > 0:
        start = float(starts[len(starts) - remaining])
        keep = arrival >= start
        work, arrival = work.take(keep), arrival[keep]
        relaxed = relax(work, MOST_SOLVED_OFTEN, prices, enough=best.value - start)
        prices = relaxed.prices
        upper = max(upper, start + relaxed.upper)
        if start + relaxed.lower > best.value:
            best = Bound(start + relaxed.lower, upper, relaxed.method)
        remaining = int(remaining * _THINNING)
    return Bound(best.value, max(upper, best.value), best.method)


def _work(tasks: Tasks, spec: RunSpec, times: Floats) -> Work:
    """The work of the tasks that some type can run."""
    platform = spec.platform
    if not (possible := np.isfinite(times).any(axis=1)).all():
        tasks, times = take(tasks, np.flatnonzero(possible)), times[possible]
    # A task of width w takes that part of the type's devices; if it has fewer, a failed one all.
    part = 1.0 / platform.counts
    if tasks.width is not None:
        part = np.minimum(tasks.width[:, None] * part, 1.0)
    seconds = np.ascontiguousarray(times) * part
    special = _special(tasks, spec, times)
    cap, beyond = _limits(take(tasks, special), spec, times[special])
    beyond *= part if tasks.width is None else part[special]
    never = cap == 0
    seconds[special] = np.where(never, beyond, seconds[special])
    cap[never] = 1.0
    limited = (cap < 1).any(axis=1)
    return Work(seconds, special[limited], cap[limited], beyond[limited])


def _special(tasks: Tasks, spec: RunSpec, times: Floats) -> Integers:
    """The tasks that do not fit some accelerator, or that some type cannot run."""
    rooms = [kind.memory_mb for kind in spec.platform.types if kind.accelerator]
    room = min(rooms, default=np.inf) * (1 if tasks.width is None else tasks.width)
    return np.flatnonzero((tasks.memory_required > room) | np.isinf(times).any(axis=1))


def _limits(tasks: Tasks, spec: RunSpec, times: Floats) -> tuple[Floats, Floats]:
    """How much of each task fits on each type, and the seconds of a whole task beyond that."""
    memory, policy = tasks.memory_required, spec.physics.memory_policy
    runs = np.isfinite(times)
    slowest = _slowest(times)
    cap = np.where(runs, 1.0, 0.0)
    beyond = np.where(_may_fail(spec, runs), slowest, np.inf)[:, None].repeat(cap.shape[1], axis=1)
    for number, kind in enumerate(spec.platform.types):
        if not kind.accelerator:
            continue
        room = kind.memory_mb * (1 if tasks.width is None else tasks.width)
        over = memory > room
        fits, again = np.divide(room, memory, out=np.ones(len(tasks)), where=over), memory
        if tasks.may_split is not None:
            fits = np.where(over & ~tasks.may_split, 0.0, fits)
            again = np.where(tasks.may_split, memory, memory - room)
        cap[:, number] *= fits
        if policy == "page":
            paged = times[:, number] + again / kind.bandwidth_mb_s
            beyond[:, number] = np.where(runs[:, number], paged, beyond[:, number])
        elif policy == "fail":
            beyond[:, number] = np.where(runs[:, number], slowest, beyond[:, number])
    return cap, beyond


def _may_fail(spec: RunSpec, runs: Bools) -> Bools:
    """Which tasks can be sent to an accelerator without a CPU that can run them instead."""
    cpus = [number for number, kind in enumerate(spec.platform.types) if not kind.accelerator]
    if any(host == NOWHERE for _, host, _ in spec.platform.pairs):
        return np.ones(len(runs), np.bool_)
    return np.asarray(~runs[:, cpus].all(axis=1))


def _slowest(times: Floats) -> Floats:
    """What a failed task is charged."""
    return np.asarray(times.max(axis=1, initial=0.0, where=np.isfinite(times)))


def _last_alone(tasks: Tasks, spec: RunSpec, times: Floats) -> float:
    """The latest moment at which some task cannot be done even with the cluster to itself."""
    last, slowest = float(tasks.arrival_time.max()), _slowest(times)
    # No task takes longer than on the slowest type, so the others end before the last arrival.
    late = np.flatnonzero(tasks.arrival_time + slowest >= last)
    alone, times = take(tasks, late), times[late]
    best = fastest(alone, spec, times=times)
    time = price(alone, best.gpu_fraction, spec, best.device, best.cpu, times=times).time
    # Failing takes no time in the network.
    return max(last, float((alone.arrival_time + np.minimum(time, slowest[late])).max()))
