"""A run's tasks, read back from ClickHouse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from shared.domain.tasks import USUAL, Floats, Tasks
from shared.store.client import Store

TASKS = """
    SELECT task_id, size, compute_intensity, memory_required, arrival_time,
           toString(kind) AS kind, divisible, width, home
    FROM tasks FINAL
    WHERE run = {run:String} AND task_id >= {first:Int64} AND task_id % {step:Int64} = 0
    ORDER BY task_id
"""


def read_tasks(
    store: Store, run: str, *, first: int = 0, step: int = 1, most: int | None = None
) -> Tasks:
    """At most `most` tasks from `first` on whose ids are multiples of `step`, without parents."""
    limit = "" if most is None else f"LIMIT {most:d}"
    return tasks_in(store.table(TASKS + limit, {"run": run, "first": first, "step": step}))


def tasks_in(rows: pa.Table) -> Tasks:
    """The tasks in the rows of any query; the arrival is 0 if the rows have none."""
    arrives = "arrival_time" in rows.column_names
    kind = rows.column("kind").to_pylist() if "kind" in rows.column_names else []
    return Tasks(
        task_id=rows.column("task_id").to_numpy(),
        size=floats_in(rows, "size"),
        compute_intensity=floats_in(rows, "compute_intensity"),
        memory_required=floats_in(rows, "memory_required"),
        arrival_time=floats_in(rows, "arrival_time") if arrives else np.zeros(rows.num_rows),
        kind=kind if any(kind) else (),
        **{name: _unusual(rows, name) for name in USUAL},
    )


def _unusual(rows: pa.Table, name: str) -> Any:
    """A column that Tasks leaves out where all tasks have the usual value."""
    if name not in rows.column_names:
        return None
    values = rows.column(name).to_numpy()
    if (values == USUAL[name]).all():
        return None
    return values if values.dtype == np.bool_ else values.astype(np.int64)


def floats_in(rows: pa.Table, name: str) -> Floats:
    return np.asarray(rows.column(name).to_numpy(), dtype=np.float64)
