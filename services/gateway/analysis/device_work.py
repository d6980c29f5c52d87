"""What the devices of one scheduler's virtual cluster did in a stretch of simulated time.

The standings turn the stretch into a range of tasks: those after the last batch that was finished
before it, up to the batch that arrives at its end. Within the range the indexes on the parts of
tasks find the stretch, however long the queues are. So a query reads little more than it
returns, however many tasks the run has. This relies on tasks arriving in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from services.gateway.analysis.task_window import floats
from services.gateway.tasks.device_names import cpus_of
from shared.domain.hardware.platform import Platform
from shared.domain.tasks import Bools, Floats, Integers
from shared.store.client import Store
from shared.store.schema import PART_BEGIN, PART_END

FINISHED = """
    SELECT batch, tasks FROM standings
    WHERE run = {run:String} AND scheduler = {scheduler:String} AND makespan <= {at:Float64}
    ORDER BY run DESC, scheduler DESC, batch DESC LIMIT 1
"""
# Without the setting a block of 65,000 rows is read to find the first one.
ARRIVED = """
    SELECT tasks FROM standings
    WHERE run = {run:String} AND scheduler = {scheduler:String} AND clock >= {at:Float64}
    ORDER BY run, scheduler, batch LIMIT 1
    SETTINGS max_block_size = 1024
"""
# The parts on accelerators (gpu) or on CPUs, newest task first.
PARTS = """
    SELECT task_id, {device} AS device, {kind}_start AS begin, {kind}_time AS length,
           gpu_time > 0 AND cpu_time > 0 AS split, status = 'failed' AS failed
    FROM scheduler_results
    WHERE run = {{run:String}} AND scheduler = {{scheduler:String}}
      AND task_id >= {{first:Int64}} AND task_id < {{last:Int64}}
      AND {begins} < {{end:Float64}} AND {ends} > {{start:Float64}}
    ORDER BY run DESC, scheduler DESC, task_id DESC
    LIMIT 1 BY task_id
    LIMIT {{limit:UInt32}}
"""
PARTS_OF = {
    kind: PARTS.format(kind=kind, device=device, begins=PART_BEGIN[kind], ends=PART_END[kind])
    for kind, device in (("gpu", "device"), ("cpu", "cpu"))
}
FEATURES = """
    SELECT task_id, size, width FROM tasks
    WHERE run = {run:String} AND task_id BETWEEN {first:Int64} AND {last:Int64}
    ORDER BY run, task_id
    LIMIT 1 BY task_id
"""

MOST_PARTS, MOST_QUEUED = 100_000, 50_000
# Tasks that are searched where queues differ so much that the indexes do not help.
MOST_SEARCHED = 1_000_000
FOREVER = 1e300


@dataclass(frozen=True, slots=True)
class Work:
    """Parts of tasks. A task of width w has a row for each of its w devices."""

    task_id: Integers
    device: Integers
    begin: Floats
    length: Floats
    split: Bools  # whether the task has parts on an accelerator and on a CPU
    failed: Bools
    size: Floats  # of the task; NaN: not stored yet
    complete: bool = True  # otherwise there are more parts of older tasks

    @property
    def end(self) -> Floats:
        return self.begin + self.length

    def on(self, devices: Integers) -> Work:
        """What these devices did; `device` becomes the position in the list."""
        order = np.argsort(devices)
        place = order[np.searchsorted(devices[order], self.device) % len(devices)]
        chosen = np.flatnonzero(devices[place] == self.device)
        return replace(self._rows(chosen), device=place[chosen])

    def _rows(self, rows: Integers) -> Work:
        return replace(self, **{name: getattr(self, name)[rows] for name in COLUMNS})

    def on_all_devices(self, width: Integers, platform: Platform) -> Work:
        """Repeat each row for every device that a task of this width takes."""
        wide = np.flatnonzero(width > 1)
        if not len(wide):
            return self
        gangs = [platform.gang(int(self.device[row]), int(width[row])) for row in wide]
        single = np.flatnonzero(width <= 1)
        rows = np.concatenate((single, np.repeat(wide, [len(gang) for gang in gangs])))
        devices = np.concatenate((self.device[single], *gangs)).astype(np.int64)
        return replace(self._rows(rows), device=devices)


COLUMNS = tuple(column.name for column in fields(Work) if column.name != "complete")


def work_between(
    store: Store,
    run: str,
    scheduler: str,
    platform: Platform,
    start: float,
    end: float,
    tasks: int,
) -> Work:
    """What any device did between two moments, by the first `tasks` tasks of the run."""
    key = {"run": run, "scheduler": scheduler}
    arrived = store.query(ARRIVED, {**key, "at": end})
    last = min(tasks, arrived[0]["tasks"]) if arrived else tasks
    return _find(store, key, platform, (start, end), last, MOST_PARTS)


def work_queued(
    store: Store, run: str, scheduler: str, platform: Platform, at: float, before: int
) -> Work:
    """What devices had to do at a moment, and later, for the tasks before one."""
    key = {"run": run, "scheduler": scheduler}
    return _find(store, key, platform, (at, FOREVER), before, MOST_QUEUED)


def _find(
    store: Store,
    key: dict[str, Any],
    platform: Platform,
    stretch: tuple[float, float],
    last: int,
    most: int,
) -> Work:
    """The parts of tasks below `last` in a stretch; newest tasks first, if there are too many."""
    finished = store.query(FINISHED, {**key, "at": stretch[0]})
    first = finished[0]["tasks"] if finished else 0
    searched = max(first, last - MOST_SEARCHED)
    parameters = {
        **key,
        "first": searched,
        "last": last,
        "start": stretch[0],
        "end": stretch[1],
        "limit": most,
    }
    tables = [store.table(sql, parameters) for sql in PARTS_OF.values()]
    complete = searched == first and all(table.num_rows < most for table in tables)
    return joined([_work(store, key["run"], table, platform) for table in tables], complete)


def _work(store: Store, run: str, parts: pa.Table, platform: Platform) -> Work:
    task_id = integers(parts, "task_id")
    between = {"first": int(task_id.min()), "last": int(task_id.max())} if len(task_id) else {}
    features = store.table(FEATURES, {"run": run, **between}) if between else None
    return with_features(parts, features, platform)


def with_features(parts: pa.Table, features: pa.Table | None, platform: Platform) -> Work:
    """The parts on all their devices, with the sizes of their tasks."""
    task_id = integers(parts, "task_id")
    size, width = np.full(len(task_id), np.nan), np.ones(len(task_id), np.int64)
    if features is not None:
        known = integers(features, "task_id")
        # Both have a task at most once.
        _, row, source = np.intersect1d(task_id, known, assume_unique=True, return_indices=True)
        size[row] = floats(features, "size")[source]
        width[row] = integers(features, "width")[source]
    device = cpus_of(integers(parts, "device"), task_id, platform)
    return Work(
        task_id,
        device,
        floats(parts, "begin"),
        floats(parts, "length"),
        floats(parts, "split") > 0,
        floats(parts, "failed") > 0,
        size,
    ).on_all_devices(width, platform)


def joined(works: Sequence[Work], complete: bool) -> Work:
    columns = {name: np.concatenate([getattr(work, name) for work in works]) for name in COLUMNS}
    return replace(works[0], **columns, complete=complete)


def integers(table: pa.Table, name: str) -> Integers:
    return floats(table, name).astype(np.int64)
