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
