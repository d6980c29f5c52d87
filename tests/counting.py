"""How tests count: every task once for every scheduler, or one was lost or doubled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

COUNTED = """
    SELECT scheduler, count() AS results, uniqExact(task_id) AS tasks, max(task_id) AS last
    FROM scheduler_results FINAL WHERE run = '{run}' GROUP BY scheduler ORDER BY scheduler
"""


def once(tasks: int, schedulers: Iterable[str]) -> list[dict[str, Any]]:
    """What the query finds of a run that is whole."""
    return [
        {"scheduler": name, "results": tasks, "tasks": tasks, "last": tasks - 1}
        for name in sorted(schedulers)
    ]
