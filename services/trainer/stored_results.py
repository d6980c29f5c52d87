"""Results and models that the trainer reads from ClickHouse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from services.trainer.learner import COLUMNS, Results, without_parents
from shared.messages import batches
from shared.messages.models import Manifest
from shared.store.client import Store
from shared.store.tasks import tasks_in

# The range of task ids is that of the results: a scheduler may lag far behind the newest tasks.
RESULTS = """
    WITH results AS (
        SELECT task_id, gpu_fraction AS share, device, cpu, time, wait, turnaround, energy, cost,
               gpu_time, cpu_time, expected_time, explored, probability, status = 'failed' AS failed
        FROM scheduler_results FINAL
        WHERE run = {run:String} AND scheduler = {scheduler:String}
            AND task_id >= {first:Int64} AND task_id < {end:Int64}
        ORDER BY task_id DESC LIMIT {limit:UInt32}
    )
    SELECT * FROM results
    INNER JOIN (
        SELECT task_id, size, compute_intensity, memory_required, arrival_time,
               toString(kind) AS kind, divisible, width, home
        FROM tasks FINAL
        WHERE run = {run:String} AND task_id >= (SELECT min(task_id) FROM results)
            AND task_id <= (SELECT max(task_id) FROM results)
    ) AS tasks USING (task_id)
    ORDER BY task_id
"""

PUBLISHED = """
    SELECT count() AS models FROM models
    WHERE run = {run:String} AND name = {name:String} AND version = {version:UInt32} AND shipped
"""

ALL_TASKS = 2**62


def has_model(store: Store, manifest: Manifest) -> bool:
    """Whether the event of that published model is stored."""
    (row,) = store.query(PUBLISHED, manifest.model_dump(include={"run", "name", "version"}))
    return bool(row["models"])


def read_results(
    store: Store, run: str, scheduler: str, limit: int, *, first: int = 0, end: int = ALL_TASKS
) -> Results | None:
    """A scheduler's newest results for the tasks from `first` to before `end`, oldest first."""
    parameters = {"run": run, "scheduler": scheduler, "limit": limit, "first": first, "end": end}
    rows = store.table(RESULTS, parameters)
    return _results(rows) if rows.num_rows else None


def _results(rows: pa.Table) -> Results:
    columns: dict[str, Any] = {name: rows.column(name).to_numpy() for name in COLUMNS}
    return _typed(Results(tasks=tasks_in(rows), **columns))


def results_of(rows: pa.RecordBatch) -> Results:
    """The results in a message."""
    names = {name: name for name in COLUMNS} | {"share": "gpu_fraction"}
    del names["failed"]
    columns = {name: batches.column(rows, source) for name, source in names.items()}
    failed = np.asarray(batches.column(rows, "status") == "failed")
    return _typed(Results(tasks=without_parents(batches.tasks_of(rows)), failed=failed, **columns))


def _typed(results: Results) -> Results:
    """The types of the contract, whatever the source has."""
    integers, flags = ("device", "cpu"), ("explored", "failed")
    columns = {
        name: getattr(results, name).astype(
            np.int64 if name in integers else np.bool_ if name in flags else np.float64, copy=False
        )
        for name in COLUMNS
    }
    return Results(tasks=results.tasks, **columns)
