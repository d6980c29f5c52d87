"""The results of a completed run, as `hybrid up --exit` prints them."""

from __future__ import annotations

from typing import Any

from deploy.local.arena import Arena
from services.cli.settings import settings_of
from shared.domain.schedulers import LEARNERS, ORACLE
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


def summarise(arena: Arena, run: dict[str, Any]) -> dict[str, Any]:
    """Checks on the way that ClickHouse has one result for each task and scheduler."""
    name, tasks = run["run"], run["tasks"]
    seconds = run["updated_at"] - run["created_at"]
    store = Store(settings_of(arena))
    counts = {row["scheduler"]: row for row in store.query(RESULT_COUNTS, {"run": name})}
    learning = _learning(store, name, tasks)
    store.close()
    for scheduler in run["spec"]["schedulers"]:
        count = counts.get(scheduler, {"results": 0, "tasks": 0})
        if not count["results"] == count["tasks"] == tasks:
            raise ArenaError(f"{scheduler} has {count['results']} results of {tasks} tasks")
    return {
        "run": name,
        "tasks": tasks,
        "seconds": round(seconds, 3),
        "tasks_per_s": round(tasks / seconds, 1),
        "bound": run["bound"],
        "schedulers": {
            scheduler: {
                **standing,
                "results": counts[scheduler]["results"],
                **learning.get(scheduler, {}),
            }
            for scheduler, standing in run["schedulers"].items()
        },
    }


def _learning(store: Store, run: str, tasks: int) -> dict[str, dict[str, Any]]:
    """Figures that only learners have."""
    models = {row["name"]: row["models"] for row in store.query(SHIPPED_MODELS, {"run": run})}
    late = {"run": run, "first": tasks - max(tasks // 5, 1)}
    times = {row["scheduler"]: row["time"] for row in store.query(LATE_TIMES, late)}
    oracle = times.get(ORACLE)
    return {
        name: {
            "models": models.get(name, 0),
            "vs_oracle_last": times[name] / oracle if oracle else None,
        }
        for name in LEARNERS
        if name in times
    }
