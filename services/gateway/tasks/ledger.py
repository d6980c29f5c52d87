"""All results of a run, also as CSV, some tasks at a time: memory does not grow with the run."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyarrow import csv

from services.gateway.runs.queries import newest_standings
from shared.messages.columns import DECISION, RESULT, TASK, Column
from shared.store.client import Store

TASKS_AT_ONCE = 5_000


def _names(columns: Sequence[Column]) -> str:
    """The columns without lists, which CSV does not have."""
    return ", ".join(column.name for column in columns if not pa.types.is_list(column.type))


ROWS = f"""
    SELECT task_id, toString(scheduler) AS scheduler, features.* EXCEPT task_id,
           results.* EXCEPT (task_id, scheduler)
    FROM (
        SELECT task_id, scheduler, {_names(DECISION)}, {_names(RESULT)}
        FROM scheduler_results FINAL
        WHERE run = {{run:String}} AND scheduler IN {{schedulers:Array(String)}}
          AND task_id >= {{first:Int64}} AND task_id < {{last:Int64}}
    ) AS results
    LEFT JOIN (
        SELECT {_names(TASK)} FROM tasks FINAL
        WHERE run = {{run:String}} AND task_id >= {{first:Int64}} AND task_id < {{last:Int64}}
    ) AS features USING (task_id)
    ORDER BY task_id, scheduler
"""


def result_tables(store: Store, run: str, schedulers: Sequence[str]) -> Iterator[pa.Table]:
    """All results with their tasks' features, oldest task first; at least one table."""
    standings = newest_standings(store, run, schedulers)
    tasks = max((row["tasks"] for row in standings.values()), default=0)
    for first in range(0, max(tasks, 1), TASKS_AT_ONCE):
        between = {"first": first, "last": first + TASKS_AT_ONCE}
        yield store.table(ROWS, {"run": run, "schedulers": list(schedulers), **between})


def ledger_csv(store: Store, run: str, schedulers: Sequence[str]) -> Iterator[bytes]:
    for number, rows in enumerate(result_tables(store, run, schedulers)):
        text = io.BytesIO()
        csv.write_csv(rows, text, csv.WriteOptions(include_header=number == 0))
        yield text.getvalue()
