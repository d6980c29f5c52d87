"""The relaxation behind the cluster bound: tasks may be cut freely over all device types.

With y the share of a task on a type, at most `cap` of it, z the share beyond that, and a, b the
seconds of all devices of the type together for one task of either kind:

    least C  with  sum over tasks of (y a + z b) <= C          for every type
                   sum over types of (y + z) = 1               for every task
                   0 <= y <= cap,  0 <= z

Three methods, each with a certificate: the least C lies between `lower` and `upper`.

- `sort`, for one or two types: moving tasks from one type to the other in the order of the ratio
  of their times cuts at most one of them. Exact.
- `lp`: the linear program itself, by HiGHS.
- `dual`, for millions of tasks: with prices of the types that add up to 1, each task on its own
  takes the cheapest types; the sum of what they pay is at most C, whatever the prices. The best
  prices are found with cutting planes (Kelley 1960), one for each group of tasks that waver between
  the same two types. What the planes are made of, mixed, is a solution: its C is the upper value.

`lower` is always what tasks pay at some prices (or exact), so it never exceeds the least C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from shared.domain.tasks import Bools, Floats, Integers

Method = Literal["sort", "lp", "dual"]

# Certificates of the dual are at least this tight, relative to the value, or as tight as the
# largest number of planes makes them.
_GAP = 1e-8
_MOST_ROUNDS = 100
# More groups of tasks need fewer rounds, each with a larger program.
_MOST_GROUPS = 128
# Tasks whose linear program gives the first prices.
_SAMPLE = 1000
# Prices above 0, so that 0 times infinite seconds never comes up.
_LEAST_PRICE = 1e-12
_TOLERANCE = 1e-10  # the least that HiGHS allows


@dataclass(frozen=True, slots=True)
class Work:
    """Seconds of each task (row) if all devices of a type (column) ran it together; infinite: they
    cannot. `limited` are the numbers of the tasks of which some type runs only a part (`cap`) in
    that time, and the rest in `beyond`. For every task some way is finite."""

    seconds: Floats
    limited: Integers
    cap: Floats
    beyond: Floats

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def types(self) -> int:
        return int(self.seconds.shape[1])

    def take(self, keep: Bools) -> Work:
        position = np.cumsum(keep) - 1
        kept = keep[self.limited]
        rows = position[self.limited[kept]]
        return Work(self.seconds[keep], rows, self.cap[kept], self.beyond[kept])


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The least C lies between lower and upper."""

    lower: float
    upper: float
    method: Method
    prices: Floats | None = None  # where another one may start


def relax(
    work: Work, most_solved: int, prices: Floats | None = None, enough: float = 0.0
) -> Relaxed:
    """The certified value of the relaxation. Up to `most_solved` tasks are left to HiGHS. The dual
    starts at `prices`, and ends early when the least C is known to be at most `enough`."""
    if work.types <= 2:
        exact = _sorted(work)
        return Relaxed(exact, exact, "sort")
    scale = float(work.seconds.min(axis=1, initial=np.inf).sum())
    if scale == 0.0:
        return Relaxed(0.0, 0.0, "lp", prices)
    scaled = Work(work.seconds / scale, work.limited, work.cap, work.beyond / scale)
    solution = _linear_program(scaled) if len(work) <= most_solved else None
    if solution is None:
        solution = _dual(scaled, prices, enough / scale)
    return Relaxed(solution.lower * scale, solution.upper * scale, solution.method, solution.prices)


def _sorted(work: Work) -> float:
    on_first, on_second = _pieces(work)
    movable = np.isfinite(on_first) & np.isfinite(on_second)
    a, b = on_first[movable], on_second[movable]
    # A piece that costs the second type nothing is never worth moving.
    cost = np.divide(a, b, out=np.full(len(b), np.inf), where=b > 0)
    order = np.argsort(cost, kind="stable")
    a, b = a[order], b[order]
    # After the first j pieces went to the first type: its seconds, and those left to the second.
    first_seconds = np.concatenate(([0.0], np.cumsum(a))) + on_first[np.isinf(on_second)].sum()
    # Summed from the end, so that nothing left is exactly 0 and never a rounding error below.
    second_seconds = (
        np.concatenate((np.cumsum(b[::-1])[::-1], [0.0])) + on_second[np.isinf(on_first)].sum()
    )
    level = np.flatnonzero(first_seconds >= second_seconds)
    if len(level) == 0:  # what cannot move takes longer than all the rest on the first type
        return float(second_seconds[-1])
    if level[0] == 0:
        return float(first_seconds[0])
    last = int(level[0]) - 1
    cut = (second_seconds[last] - first_seconds[last]) / (a[last] + b[last])
    return float(first_seconds[last] + cut * a[last])


def _pieces(work: Work) -> tuple[Floats, Floats]:
    """Parts of tasks with one time on each of the two types. Of one task, those that are better on
    the first type have the smaller ratio by themselves."""
    if work.types == 1:
        none = np.full((len(work), 1), np.inf)
        rest = none[: len(work.limited)]
        work = Work(
            np.hstack((work.seconds, none)),
            work.limited,
            np.hstack((work.cap, np.zeros_like(rest))),
            np.hstack((work.beyond, rest)),
        )
    unlimited = np.ones(len(work), np.bool_)
    unlimited[work.limited] = False
    a, b = work.seconds[work.limited].T
    more_a, more_b = work.beyond.T
    # From this share on the first type takes longer, and from that on the second type is cheap.
    full, relieved = work.cap[:, 0], 1.0 - work.cap[:, 1]
    low, high = np.minimum(full, relieved), np.maximum(full, relieved)
    scarce = full < relieved
    lengths = np.concatenate((low, high - low, 1.0 - high))
    first = np.concatenate((a, np.where(scarce, more_a, a), more_a))
    second = np.concatenate((more_b, np.where(scarce, more_b, b), b))
    some = lengths > 0
    lengths = lengths[some]
    return (
        np.concatenate((work.seconds[unlimited, 0], first[some] * lengths)),
        np.concatenate((work.seconds[unlimited, 1], second[some] * lengths)),
    )


def _linear_program(work: Work) -> Relaxed | None:
    """None: HiGHS gave up."""
    from scipy.sparse import csr_array

    count, types = work.seconds.shape
    caps = np.ones_like(work.seconds)
    caps[work.limited] = work.cap
    time = np.concatenate((work.seconds.ravel(), work.beyond.ravel()))
    most = np.concatenate((caps.ravel(), np.ones(work.beyond.size)))
    task = np.repeat(np.concatenate((np.arange(count), work.limited)), types)
    kind = np.tile(np.arange(types), count + len(work.limited))
    possible = np.isfinite(time)
    time, most, task, kind = time[possible], most[possible], task[possible], kind[possible]
    shares = np.arange(len(time))
    # One variable for each share, and C.
    rows = np.concatenate((kind, np.arange(types)))
    columns = np.concatenate((shares, np.full(types, len(time))))
    loads = csr_array((np.concatenate((time, -np.ones(types))), (rows, columns)))
    shape = (count, len(time) + 1)
    answer = _minimise(
        np.concatenate((np.zeros(len(time)), [1.0])),
        loads,
        csr_array((np.ones(len(time)), (task, shares)), shape=shape),
        np.ones(count),
        np.column_stack((np.zeros(len(time) + 1), np.concatenate((most, [np.inf])))),
    )
    if answer is None:
        return None
    prices = _normal(-answer.ineqlin.marginals)
    lower = float(_loads(work, prices).sum(axis=0) @ prices)
    return Relaxed(lower, max(float(answer.fun), lower), "lp", prices)


def _minimise(
    goal: Floats, at_most_zero: Any, equal: Any, values: Floats, bounds: Floats
) -> Any | None:
    from scipy.optimize import linprog

    answer = linprog(
        goal,
        at_most_zero,
        np.zeros(at_most_zero.shape[0]),
        equal,
        values,
        bounds,
        method="highs",
        options={
            "primal_feasibility_tolerance": _TOLERANCE,
            "dual_feasibility_tolerance": _TOLERANCE,
        },
    )
    return answer if answer.status == 0 else None


def _dual(work: Work, prices: Floats | None, enough: float) -> Relaxed:
    prices = _sampled_prices(work) if prices is None else prices
    groups = _groups(work, prices)
    lower, upper, best = 0.0, np.inf, prices
    planes: list[Floats] = []
    for _ in range(_MOST_ROUNDS):
        loads = _loads(work, prices, groups)
        planes.append(loads)
        paid = float(loads.sum(axis=0) @ prices)
        if paid > lower:
            lower, best = paid, prices
        highest, mixed = _highest(planes, prices)
        upper = min(upper, mixed)
        if upper - lower <= _GAP * upper or upper <= enough:
            break
        # Half way: the planes are only known to be close to the truth near the best prices.
        prices = (best + highest) / 2
    return Relaxed(lower, max(upper, lower), "dual", best)


def _sampled_prices(work: Work) -> Floats:
    drawn = np.zeros(len(work), np.bool_)
    drawn[np.random.default_rng(0).integers(len(work), size=_SAMPLE)] = True
    sample = work.take(drawn)
    scale = sample.seconds.min(axis=1).sum() or 1.0
    solved = _linear_program(
        Work(sample.seconds / scale, sample.limited, sample.cap, sample.beyond / scale)
    )
    if solved is None or solved.prices is None:
        return np.full(work.types, 1.0 / work.types)
    return solved.prices


def _groups(work: Work, prices: Floats) -> Integers:
    """A number for each task: the two types that are cheapest for it. Rare pairs share one."""
    two = np.argpartition(work.seconds * prices, 1, axis=1)[:, :2]
    pair = two.min(axis=1) * work.types + two.max(axis=1)
    sizes = np.bincount(pair, minlength=work.types**2)
    largest = np.argsort(-sizes, kind="stable")[: min(_MOST_GROUPS, np.count_nonzero(sizes))]
    number = np.full(len(sizes), len(largest) - 1)
    number[largest] = np.arange(len(largest))
    return np.asarray(number[pair])


def _loads(work: Work, prices: Floats, groups: Integers | None = None) -> Floats:
    """The seconds of each type (column) when the tasks of each group (row) take what is cheapest
    for them at these prices."""
    types = work.types
    if groups is None:
        groups = np.zeros(len(work), np.int64)
    count = int(groups.max()) + 1
    chosen = np.argmin(work.seconds * prices, axis=1)
    time = np.take_along_axis(work.seconds, chosen[:, None], axis=1)[:, 0]
    time[work.limited] = 0.0
    each = np.bincount(groups * types + chosen, time, count * types)
    loads: Floats = np.asarray(each, np.float64).reshape(count, types)
    if len(work.limited):
        limited, group = _cheapest_mix(work, prices), groups[work.limited]
        for kind in range(types):
            loads[:, kind] += np.bincount(group, limited[:, kind], count)
    return loads


def _cheapest_mix(work: Work, prices: Floats) -> Floats:
    """Seconds on each type of the limited tasks: the cheapest types up to their caps, as long as
    going beyond the cap of another one is not cheaper."""
    seconds = work.seconds[work.limited]
    cost, cost_beyond = seconds * prices, work.beyond * prices
    other = np.argmin(cost_beyond, axis=1)[:, None]
    order = np.argsort(cost, axis=1)
    worth = cost < np.take_along_axis(cost_beyond, other, axis=1)
    room = np.take_along_axis(np.where(worth, work.cap, 0.0), order, axis=1)
    filled = np.cumsum(room, axis=1)
    share = np.empty_like(room)
    np.put_along_axis(share, order, np.clip(1.0 - (filled - room), 0.0, room), axis=1)
    rest = np.maximum(1.0 - filled[:, -1:], 0.0)
    taken: Floats = np.multiply(share, seconds, out=np.zeros_like(share), where=share > 0)
    at_other = np.take_along_axis(taken, other, axis=1)
    again = np.take_along_axis(work.beyond, other, axis=1)
    more = np.multiply(rest, again, out=np.zeros_like(rest), where=rest > 0)
    np.put_along_axis(taken, other, at_other + more, axis=1)
    return taken


def _highest(planes: Sequence[Floats], prices: Floats) -> tuple[Floats, float]:
    """The prices at which the planes allow the highest value, and the C of the mix of the planes'
    solutions that proves that no prices give more."""
    loads = np.concatenate(planes)
    groups, types = planes[0].shape
    rounds = len(planes)
    # One variable for each price, and the value of each group, which is below all of its planes.
    answer = _minimise(
        np.concatenate((np.zeros(types), -np.ones(groups))),
        np.hstack((-loads, np.tile(np.eye(groups), (rounds, 1)))),
        np.concatenate((np.ones(types), np.zeros(groups)))[None],
        np.ones(1),
        np.array([(0.0, np.inf)] * types + [(-np.inf, np.inf)] * groups),
    )
    if answer is None:
        return prices, float(planes[-1].sum(axis=0).max())
    weight = np.maximum(-answer.ineqlin.marginals, 0.0).reshape(rounds, groups)
    total = weight.sum(axis=0)
    weight = np.where(total > 0, weight / np.where(total > 0, total, 1.0), 1.0 / rounds)
    mixed = (weight.reshape(-1, 1) * loads).sum(axis=0).max()
    return _normal(answer.x[:types]), float(mixed)


def _normal(prices: Floats) -> Floats:
    prices = np.maximum(prices, _LEAST_PRICE)
    return np.asarray(prices / prices.sum())
