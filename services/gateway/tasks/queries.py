"""Tasks and their results in the store.

Results are ordered by (run, scheduler, task): a page of tasks costs the same after a million tasks
as after a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from services.gateway.runs.queries import newest_standings
from shared.domain.schedulers import ORACLE
from shared.errors import NotFound
from shared.messages.batches import Batch
from shared.messages.columns import DECISION, RESULT, TASK
from shared.store.client import Store

TASK_COLUMNS = ", ".join(column.name for column in TASK)
RESULT_COLUMNS = ", ".join(column.name for column in (*DECISION, *RESULT))

PAGE = f"""
    SELECT task_id, scheduler, {RESULT_COLUMNS} FROM scheduler_results FINAL
    WHERE run = {{run:String}} AND scheduler IN {{schedulers:Array(String)}}
      AND task_id >= {{first:Int64}} AND task_id < {{before:Int64}}
      AND ({{status:String}} = '' OR status = {{status:String}})
    ORDER BY task_id DESC, scheduler
    LIMIT {{limit:UInt32}} WITH TIES
"""
# Tasks searched for one page when only those of one status match.
SEARCHED_TASKS = 50_000

# Over all tasks of a run: read only when somebody asks for it, never at an update.
SORTED = f"""
    SELECT task_id, scheduler, {RESULT_COLUMNS} FROM scheduler_results AS results FINAL
    {{joined}}
    WHERE run = {{{{run:String}}}} AND scheduler IN {{{{schedulers:Array(String)}}}}
      AND ({{{{status:String}}}} = '' OR status = {{{{status:String}}}})
    ORDER BY {{order}}, task_id DESC, scheduler
    LIMIT {{{{limit:UInt32}}}} OFFSET {{{{offset:UInt32}}}}
"""
WITH_FEATURES = """
    LEFT JOIN (
        SELECT task_id, {column} AS feature FROM tasks FINAL WHERE run = {{run:String}}
    ) AS features USING (task_id)
"""
WITH_ORACLE = f"""
    LEFT JOIN (
        SELECT task_id, time AS best FROM scheduler_results FINAL
        WHERE run = {{run:String}} AND scheduler = '{ORACLE}' AND status = 'ok'
    ) AS oracle USING (task_id)
"""
FEATURES = ("size", "compute_intensity", "memory_required")
Sort = Literal[
    "task_id",
    "scheduler",
    "gpu_fraction",
    "device",
    "time",
    "vs_oracle",
    "wait",
    "turnaround",
    "energy",
    "cost",
    "size",
    "compute_intensity",
    "memory_required",
    "model_version",
    "status",
]

TASKS = f"""
    SELECT {TASK_COLUMNS} FROM tasks FINAL
    WHERE run = {{run:String}} AND task_id IN {{tasks:Array(Int64)}}
"""

ORACLE_TIMES = f"""
    SELECT task_id, time FROM scheduler_results FINAL
    WHERE run = {{run:String}} AND scheduler = '{ORACLE}' AND status = 'ok'
      AND task_id IN {{tasks:Array(Int64)}}
"""

RESULTS_OF_TASK = f"""
    SELECT * FROM (
        SELECT task_id, scheduler, {RESULT_COLUMNS} FROM scheduler_results FINAL
        WHERE run = {{run:String}} AND scheduler IN {{schedulers:Array(String)}}
          AND task_id = {{task:Int64}}
    ) AS results
    INNER JOIN (
        SELECT {TASK_COLUMNS} FROM tasks FINAL
        WHERE run = {{run:String}} AND task_id = {{task:Int64}}
    ) AS tasks USING (task_id)
"""

# A batch is identified by its publisher's clock: two publishers hardly share a microsecond.
TASKS_OF_BATCH = """
    SELECT count() AS tasks FROM tasks FINAL
    WHERE run = {run:String} AND task_id BETWEEN {first:Int64} AND {last:Int64}
      AND batch = {batch:UInt64}
      AND abs(toUnixTimestamp64Micro(published_at) - {published_at:Int64}) <= 1
"""


def page(
    store: Store,
    run: str,
    schedulers: Sequence[str],
    competing: Iterable[str],
    before: int | None,
    limit: int,
    status: str | None,
) -> tuple[list[dict[str, Any]], int | None]:
    """Results of `limit` tasks, newest first, and `before` of the next page."""
    if before is None:
        standings = newest_standings(store, run, schedulers)
        before = max((row["tasks"] for row in standings.values()), default=0)
    first = max(before - (SEARCHED_TASKS if status else limit), 0)
    parameters = {
        "run": run,
        "schedulers": list(schedulers),
        "first": first,
        "before": before,
        "status": status or "",
        # With a status the limit is one of rows; WITH TIES keeps a task's rows together.
        "limit": limit if status else limit * len(schedulers),
    }
    rows = store.query(PAGE, parameters)
    _add_features(store, run, rows, compare=ORACLE in competing)
    full = status is not None and len(rows) >= limit
    end = rows[-1]["task_id"] if full else first
    return rows, end if end > 0 else None


def sorted_page(
    store: Store,
    run: str,
    schedulers: Sequence[str],
    competing: Iterable[str],
    sort: Sort,
    *,
    descending: bool,
    offset: int,
    limit: int,
    status: str | None,
) -> list[dict[str, Any]]:
    """Rows of the whole run in the order of one column; empty values come last."""
    order: str = sort
    joined = ""
    if sort in FEATURES:
        order, joined = "feature", WITH_FEATURES.format(column=sort)
    elif sort == "vs_oracle":
        order, joined = "if(best > 0 AND status = 'ok', time / best, NULL)", WITH_ORACLE
    direction = "DESC" if descending else "ASC"
    sql = SORTED.format(joined=joined, order=f"{order} {direction} NULLS LAST")
    parameters = {
        "run": run,
        "schedulers": list(schedulers),
        "status": status or "",
        "limit": limit,
        "offset": offset,
    }
    rows = store.query(sql, parameters)
    _add_features(store, run, rows, compare=ORACLE in competing)
    return rows


def _add_features(store: Store, run: str, rows: list[dict[str, Any]], *, compare: bool) -> None:
    """Add each task's features and, with `compare`, its time over the Oracle's."""
    if not rows:
        return
    parameters = {"run": run, "tasks": sorted({row["task_id"] for row in rows})}
    features = {row["task_id"]: row for row in store.query(TASKS, parameters)}
    oracle = store.query(ORACLE_TIMES, parameters) if compare else []
    times = {row["task_id"]: row["time"] for row in oracle}
    missing = dict.fromkeys(column.name for column in TASK[1:])
    for row in rows:
        row.update(features.get(row["task_id"], missing))
        row["vs_oracle"] = vs_oracle(row["time"], row["status"], times.get(row["task_id"]))


def results_of_task(
    store: Store, run: str, schedulers: Iterable[str], task_id: int
) -> dict[str, dict[str, Any]]:
    """All columns of one task's results, with its features, by scheduler."""
    parameters = {"run": run, "schedulers": sorted(schedulers), "task": task_id}
    rows = store.query(RESULTS_OF_TASK, parameters)
    if not rows:
        raise NotFound(f"no results for task {task_id} in run {run}")
    return {row["scheduler"]: row for row in sorted(rows, key=lambda row: row["scheduler"])}


def is_stored(store: Store, batch: Batch) -> bool:
    """Whether the store has exactly this batch of tasks in its place."""
    envelope, ids = batch.envelope, batch.rows.column("task_id")
    parameters = {
        "run": envelope.run,
        "first": ids[0].as_py(),
        "last": ids[-1].as_py(),
        "batch": envelope.batch,
        "published_at": round(envelope.published_at * 1e6),
    }
    (row,) = store.query(TASKS_OF_BATCH, parameters)
    return bool(row["tasks"] == len(ids))


def vs_oracle(time: float, status: str, oracle: float | None) -> float | None:
    """A result's time over the Oracle's for the same task; none where one of them failed."""
    return time / oracle if oracle and status == "ok" else None
