"""Models in the store: a row for every training."""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

from services.gateway.runs.queries import query_each
from shared.domain.schedulers import LEARNERS
from shared.store.client import Store

# Of one learner in one run, read from the end of the primary key.
OF_RUN = """
    SELECT * FROM models
    WHERE run = {{run:String}} AND name = {{s{index}:String}}
      AND ({{version:UInt32}} = 0 OR version = {{version:UInt32}})
    ORDER BY run DESC, name DESC, created_at DESC, version DESC
    LIMIT 1 BY run, name, created_at, version
    LIMIT {{limit:UInt32}}
"""

OF_ALL_RUNS = """
    SELECT * FROM models FINAL
    WHERE ({name:String} = '' OR name = {name:String})
      AND ({version:UInt32} = 0 OR version = {version:UInt32})
    ORDER BY created_at DESC, version DESC LIMIT {limit:UInt32}
"""


def models(
    store: Store, run: str | None, name: str | None, version: int | None, limit: int
) -> list[dict[str, Any]]:
    """Newest first."""
    parameters: dict[str, Any] = {"name": name or "", "version": version or 0, "limit": limit}
    if run is None:
        rows = store.query(OF_ALL_RUNS, parameters)
    else:
        names = [name] if name else list(LEARNERS)
        parameters |= {"run": run, **{f"s{index}": name for index, name in enumerate(names)}}
        rows = query_each(store, OF_RUN, len(names), parameters)
        rows.sort(key=lambda row: (row["created_at"], row["version"]), reverse=True)
    for row in rows[:limit]:
        row["metrics"] = json.loads(row["metrics"])
        # The driver returns UTC without a time zone.
        row["created_at"] = row["created_at"].replace(tzinfo=UTC)
    return rows[:limit]
