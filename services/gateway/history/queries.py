"""Events and training data in the store, and the deletion of runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from shared.store.client import Store
from shared.store.schema import TABLES

# A deletion costs the same for one run and for a hundred.
DELETED_AT_ONCE = 100

# Read from the end, the newest first. With several threads ClickHouse reads far beyond the limit.
EVENTS = """
    SELECT sequence, toUnixTimestamp64Micro(at) / 1e6 AS at, kind, service, run, message, data
    FROM events
    WHERE {older}
      AND (empty({runs:Array(String)}) OR run IN {runs:Array(String)})
      AND (empty({kinds:Array(String)}) OR kind IN {kinds:Array(String)})
      AND ({text:String} = '' OR positionCaseInsensitiveUTF8(message, {text:String}) > 0)
    ORDER BY events.at DESC, sequence DESC
    LIMIT 1 BY events.at, sequence
    LIMIT {limit:UInt32}
    SETTINGS max_threads = 1
"""
# Searches for the event `before`: only later pages need it.
OLDER_EVENTS = """
    (events.at, sequence)
    < ((SELECT max(at) FROM events WHERE sequence = {before:UInt64}), {before:UInt64})
"""

# The Oracle has a result for every task, so its newest rows have the highest task ids.
TRAINING_DATA = """
    WITH (
        SELECT task_id FROM training_data WHERE run = {run:String}
        ORDER BY run DESC, task_id DESC LIMIT 1
    ) AS newest
    SELECT * FROM training_data FINAL
    WHERE run = {run:String} AND task_id > newest - {limit:UInt32} AND task_id <= newest
    ORDER BY task_id
"""


def events(
    store: Store,
    run: str | None,
    kinds: Sequence[str] | None,
    limit: int,
    before: int | None,
    *,
    text: str = "",
    of_no_run: bool = False,
) -> list[dict[str, Any]]:
    """Newest first; `of_no_run` adds the events that belong to no run."""
    runs = [] if run is None else [run, ""] if of_no_run else [run]
    parameters = {
        "runs": runs,
        "kinds": list(kinds or ()),
        "limit": limit,
        "before": before or 0,
        "text": text,
    }
    sql = EVENTS.replace("{older}", OLDER_EVENTS if before else "true")
    rows = store.query(sql, parameters)
    for row in rows:
        row["data"] = json.loads(row["data"])
    return rows


def training_data(store: Store, run: str, limit: int) -> list[dict[str, Any]]:
    return store.query(TRAINING_DATA, {"run": run, "limit": limit})


def stored_runs(store: Store) -> list[str]:
    """Every run that has a row in any table. Reads all of them."""
    parts = [f"SELECT DISTINCT run FROM {table} WHERE run != ''" for table in TABLES]
    return [row["run"] for row in store.query(" UNION DISTINCT ".join(parts))]


def delete_runs(store: Store, runs: Sequence[str]) -> None:
    for start in range(0, len(runs), DELETED_AT_ONCE):
        some = list(runs[start : start + DELETED_AT_ONCE])
        for table in TABLES:
            statement = f"DELETE FROM {table} WHERE run IN {{runs:Array(String)}}"
            store.command(statement, {"runs": some})
