"""Totals of every scheduler after evenly spaced numbers of tasks, whatever its batches were.

The standings have exact totals after each batch. A point inside a batch adds the batch's results up
to it, so one batch is read per point at most, however long the run is. Points are multiples of a
power of two: as a run grows, every second one stays and none is computed again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from services.gateway.analysis.schemas import Track
from services.gateway.runs.queries import newest_standings
from shared.runtime.bounded_dict import BoundedDict
from shared.store.client import Store

# The batches that have the last task of each point.
BATCHES = """
    SELECT scheduler, task_id + 1 AS tasks, batch FROM scheduler_results
    WHERE run = {run:String} AND scheduler IN {schedulers:Array(String)}
      AND task_id IN {last_tasks:Array(Int64)}
    ORDER BY run, scheduler, task_id
    LIMIT 1 BY scheduler, task_id
"""
STANDINGS = """
    SELECT scheduler, batch, tasks, failed, total_time, total_turnaround, total_energy, total_cost,
           turnaround_p95
    FROM standings
    WHERE run = {run:String} AND scheduler IN {schedulers:Array(String)}
      AND batch IN {batches:Array(UInt64)}
    ORDER BY run, scheduler, batch
    LIMIT 1 BY scheduler, batch
"""
SUMS = """
    SELECT scheduler, (intDiv(task_id, {width:Int64}) + 1) * {width:Int64} AS point,
           count() AS tasks, countIf(status = 'failed') AS failed, sum(time) AS total_time,
           sum(turnaround) AS total_turnaround, sum(energy) AS total_energy, sum(cost) AS total_cost
    FROM (
        SELECT scheduler, task_id, status, time, turnaround, energy, cost FROM scheduler_results
        WHERE run = {run:String} AND scheduler IN {schedulers:Array(String)} AND (%s)
        ORDER BY run, scheduler, task_id
        LIMIT 1 BY scheduler, task_id
    )
    GROUP BY scheduler, point
"""
ADDED = ("tasks", "failed", "total_time", "total_turnaround", "total_energy", "total_cost")
NOTHING = dict.fromkeys(Track.model_fields, 0)
CACHED_RUNS = 32

Totals = dict[str, Any]  # the fields of a Track at one point
Place = tuple[str, int]  # a scheduler, and a number of tasks or of a batch


def spacing(tasks: int, points: int) -> int:
    """The power of two that gives at most so many points, the newest totals among them.

    >>> spacing(78, 120), spacing(4000, 200), spacing(1_000_000, 120)
    (1, 32, 16384)
    """
    width = 1
    while tasks // width > points - 1:
        width *= 2
    return width


class ProgressTracks:
    """The points of some runs, computed once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs: BoundedDict[str, dict[Place, Totals]] = BoundedDict(CACHED_RUNS)
        self._lock = threading.Lock()

    def of(self, run: str, schedulers: Iterable[str], points: int) -> dict[str, Track]:
        """The track of each scheduler that has results; the last point is its newest standing."""
        newest = newest_standings(self._store, run, schedulers)
        width = spacing(max((row["tasks"] for row in newest.values()), default=0), points)
        known = self._known(run)
        places = [
            (name, point)
            for name, row in newest.items()
            for point in range(width, row["tasks"], width)
        ]
        if missing := [place for place in places if place not in known]:
            known.update(_computed(self._store, run, missing, width, known))
        tracks: dict[str, list[Totals]] = {name: [] for name in newest}
        for name, point in places:
            if totals := known.get((name, point)):
                tracks[name].append(totals)
        return {name: _track([*tracks[name], row]) for name, row in newest.items()}

    def _known(self, run: str) -> dict[Place, Totals]:
        with self._lock:
            known = self._runs[run] = self._runs.get(run, {})
            return known


def _track(rows: list[Totals]) -> Track:
    return Track(**{field: [row[field] for row in rows] for field in Track.model_fields})


def _computed(
    store: Store, run: str, missing: Sequence[Place], width: int, known: dict[Place, Totals]
) -> dict[Place, Totals]:
    """The missing points whose results are stored."""
    key = {"run": run, "schedulers": sorted({name for name, _ in missing})}
    last_tasks = sorted({point - 1 for _, point in missing})
    batch_of: dict[Place, int] = {
        (row["scheduler"], row["tasks"]): row["batch"]
        for row in store.query(BATCHES, {**key, "last_tasks": last_tasks})
    }
    batches = sorted({b for batch in batch_of.values() for b in (batch - 1, batch) if b >= 0})
    standings: dict[Place, Totals] = {
        (row["scheduler"], row["batch"]): row
        for row in store.query(STANDINGS, {**key, "batches": batches})
    }
    standings |= {(name, -1): NOTHING for name in key["schedulers"]}
    inside = {  # the totals before the batch of a point, and after it
        place: (standings[place[0], batch - 1], standings[place[0], batch])
        for place in missing
        if (batch := batch_of.get(place)) is not None
        and {(place[0], batch - 1), (place[0], batch)} <= standings.keys()
    }
    sums = _sums(store, key, width, inside)
    points: dict[Place, Totals] = {}
    for (name, point), (before, after) in inside.items():
        if after["tasks"] == point:
            points[name, point] = after
            continue
        earlier = (name, point - width)
        far = before["tasks"] < point - width
        base = (points.get(earlier) or known.get(earlier)) if far else before
        added = sums.get((name, point))
        # Otherwise some of the results are not stored yet.
        if base and added and base["tasks"] + added["tasks"] == point:
            totals = {field: base[field] + added[field] for field in ADDED}
            points[name, point] = totals | {"turnaround_p95": after["turnaround_p95"]}
    return points


def _sums(
    store: Store,
    key: dict[str, Any],
    width: int,
    inside: dict[Place, tuple[Totals, Totals]],
) -> dict[Place, Totals]:
    """What is to be added to the point before, or to the batch before if that is nearer."""
    ranges = {
        (max(before["tasks"], point - width), point)
        for (_, point), (before, after) in inside.items()
        if after["tasks"] != point
    }
    if not ranges:
        return {}
    between = (f"(task_id >= {first} AND task_id < {last})" for first, last in sorted(ranges))
    rows = store.query(SUMS % " OR ".join(between), {**key, "width": width})
    return {(row["scheduler"], row["point"]): row for row in rows}
