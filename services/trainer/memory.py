"""What the learners have seen, read back from ClickHouse after a restart."""

from __future__ import annotations

from typing import Any

import numpy as np

from services.trainer.dqn import Results
from services.trainer.forest import Labelled
from shared.store.client import Store
from shared.tasks import Floats, Tasks

ORACLE_WINDOW = """
    SELECT task_id, size, compute_intensity, memory_required, optimal_gpu_fraction AS share
    FROM training_data FINAL WHERE run = {run:String}
    ORDER BY task_id DESC LIMIT {limit:UInt32}
"""

AGENT_RESULTS = """
    SELECT task_id, size, compute_intensity, memory_required, gpu_fraction AS share, gpu, time,
           energy, status = 'failed' AS failed
    FROM (
        SELECT task_id, gpu_fraction, gpu, time, energy, status FROM scheduler_results FINAL
        WHERE run = {run:String} AND scheduler = {scheduler:String}
        ORDER BY task_id DESC LIMIT {limit:UInt32}
    ) AS results
    INNER JOIN (
        SELECT task_id, size, compute_intensity, memory_required FROM tasks FINAL
        WHERE run = {run:String}
        ORDER BY task_id DESC LIMIT {limit:UInt32}
    ) AS tasks USING (task_id)
    ORDER BY task_id DESC
"""


def oracle_window(store: Store, run: str, limit: int) -> Labelled | None:
    rows = store.query(ORACLE_WINDOW, {"run": run, "limit": limit})[::-1]
    return Labelled(_tasks(rows), _column(rows, "share")) if rows else None


def agent_results(store: Store, run: str, scheduler: str, limit: int) -> Results | None:
    """The newest results of the agent's decisions, oldest first."""
    parameters = {"run": run, "scheduler": scheduler, "limit": limit}
    rows = store.query(AGENT_RESULTS, parameters)[::-1]
    if not rows:
        return None
    return Results(
        tasks=_tasks(rows),
        share=_column(rows, "share"),
        gpu=np.array([row["gpu"] for row in rows], dtype=np.int64),
        time=_column(rows, "time"),
        energy=_column(rows, "energy"),
        failed=_column(rows, "failed") > 0,
    )


def _tasks(rows: list[dict[str, Any]]) -> Tasks:
    return Tasks(
        task_id=np.array([row["task_id"] for row in rows], dtype=np.int64),
        size=_column(rows, "size"),
        compute_intensity=_column(rows, "compute_intensity"),
        memory_required=_column(rows, "memory_required"),
        arrival_time=np.zeros(len(rows)),
    )


def _column(rows: list[dict[str, Any]], name: str) -> Floats:
    return np.array([row[name] for row in rows], dtype=np.float64)
