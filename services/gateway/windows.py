"""Bounded looks into a run: each reads a stretch of the primary key, never the run.

Results are ordered by (run, scheduler, task), standings by (run, scheduler, batch), so that a
window of tasks or a handful of batches costs the same after a million tasks as after a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from services.gateway.queries import Queries
from services.gateway.rows import vs_oracle
from shared.store.client import Store

RESULTS = """
    SELECT scheduler, task_id, gpu_fraction, time, energy, cost, gpu_time, cpu_time,
           status = 'failed' AS failed
    FROM scheduler_results FINAL
    WHERE run = {run:String} AND scheduler IN {schedulers:Array(String)}
      AND task_id >= {first:Int64} AND task_id < {last:Int64}
    ORDER BY scheduler, task_id
"""

FEATURES = """
    SELECT task_id, size, compute_intensity, memory_required FROM tasks FINAL
    WHERE run = {run:String} AND task_id >= {first:Int64} AND task_id < {last:Int64}
    ORDER BY task_id
"""

PROGRESS = """
    SELECT scheduler, batch, tasks, total_time, total_energy, total_cost FROM standings
    WHERE run = {run:String} AND scheduler IN {schedulers:Array(String)}
      AND batch IN {batches:Array(UInt64)}
    ORDER BY scheduler, batch
    LIMIT 1 BY scheduler, batch
"""

# A device serves in task order, so a stretch of time is a stretch of tasks: the index on the starts
# finds it, also far behind the newest task when the device has a queue.
PARTS = """
    SELECT task_id, gpu, gpu_start, gpu_time, cpu_start, cpu_time FROM scheduler_results
    WHERE run = {run:String} AND scheduler = {scheduler:String}
      AND ((gpu_start >= {since:Float64} AND gpu_start < {end:Float64})
        OR (cpu_start >= {since:Float64} AND cpu_start < {end:Float64}))
    ORDER BY run DESC, scheduler DESC, task_id DESC
    LIMIT 1 BY task_id
    LIMIT {limit:UInt32}
"""
# A part that began earlier than this before the window is not seen in it: three times the longest
# that a preset's largest task takes.
LONGEST_PART_SECONDS = 600.0
MOST_PARTS = 100_000

PAGE = """
    SELECT task_id, scheduler AS scheduler_name, gpu_fraction, gpu, model_version, explored,
           probability, time AS actual_time, wait, turnaround, energy AS energy_consumption,
           cost AS execution_cost, status
    FROM scheduler_results FINAL
    WHERE run = {run:String} AND scheduler IN {schedulers:Array(String)}
      AND task_id >= {first:Int64} AND task_id < {before:Int64}
      AND ({status:String} = '' OR status = {status:String})
    ORDER BY task_id DESC, scheduler_name
    LIMIT {limit:UInt32} WITH TIES
"""
# Tasks looked through for one page when only some match.
SEARCHED_TASKS = 50_000

FEATURES_OF = """
    SELECT task_id, size, compute_intensity, memory_required, arrival_time FROM tasks FINAL
    WHERE run = {run:String} AND task_id IN {tasks:Array(Int64)}
"""

ORACLE_TIMES = """
    SELECT task_id, time FROM scheduler_results FINAL
    WHERE run = {run:String} AND scheduler = 'oracle' AND status = 'ok'
      AND task_id IN {tasks:Array(Int64)}
"""


class Windows:
    def __init__(self, store: Store, queries: Queries) -> None:
        self._store = store
        self._queries = queries

    def common(self, run: str, schedulers: Sequence[str], tasks: int) -> tuple[int, int]:
        """The newest tasks that every scheduler has a stored result for: first, and one past."""
        known = self._queries.newest_standings(run, schedulers)
        last = min((row["tasks"] for row in known.values()), default=0)
        if len(known) < len(set(schedulers)):
            last = 0
        return max(last - tasks, 0), last

    def results(self, run: str, schedulers: Sequence[str], first: int, last: int) -> pa.Table:
        """By scheduler and task."""
        given = {"run": run, "schedulers": list(schedulers), "first": first, "last": last}
        return self._store.table(RESULTS, given)

    def features(self, run: str, first: int, last: int) -> pa.Table:
        return self._store.table(FEATURES, {"run": run, "first": first, "last": last})

    def progress(
        self, run: str, schedulers: Sequence[str], points: int
    ) -> dict[str, list[dict[str, Any]]]:
        """Totals of each scheduler after batches that lie evenly over the run so far."""
        newest = self._queries.newest_standings(run, schedulers)
        if not newest:
            return {}
        ends = {row["batch"] for row in newest.values()}
        grid = np.linspace(0, max(ends), points).round().astype(int).tolist()
        given = {"run": run, "schedulers": list(newest), "batches": sorted({*grid, *ends})}
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in newest}
        for row in self._store.query(PROGRESS, given):
            wanted = row["batch"] in grid or row["batch"] == newest[row["scheduler"]]["batch"]
            if wanted:
                found[row["scheduler"]].append(row)
        return {name: rows[-points:] for name, rows in found.items()}

    def parts(self, run: str, scheduler: str, start: float, end: float) -> pa.Table:
        """What ran on which device between two moments of simulated time."""
        given = {
            "run": run,
            "scheduler": scheduler,
            "since": start - LONGEST_PART_SECONDS,
            "end": end,
            "limit": MOST_PARTS,
        }
        return self._store.table(PARTS, given)

    def page(
        self,
        run: str,
        schedulers: Sequence[str],
        competing: Iterable[str],
        before: int | None,
        limit: int,
        status: str | None,
    ) -> tuple[list[dict[str, Any]], int | None]:
        """Results of `limit` tasks, newest first, and where the next page begins."""
        if before is None:
            known = self._queries.newest_standings(run, schedulers)
            before = max((row["tasks"] for row in known.values()), default=0)
        first = max(before - (SEARCHED_TASKS if status else limit), 0)
        given = {
            "run": run,
            "schedulers": list(schedulers),
            "first": first,
            "before": before,
            "status": status or "",
            # With a status a row is a find of its own; ties keep a task's rows together.
            "limit": limit if status else limit * len(schedulers),
        }
        rows = self._store.query(PAGE, given)
        self._complete(run, rows, oracle="oracle" in competing)
        full = status is not None and len(rows) >= limit
        end = rows[-1]["task_id"] if full else first
        return rows, end if end > 0 else None

    def _complete(self, run: str, rows: list[dict[str, Any]], *, oracle: bool) -> None:
        """Add each task's features and how its time compares with the Oracle's."""
        given = {"run": run, "tasks": sorted({row["task_id"] for row in rows})}
        if not rows:
            return
        features = {row["task_id"]: row for row in self._store.query(FEATURES_OF, given)}
        found = self._store.query(ORACLE_TIMES, given) if oracle else []
        times = {row["task_id"]: row["time"] for row in found}
        missing = dict.fromkeys(
            ("size", "compute_intensity", "memory_required", "arrival_time"), None
        )
        for row in rows:
            row.update(features.get(row["task_id"], missing))
            best = times.get(row["task_id"])
            row["vs_oracle"] = vs_oracle(row["actual_time"], row["status"], best)
