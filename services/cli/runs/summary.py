"""The results of a completed run, as `hybrid up --exit` prints them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from deploy.local.arena import Arena
from services.cli.settings import settings_of
from shared.domain.schedulers import ORACLE
from shared.errors import ArenaError
from shared.store.client import Store

RESULT_COUNTS = """
    SELECT scheduler, count() AS results, uniqExact(task_id) AS tasks
    FROM scheduler_results FINAL WHERE run = {run:String} GROUP BY scheduler
"""
# Over the last fifth of the tasks, when the learners have learned.
LATE_TIMES = """
    SELECT scheduler, sum(time) AS time FROM scheduler_results FINAL
    WHERE run = {run:String} AND task_id >= {first:Int64} GROUP BY scheduler
"""
SHIPPED_MODELS = """
    SELECT name, count() AS models FROM models FINAL
    WHERE run = {run:String} AND shipped GROUP BY name
"""
# How many tasks lie between a task and the newest result that the model that decided it knows.
VERSIONS_USED = """
    SELECT r.scheduler AS scheduler, arraySort(groupUniqArray(r.model_version)) AS versions,
           avgIf(r.task_id - m.last_task, m.last_task >= 0) AS staleness
    FROM (
        SELECT scheduler, task_id, model_version FROM scheduler_results FINAL
        WHERE run = {run:String} AND model_version > 0
    ) AS r
    LEFT JOIN (
        SELECT name, version, last_task FROM models FINAL WHERE run = {run:String} AND shipped
    ) AS m ON m.name = r.scheduler AND m.version = r.model_version
    GROUP BY scheduler
"""


def summarise(arena: Arena, run: dict[str, Any]) -> dict[str, Any]:
    """The summary of a run. Raises unless ClickHouse has one result per task and scheduler."""
    name, tasks = run["run"], run["tasks"]
    seconds = run["updated_at"] - run["created_at"]
    store = Store(settings_of(arena))
    counts = {row["scheduler"]: row for row in store.query(RESULT_COUNTS, {"run": name})}
    learning = _learning(store, name, tasks)
    store.close()
    for scheduler in run["spec"]["schedulers"]:
        if scheduler in run.get("suspended", {}):
            continue
        count = counts.get(scheduler, {"results": 0, "tasks": 0})
        if not count["results"] == count["tasks"] == tasks:
            raise ArenaError(f"{scheduler} has {count['results']} results of {tasks} tasks")
    return {
        "run": name,
        "tasks": tasks,
        "seconds": round(seconds, 3),
        "tasks_per_s": round(tasks / seconds, 1),
        "bound": run["bound"],
        "suspended": run.get("suspended", {}),
        "schedulers": {
            scheduler: {
                **standing,
                "results": counts[scheduler]["results"],
                **learning.get(scheduler, {}),
            }
            for scheduler, standing in run["schedulers"].items()
        },
    }


def learned_lines(summary: dict[str, Any]) -> Iterator[str]:
    """Which versions each learner decided with, and how old these were."""
    for name, row in summary["schedulers"].items():
        if versions := row.get("versions"):
            stale = row["staleness"]
            age = "" if stale is None else f", on average {stale:,.0f} tasks after what they knew"
            yield f"{name} decided with versions {versions[0]} to {versions[-1]}{age}"


def _learning(store: Store, run: str, tasks: int) -> dict[str, dict[str, Any]]:
    """Figures that only learners have."""
    models = {row["name"]: row["models"] for row in store.query(SHIPPED_MODELS, {"run": run})}
    used = {row["scheduler"]: row for row in store.query(VERSIONS_USED, {"run": run})}
    late = {"run": run, "first": tasks - max(tasks // 5, 1)}
    times = {row["scheduler"]: row["time"] for row in store.query(LATE_TIMES, late)}
    oracle = times.get(ORACLE)
    return {
        name: {
            "models": models[name],
            "versions": used[name]["versions"] if name in used else [],
            "staleness": _number(used[name]["staleness"]) if name in used else None,
            "vs_oracle_last": times[name] / oracle if oracle else None,
        }
        for name in models
        if name in times
    }


def _number(value: float) -> float | None:
    """ClickHouse's average of nothing is no number."""
    return value if math.isfinite(value) else None
