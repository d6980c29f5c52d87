"""How many tasks have arrived and not finished, over simulated time.

At each moment these are some of the tasks between the last batch that was finished by then and the
batch that arrives next; the standings say which. Where this is a long queue at many moments, only
blocks of its tasks are counted, so that the cost does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from services.gateway.analysis.device_work import FINISHED, integers
from services.gateway.analysis.schemas import QueueTrack
from services.gateway.analysis.task_window import floats
from services.gateway.runs.queries import newest_standings
from shared.domain.tasks import Floats, Integers
from shared.store.client import Store
from shared.store.schema import PART_BEGIN

BATCHES = """
    SELECT batch, tasks, clock, makespan FROM standings
    WHERE run = {run:String} AND scheduler = {scheduler:String}
      AND batch IN {batches:Array(UInt64)}
    ORDER BY run, scheduler, batch
    LIMIT 1 BY batch
"""
TASKS = f"""
    SELECT task_id, finish - turnaround AS arrival, finish,
           least({PART_BEGIN["gpu"]}, {PART_BEGIN["cpu"]}) AS started
    FROM scheduler_results
    WHERE run = {{run:String}} AND scheduler = {{scheduler:String}} AND (%s)
    ORDER BY run, scheduler, task_id
    LIMIT 1 BY task_id
"""
# Batches whose standings are read: first this many all over the stretch; then, for each moment,
# this many between the two that enclose its first candidate, and as many for its last one.
BATCHES_OF_STRETCH, BATCHES_OF_MOMENT = 500, 8
# Up to this many tasks, all are counted; beyond that, a sample at each moment.
MOST_TASKS = 100_000
BLOCKS, BLOCK = 8, 512
# The arrival is computed from finish and turnaround, which rounds.
ROUNDING = 1e-9

Range = tuple[int, int]  # the first task, and one past the last


@dataclass(frozen=True, slots=True)
class Standings:
    """The standings after some batches, in order."""

    batch: Integers
    tasks: Integers
    clock: Floats
    makespan: Floats

    def candidates(self, time: Floats) -> list[Range]:
        """The tasks that may be unfinished at each moment."""
        finished, arrived = self._finished(time), self._arrived(time)
        first = np.where(finished >= 0, self.tasks[finished], 0)
        return list(zip(first.tolist(), self.tasks[arrived].tolist(), strict=True))

    def between(self, time: Floats) -> Integers:
        """Further batches that would narrow the candidates."""
        last, steps = len(self.batch) - 1, np.linspace(0, 1, BATCHES_OF_MOMENT + 2)[:, None]
        low = np.maximum(np.concatenate((self._finished(time), self._arrived(time) - 1)), 0)
        low, high = self.batch[low], self.batch[np.minimum(low + 1, last)]
        more: Integers = np.unique((low + steps * (high - low)).round().astype(np.int64))
        return np.union1d(more, self.batch)

    def _finished(self, time: Floats) -> Integers:
        """The last row in which all tasks are finished; -1: none."""
        return np.searchsorted(self.makespan, time, side="right") - 1

    def _arrived(self, time: Floats) -> Integers:
        """The first row in which a task arrives later; else the last row."""
        return np.minimum(np.searchsorted(self.clock, time, side="right"), len(self.batch) - 1)


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """When tasks arrived, were started and finished, in the order of their ids."""

    task_id: Integers
    arrival: Floats
    started: Floats
    finish: Floats

    def count(self, time: float, blocks: Sequence[Range]) -> tuple[int, int]:
        """How many tasks of these blocks are unfinished at a moment, and how many wait."""
        unfinished = waiting = 0
        for first, last in blocks:
            rows = slice(*np.searchsorted(self.task_id, (first, last)))
            active = (self.arrival[rows] <= time + ROUNDING) & (self.finish[rows] > time)
            unfinished += int(active.sum())
            waiting += int((active & (self.started[rows] > time)).sum())
        return unfinished, waiting


def queue_tracks(
    store: Store, run: str, schedulers: Iterable[str], seconds: float | None, points: int
) -> dict[str, QueueTrack]:
    """The queues at evenly spaced moments of the last `seconds` before the newest arrival; None: of
    the complete run."""
    tracks = {}
    for name, newest in newest_standings(store, run, schedulers).items():
        start = 0.0 if seconds is None else max(newest["clock"] - seconds, 0.0)
        time = np.linspace(start, newest["clock"], points)
        tracks[name] = _track(store, {"run": run, "scheduler": name}, newest, time)
    return tracks


def _track(store: Store, key: dict[str, Any], newest: dict[str, Any], time: Floats) -> QueueTrack:
    start = float(time[0])
    finished = store.query(FINISHED, {**key, "at": start}) if start > 0 else []
    first = finished[0]["batch"] if finished else 0
    grid = np.linspace(first, newest["batch"], BATCHES_OF_STRETCH).round().astype(np.int64)
    standings = _standings(store, key, np.unique(grid))
    if newest["batch"] - first > BATCHES_OF_STRETCH:
        standings = _standings(store, key, standings.between(time))
    candidates = standings.candidates(time)
    blocks = [[each] for each in candidates]
    exact = _length(merged(candidates)) <= MOST_TASKS
    if not exact:
        blocks = [sampled(each) for each in candidates]
    times = _task_times(store, key, merged(block for each in blocks for block in each))
    unfinished, waiting = [], []
    for moment, tasks, chosen in zip(time.tolist(), candidates, blocks, strict=True):
        scale = _length([tasks]) / max(_length(chosen), 1)
        counts = times.count(moment, chosen)
        unfinished.append(counts[0] * scale)
        waiting.append(counts[1] * scale)
    return QueueTrack(time=time.tolist(), unfinished=unfinished, waiting=waiting, exact=exact)


def _standings(store: Store, key: dict[str, Any], batches: Integers) -> Standings:
    rows = store.table(BATCHES, {**key, "batches": batches.tolist()})
    columns = integers(rows, "batch"), integers(rows, "tasks")
    return Standings(*columns, floats(rows, "clock"), floats(rows, "makespan"))


def _task_times(store: Store, key: dict[str, Any], ranges: Sequence[Range]) -> TaskTimes:
    between = " OR ".join(
        f"(task_id >= {first} AND task_id < {last})" for first, last in ranges if last > first
    )
    table: pa.Table = store.table(TASKS % (between or "0"), key)
    columns = (floats(table, name) for name in ("arrival", "started", "finish"))
    return TaskTimes(integers(table, "task_id"), *columns)


def sampled(tasks: Range) -> list[Range]:
    """A short range completely; of a long one, blocks in the middle of its equal parts.

    >>> sampled((0, 4096)), sampled((0, 8192))[:2]
    ([(0, 4096)], [(256, 768), (1280, 1792)])
    """
    first, last = tasks
    part = (last - first) / BLOCKS
    if part <= BLOCK:
        return [tasks]
    begins = (first + round((number + 0.5) * part) - BLOCK // 2 for number in range(BLOCKS))
    return [(begin, begin + BLOCK) for begin in begins]


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Ranges that touch, as one.

    >>> merged([(5, 8), (0, 3), (3, 4), (6, 7)])
    [(0, 4), (5, 8)]
    """
    result: list[Range] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return result


def _length(ranges: Iterable[Range]) -> int:
    return sum(last - first for first, last in ranges)
