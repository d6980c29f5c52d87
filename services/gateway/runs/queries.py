"""Standings in the store. None of these queries reads a complete run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from services.gateway.runs.schemas import SchedulerStanding
from shared.domain.schedulers import ORACLE
from shared.messages.standing import Standing
from shared.store.client import Store

# One row each, read from the end of the primary key.
NEWEST_STANDING = """
    SELECT * FROM standings WHERE run = {{run:String}} AND scheduler = {{s{index}:String}}
    ORDER BY run DESC, scheduler DESC, batch DESC LIMIT 1
"""

STANDING_AT = """
    SELECT * FROM standings WHERE run = {{run:String}} AND scheduler = {{s{index}:String}}
      AND batch <= {{batch:UInt64}}
    ORDER BY run DESC, scheduler DESC, batch DESC LIMIT 1
"""

# The newest standing at or before a moment of simulated time.
BUSY_BEFORE = """
    SELECT scheduler, clock, busy FROM standings
    WHERE run = {{run:String}} AND scheduler = {{s{index}:String}}
      AND batch < {{b{index}:UInt64}} AND batch + {look_back} >= {{b{index}:UInt64}}
      AND clock <= {{c{index}:Float64}}
    ORDER BY run DESC, scheduler DESC, batch DESC LIMIT 1
"""
LOOK_BACK_BATCHES = 50_000


def standings(store: Store, run: str, schedulers: Iterable[str]) -> dict[str, SchedulerStanding]:
    """The standings after the newest batch that is stored of all schedulers with results, so that
    averages are over the same tasks."""
    newest = newest_standings(store, run, schedulers)
    batch = min((row["batch"] for row in newest.values()), default=0)
    ahead = [name for name, row in newest.items() if row["batch"] > batch]
    parameters = {"run": run, "batch": batch, **_named(ahead)}
    earlier = query_each(store, STANDING_AT, len(ahead), parameters)
    common = newest | {row["scheduler"]: row for row in earlier}
    known = {name: Standing.model_validate(row) for name, row in common.items()}
    return {
        name: SchedulerStanding.of(standing, known.get(ORACLE), newest[name]["tasks"])
        for name, standing in known.items()
    }


def newest_standings(
    store: Store, run: str, schedulers: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """The newest row of each scheduler that has one, by name."""
    names = sorted(schedulers)
    parameters = {"run": run, **_named(names)}
    rows = query_each(store, NEWEST_STANDING, len(names), parameters)
    return {row["scheduler"]: row for row in sorted(rows, key=lambda row: row["scheduler"])}


def _named(schedulers: list[str]) -> dict[str, str]:
    return {f"s{index}": name for index, name in enumerate(schedulers)}


def busy_before(
    store: Store, run: str, moments: Mapping[str, tuple[int, float]]
) -> dict[str, dict[str, Any]]:
    """Each scheduler's busy seconds at a moment of simulated time before a batch."""
    parameters: dict[str, Any] = {"run": run}
    for index, (name, (batch, clock)) in enumerate(moments.items()):
        parameters |= {f"s{index}": name, f"b{index}": batch, f"c{index}": clock}
    sql = BUSY_BEFORE.replace("{look_back}", str(LOOK_BACK_BATCHES))
    return {row["scheduler"]: row for row in query_each(store, sql, len(moments), parameters)}


def query_each(
    store: Store, sql: str, count: int, parameters: dict[str, Any]
) -> list[dict[str, Any]]:
    """The same query for several schedulers or learners, sent as one."""
    parts = [f"SELECT * FROM ({sql.format(index=index)})" for index in range(count)]
    return store.query(" UNION ALL ".join(parts), parameters) if parts else []
