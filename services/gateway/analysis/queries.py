"""Windows of a run's results in the store.

Results are ordered by (run, scheduler, task), standings by (run, scheduler, batch): a window of
tasks or a few batches cost the same after a million tasks as after a thousand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from services.gateway.runs.queries import newest_standings
from shared.store.client import Store

RESULTS = """
    SELECT scheduler, task_id, gpu_fraction, device, cpu, time, turnaround, energy, cost,
           gpu_time, cpu_time, status = 'failed' AS failed
    FROM scheduler_results FINAL
    WHERE run = {run:String} AND scheduler IN {schedulers:Array(String)}
      AND task_id >= {first:Int64} AND task_id < {last:Int64}
    ORDER BY scheduler, task_id
"""

FEATURES = """
    SELECT task_id, size, compute_intensity, memory_required, width FROM tasks FINAL
    WHERE run = {run:String} AND task_id >= {first:Int64} AND task_id < {last:Int64}
    ORDER BY task_id
"""

PROGRESS = """
    SELECT scheduler, batch, tasks, failed, total_time, total_turnaround, total_energy, total_cost,
           turnaround_p95
    FROM standings
    WHERE run = {run:String} AND scheduler IN {schedulers:Array(String)}
      AND batch IN {batches:Array(UInt64)}
    ORDER BY scheduler, batch
    LIMIT 1 BY scheduler, batch
"""

# A device runs tasks mostly in order, so a period of time is a range of tasks: the indexes on
# starts and finish find it, also far before the newest task when the device has a queue.
DEVICE_PARTS = """
    SELECT task_id, device, cpu, gpu_start, gpu_time, cpu_start, cpu_time FROM scheduler_results
    WHERE run = {run:String} AND scheduler = {scheduler:String}
      AND finish > {start:Float64} AND (gpu_start < {end:Float64} OR cpu_start < {end:Float64})
    ORDER BY run DESC, scheduler DESC, task_id DESC
    LIMIT 1 BY task_id
    LIMIT {limit:UInt32}
"""
WIDTHS = """
    SELECT task_id, width FROM tasks FINAL
    WHERE run = {run:String} AND task_id BETWEEN {first:Int64} AND {last:Int64} AND width > 1
"""
MOST_PARTS = 100_000


def common_tasks(store: Store, run: str, schedulers: Sequence[str], tasks: int) -> tuple[int, int]:
    """The newest tasks that have a stored result of every scheduler: first, and one past last."""
    standings = newest_standings(store, run, schedulers)
    last = min((row["tasks"] for row in standings.values()), default=0)
    if len(standings) < len(set(schedulers)):
        last = 0
    return max(last - tasks, 0), last


def results(store: Store, run: str, schedulers: Sequence[str], first: int, last: int) -> pa.Table:
    """Ordered by scheduler and task."""
    parameters = {"run": run, "schedulers": list(schedulers), "first": first, "last": last}
    return store.table(RESULTS, parameters)


def features(store: Store, run: str, first: int, last: int) -> pa.Table:
    return store.table(FEATURES, {"run": run, "first": first, "last": last})


def progress(
    store: Store, run: str, schedulers: Sequence[str], points: int
) -> dict[str, list[dict[str, Any]]]:
    """Totals of each scheduler after batches that are evenly spaced over the run so far."""
    newest = newest_standings(store, run, schedulers)
    if not newest:
        return {}
    ends = {row["batch"] for row in newest.values()}
    grid = np.linspace(0, max(ends), points).round().astype(int).tolist()
    parameters = {"run": run, "schedulers": list(newest), "batches": sorted({*grid, *ends})}
    series: dict[str, list[dict[str, Any]]] = {name: [] for name in newest}
    for row in store.query(PROGRESS, parameters):
        if row["batch"] in grid or row["batch"] == newest[row["scheduler"]]["batch"]:
            series[row["scheduler"]].append(row)
    return {name: rows[-points:] for name, rows in series.items()}


def device_parts(store: Store, run: str, scheduler: str, start: float, end: float) -> pa.Table:
    """The parts of tasks that ran on any device between two moments of simulated time, with the
    tasks' widths."""
    period = {"run": run, "scheduler": scheduler, "start": start, "end": end, "limit": MOST_PARTS}
    parts = store.table(DEVICE_PARTS, period)
    task_id = parts.column("task_id").to_numpy()
    width = np.ones(len(task_id), np.int64)
    if len(task_id):
        between = {"run": run, "first": int(task_id.min()), "last": int(task_id.max())}
        wide = store.table(WIDTHS, between)
        # Both have a task at most once.
        _, here, there = np.intersect1d(
            task_id, wide.column("task_id").to_numpy(), assume_unique=True, return_indices=True
        )
        width[here] = wide.column("width").to_numpy()[there]
    return parts.append_column("width", pa.array(width))
