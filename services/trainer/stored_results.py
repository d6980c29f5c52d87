"""Results and models that a restarted trainer reads from ClickHouse."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from services.trainer.dqn import Results
from services.trainer.forest import LabelledTasks
from shared.messages.models import Manifest
from shared.store.client import Store
from shared.store.tasks import floats_in, tasks_in

ORACLE_WINDOW = """
    SELECT task_id, size, compute_intensity, memory_required, optimal_gpu_fraction AS share
    FROM training_data FINAL WHERE run = {run:String}
    ORDER BY task_id DESC LIMIT {limit:UInt32}
"""

# The range of task ids is that of the results: the agent may lag far behind the newest tasks.
AGENT_RESULTS = """
    WITH results AS (
        SELECT task_id, gpu_fraction, device, time, energy FROM scheduler_results FINAL
        WHERE run = {run:String} AND scheduler = {scheduler:String}
        ORDER BY task_id DESC LIMIT {limit:UInt32}
    )
    SELECT task_id, size, compute_intensity, memory_required, gpu_fraction AS share, device, time,
           energy
    FROM results
    INNER JOIN (
        SELECT task_id, size, compute_intensity, memory_required FROM tasks FINAL
        WHERE run = {run:String} AND task_id >= (SELECT min(task_id) FROM results)
            AND task_id <= (SELECT max(task_id) FROM results)
    ) AS tasks USING (task_id)
    ORDER BY task_id DESC
"""

PUBLISHED = """
    SELECT count() AS models FROM models
    WHERE run = {run:String} AND name = {name:String} AND version = {version:UInt32} AND shipped
"""


def has_model(store: Store, manifest: Manifest) -> bool:
    """Whether the event of that published model is stored."""
    (row,) = store.query(PUBLISHED, manifest.model_dump(include={"run", "name", "version"}))
    return bool(row["models"])


def oracle_window(store: Store, run: str, limit: int) -> LabelledTasks | None:
    """The newest tasks with the Oracle's share, oldest first."""
    rows = _oldest_first(store.table(ORACLE_WINDOW, {"run": run, "limit": limit}))
    return LabelledTasks(tasks_in(rows), floats_in(rows, "share")) if rows.num_rows else None


def agent_results(store: Store, run: str, scheduler: str, limit: int) -> Results | None:
    """The newest results of the agent's decisions, oldest first."""
    parameters = {"run": run, "scheduler": scheduler, "limit": limit}
    rows = _oldest_first(store.table(AGENT_RESULTS, parameters))
    if not rows.num_rows:
        return None
    return Results(
        tasks=tasks_in(rows),
        share=floats_in(rows, "share"),
        device=floats_in(rows, "device").astype(np.int64),
        time=floats_in(rows, "time"),
        energy=floats_in(rows, "energy"),
    )


def _oldest_first(rows: pa.Table) -> pa.Table:
    return rows.take(np.arange(rows.num_rows)[::-1])
