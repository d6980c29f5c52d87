"""What the gateway asks the store. Nothing here scans a run to answer a tick."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC
from typing import Any

from services.gateway.shapes import SchedulerStanding
from shared.store.client import Store
from shared.store.schema import TABLES

# One row each, found from the end of the primary key.
NEWEST_STANDING = """
    SELECT * FROM standings WHERE run = {{run:String}} AND scheduler = {{s{index}:String}}
    ORDER BY run DESC, scheduler DESC, batch DESC LIMIT 1
"""

TRAINING_DATA = """
    SELECT run, task_id, size, compute_intensity, memory_required, optimal_gpu_fraction,
           optimal_time
    FROM training_data FINAL WHERE run = {run:String}
    ORDER BY task_id DESC LIMIT {limit:UInt32}
"""

COMPARATIVE = """
    SELECT run, task_id, scheduler AS scheduler_name, gpu_fraction, gpu, model_version, explored,
           time AS actual_time, wait, turnaround, energy AS energy_consumption,
           cost AS execution_cost, status,
           size, compute_intensity, memory_required, arrival_time
    FROM (
        SELECT * FROM scheduler_results FINAL
        WHERE run = {run:String} AND task_id >= {first:Int64} AND task_id < {last:Int64}
    ) AS results
    INNER JOIN (
        SELECT * FROM tasks FINAL
        WHERE run = {run:String} AND task_id >= {first:Int64} AND task_id < {last:Int64}
    ) AS tasks USING (run, task_id)
    ORDER BY task_id DESC, scheduler_name
"""

MODELS = """
    SELECT * FROM models FINAL
    WHERE ({run:String} = '' OR run = {run:String})
      AND ({name:String} = '' OR name = {name:String})
      AND ({version:UInt32} = 0 OR version = {version:UInt32})
    ORDER BY created_at DESC, version DESC LIMIT {limit:UInt32}
"""


class Queries:
    def __init__(self, store: Store) -> None:
        self._store = store

    def standings(self, run: str, schedulers: Iterable[str]) -> dict[str, SchedulerStanding]:
        names = sorted(schedulers)
        if not names:
            return {}
        sql = " UNION ALL ".join(
            f"SELECT * FROM ({NEWEST_STANDING.format(index=index)})" for index in range(len(names))
        )
        parameters = {"run": run, **{f"s{index}": name for index, name in enumerate(names)}}
        rows = {row["scheduler"]: row for row in self._store.query(sql, parameters)}
        oracle = rows.get("oracle")
        return {name: _standing(rows[name], oracle) for name in names if name in rows}

    def training_data(self, run: str, limit: int) -> list[dict[str, Any]]:
        rows = self._store.query(TRAINING_DATA, {"run": run, "limit": limit})
        return rows[::-1]

    def comparative(self, run: str, schedulers: Iterable[str], limit: int) -> list[dict[str, Any]]:
        """Every scheduler's result for the last `limit` tasks, newest task first."""
        standings = self.standings(run, schedulers)
        last = max((standing.results for standing in standings.values()), default=0)
        window = {"run": run, "first": max(last - limit, 0), "last": last}
        return self._store.query(COMPARATIVE, window)

    def models(
        self, run: str | None, name: str | None, version: int | None, limit: int
    ) -> list[dict[str, Any]]:
        given = {"run": run or "", "name": name or "", "version": version or 0, "limit": limit}
        rows = self._store.query(MODELS, given)
        for row in rows:
            row["metrics"] = json.loads(row["metrics"])
            # The driver gives UTC without saying so.
            row["created_at"] = row["created_at"].replace(tzinfo=UTC)
        return rows

    def forget(self, runs: Iterable[str]) -> None:
        for run in runs:
            for table in TABLES:
                self._store.command(f"DELETE FROM {table} WHERE run = {{run:String}}", {"run": run})


def _standing(row: dict[str, Any], oracle: dict[str, Any] | None) -> SchedulerStanding:
    tasks = row["tasks"] or 1
    comparable = oracle is not None and oracle["tasks"] == row["tasks"] and oracle["total_time"]
    return SchedulerStanding(
        results=row["tasks"],
        failed=row["failed"],
        gpu_tasks=row["gpu_tasks"],
        total_time=row["total_time"],
        avg_time=row["total_time"] / tasks,
        avg_wait=row["total_wait"] / tasks,
        makespan=row["makespan"],
        avg_energy=row["total_energy"] / tasks,
        avg_cost=row["total_cost"] / tasks,
        total_energy=row["total_energy"],
        total_cost=row["total_cost"],
        clock=row["clock"],
        cpu_busy=row["cpu_busy"],
        gpu_busy=row["gpu_busy"],
        vs_oracle=row["total_time"] / oracle["total_time"] if comparable and oracle else None,
    )
