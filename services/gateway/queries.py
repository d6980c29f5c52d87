"""What the gateway asks the store. Nothing here scans a run to answer a tick."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from typing import Any

from services.gateway.shapes import SchedulerStanding
from shared.batches import Batch
from shared.models import LEARNERS
from shared.standing import Standing
from shared.store.client import Store
from shared.store.schema import TABLES

FORGOTTEN_AT_ONCE = 100

# One row each, found from the end of the primary key.
NEWEST_STANDING = """
    SELECT * FROM standings WHERE run = {{run:String}} AND scheduler = {{s{index}:String}}
    ORDER BY run DESC, scheduler DESC, batch DESC LIMIT 1
"""

# The newest standing at or before a moment of simulated time, looked for in batches just before.
BUSY_BEFORE = """
    SELECT scheduler, clock, cpu_busy, gpu_busy FROM standings
    WHERE run = {{run:String}} AND scheduler = {{s{index}:String}}
      AND batch < {{b{index}:UInt64}} AND batch + {look_back} >= {{b{index}:UInt64}}
      AND clock <= {{c{index}:Float64}}
    ORDER BY run DESC, scheduler DESC, batch DESC LIMIT 1
"""
LOOK_BACK_BATCHES = 50_000

RESULTS_OF_TASK = """
    SELECT * FROM (
        SELECT * FROM scheduler_results FINAL
        WHERE run = {run:String} AND scheduler IN {schedulers:Array(String)}
          AND task_id = {task:Int64}
    ) AS results
    INNER JOIN (
        SELECT task_id, size, compute_intensity, memory_required, arrival_time, dependencies
        FROM tasks FINAL WHERE run = {run:String} AND task_id = {task:Int64}
    ) AS tasks USING (task_id)
"""

# One batch of tasks, as one publisher sent it: another's would hardly be of the same microsecond.
TASKS_OF_BATCH = """
    SELECT count() AS tasks FROM tasks FINAL
    WHERE run = {run:String} AND task_id BETWEEN {first:Int64} AND {last:Int64}
      AND batch = {batch:UInt64}
      AND abs(toUnixTimestamp64Micro(published_at) - {published_at:Int64}) <= 1
"""

# Read from the end: the newest that match, whatever the number of older ones. Several threads would
# read on, far beyond the limit.
EVENTS = """
    SELECT sequence, toUnixTimestamp64Micro(at) / 1e6 AS at, kind, service, run, message, data
    FROM events
    WHERE {older}
      AND (empty({runs:Array(String)}) OR run IN {runs:Array(String)})
      AND ({kind:String} = '' OR kind = {kind:String})
    ORDER BY events.at DESC, sequence DESC
    LIMIT 1 BY events.at, sequence
    LIMIT {limit:UInt32}
    SETTINGS max_threads = 1
"""
# Looks for the place of that event: only those who turn a page pay for it.
OLDER_EVENTS = """
    (events.at, sequence)
    < ((SELECT max(at) FROM events WHERE sequence = {before:UInt64}), {before:UInt64})
"""

# The Oracle has a result for every task, so its newest are the last numbers.
TRAINING_DATA = """
    WITH (
        SELECT task_id FROM training_data WHERE run = {run:String}
        ORDER BY run DESC, task_id DESC LIMIT 1
    ) AS newest
    SELECT run, task_id, size, compute_intensity, memory_required, optimal_gpu_fraction,
           optimal_time
    FROM training_data FINAL
    WHERE run = {run:String} AND task_id > newest - {limit:UInt32} AND task_id <= newest
    ORDER BY task_id
"""

# Of one learner in one run, from the end.
NEWEST_MODELS = """
    SELECT * FROM models
    WHERE run = {{run:String}} AND name = {{s{index}:String}}
      AND ({{version:UInt32}} = 0 OR version = {{version:UInt32}})
    ORDER BY run DESC, name DESC, created_at DESC, version DESC
    LIMIT 1 BY run, name, created_at, version
    LIMIT {{limit:UInt32}}
"""

# Of all runs: a row for every training, which are few beside the tasks.
MODELS = """
    SELECT * FROM models FINAL
    WHERE ({name:String} = '' OR name = {name:String})
      AND ({version:UInt32} = 0 OR version = {version:UInt32})
    ORDER BY created_at DESC, version DESC LIMIT {limit:UInt32}
"""


class Queries:
    def __init__(self, store: Store) -> None:
        self._store = store

    def standings(self, run: str, schedulers: Iterable[str]) -> dict[str, SchedulerStanding]:
        rows = self.newest_standings(run, schedulers)
        known = {name: Standing.model_validate(row) for name, row in rows.items()}
        return {name: _standing(standing, known.get("oracle")) for name, standing in known.items()}

    def newest_standings(self, run: str, schedulers: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The newest row of each scheduler that has one, by name."""
        names = sorted(schedulers)
        parameters = {"run": run, **{f"s{index}": name for index, name in enumerate(names)}}
        rows = self._each(NEWEST_STANDING, len(names), parameters)
        return {row["scheduler"]: row for row in sorted(rows, key=lambda row: row["scheduler"])}

    def busy_before(
        self, run: str, places: Mapping[str, tuple[int, float]]
    ) -> dict[str, dict[str, Any]]:
        """How busy each scheduler's devices had been by a moment before its given batch."""
        parameters: dict[str, Any] = {"run": run}
        for index, (name, (batch, clock)) in enumerate(places.items()):
            parameters |= {f"s{index}": name, f"b{index}": batch, f"c{index}": clock}
        sql = BUSY_BEFORE.replace("{look_back}", str(LOOK_BACK_BATCHES))
        return {row["scheduler"]: row for row in self._each(sql, len(places), parameters)}

    def _each(self, sql: str, count: int, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """The same for several schedulers or learners in one query."""
        parts = [f"SELECT * FROM ({sql.format(index=index)})" for index in range(count)]
        return self._store.query(" UNION ALL ".join(parts), parameters) if parts else []

    def results_of_task(
        self, run: str, schedulers: Iterable[str], task_id: int
    ) -> dict[str, dict[str, Any]]:
        """The whole rows of one task, with its features, by scheduler."""
        given = {"run": run, "schedulers": sorted(schedulers), "task": task_id}
        rows = self._store.query(RESULTS_OF_TASK, given)
        return {row["scheduler"]: row for row in sorted(rows, key=lambda row: row["scheduler"])}

    def has_tasks(self, batch: Batch) -> bool:
        """Whether a batch of tasks that was sent is what is stored in its place."""
        envelope, ids = batch.envelope, batch.rows.column("task_id")
        given = {
            "run": envelope.run,
            "first": ids[0].as_py(),
            "last": ids[-1].as_py(),
            "batch": envelope.batch,
            "published_at": round(envelope.published_at * 1e6),
        }
        (found,) = self._store.query(TASKS_OF_BATCH, given)
        return bool(found["tasks"] == len(ids))

    def events(
        self,
        run: str | None,
        kind: str | None,
        limit: int,
        before: int | None,
        *,
        arena_too: bool = False,
    ) -> list[dict[str, Any]]:
        """Newest first; `arena_too`: with those of no run."""
        runs = [] if run is None else [run, ""] if arena_too else [run]
        given = {"runs": runs, "kind": kind or "", "limit": limit, "before": before or 0}
        sql = EVENTS.replace("{older}", OLDER_EVENTS if before else "true")
        rows = self._store.query(sql, given)
        for row in rows:
            row["data"] = json.loads(row["data"])
        return rows

    def training_data(self, run: str, limit: int) -> list[dict[str, Any]]:
        return self._store.query(TRAINING_DATA, {"run": run, "limit": limit})

    def models(
        self, run: str | None, name: str | None, version: int | None, limit: int
    ) -> list[dict[str, Any]]:
        given = {"name": name or "", "version": version or 0, "limit": limit}
        if run is None:
            rows = self._store.query(MODELS, given)
        else:
            rows = self._newest_models(run, [name] if name else list(LEARNERS), given)[:limit]
        for row in rows:
            row["metrics"] = json.loads(row["metrics"])
            # The driver gives UTC without saying so.
            row["created_at"] = row["created_at"].replace(tzinfo=UTC)
        return rows

    def _newest_models(
        self, run: str, names: list[str], given: dict[str, Any]
    ) -> list[dict[str, Any]]:
        given = {**given, "run": run, **{f"s{index}": name for index, name in enumerate(names)}}
        rows = self._each(NEWEST_MODELS, len(names), given)
        return sorted(rows, key=lambda row: (row["created_at"], row["version"]), reverse=True)

    def stored_runs(self) -> list[str]:
        """Every run of which any table has a row. Looks through all of them."""
        parts = [f"SELECT DISTINCT run FROM {table} WHERE run != ''" for table in TABLES]
        return [row["run"] for row in self._store.query(" UNION DISTINCT ".join(parts))]

    def forget(self, runs: Sequence[str]) -> None:
        """A deletion costs the same for one run and for a hundred."""
        for start in range(0, len(runs), FORGOTTEN_AT_ONCE):
            few = list(runs[start : start + FORGOTTEN_AT_ONCE])
            for table in TABLES:
                statement = f"DELETE FROM {table} WHERE run IN {{runs:Array(String)}}"
                self._store.command(statement, {"runs": few})


def _standing(standing: Standing, oracle: Standing | None) -> SchedulerStanding:
    tasks = standing.tasks or 1
    return SchedulerStanding(
        results=standing.tasks,
        failed=standing.failed,
        gpu_tasks=standing.gpu_tasks,
        total_time=standing.total_time,
        avg_time=standing.total_time / tasks,
        avg_wait=standing.total_wait / tasks,
        makespan=standing.makespan,
        avg_energy=standing.total_energy / tasks,
        avg_cost=standing.total_cost / tasks,
        total_energy=standing.total_energy,
        total_cost=standing.total_cost,
        clock=standing.clock,
        cpu_busy=standing.cpu_busy,
        gpu_busy=standing.gpu_busy,
        vs_oracle=standing.over(oracle),
    )
