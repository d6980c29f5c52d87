"""Models in the store: a row for every training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC
from typing import Any

from services.gateway.runs.queries import query_each
from shared.domain.schedulers import LEARNERS
from shared.store.client import Store

# The models of one learner in one run, read from the end of the primary key.
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

# A version is published once; trainings that were rejected may have had its number before.
PUBLISHED = """
    SELECT * FROM models
    WHERE run = {run:String} AND name = {name:String} AND version = {version:UInt32} AND shipped
    ORDER BY created_at DESC LIMIT 1
"""


def models(
    store: Store,
    run: str | None,
    name: str | None,
    version: int | None,
    limit: int,
    learners: Sequence[str] = LEARNERS,
) -> list[dict[str, Any]]:
    """Newest first. `learners` are those of the run."""
    parameters: dict[str, Any] = {"name": name or "", "version": version or 0, "limit": limit}
    if run is None:
        rows = store.query(OF_ALL_RUNS, parameters)
    else:
        names = [name] if name else list(learners)
        parameters |= {"run": run, **{f"s{index}": name for index, name in enumerate(names)}}
        rows = query_each(store, OF_RUN, len(names), parameters)
        rows.sort(key=lambda row: (row["created_at"], row["version"]), reverse=True)
    return [_decoded(row) for row in rows[:limit]]


def published_model(store: Store, run: str, name: str, version: int) -> dict[str, Any] | None:
    if version <= 0:
        return None
    rows = store.query(PUBLISHED, {"run": run, "name": name, "version": version})
    return _decoded(rows[0]) if rows else None


def _decoded(row: dict[str, Any]) -> dict[str, Any]:
    # The driver returns UTC without a time zone.
    created_at = row["created_at"].replace(tzinfo=UTC)
    return {**row, "metrics": json.loads(row["metrics"]), "created_at": created_at}
