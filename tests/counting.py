"""Counting results: one of every scheduler for every task, or some are lost or doubled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

COUNTED = """
    SELECT scheduler, count() AS results, uniqExact(task_id) AS tasks, max(task_id) AS last
    FROM scheduler_results FINAL WHERE run = '{run}' GROUP BY scheduler ORDER BY scheduler
"""


def once(tasks: int, schedulers: Iterable[str]) -> list[dict[str, Any]]:
    """The rows of a run with one result of every scheduler for every task."""
    return [
        {"scheduler": name, "results": tasks, "tasks": tasks, "last": tasks - 1}
        for name in sorted(schedulers)
    ]
