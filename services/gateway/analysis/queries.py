"""Windows of a run's results in the store.

Results are ordered by (run, scheduler, task): a window of tasks costs the same after a million
tasks as after a thousand.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from services.gateway.runs.queries import newest_standings
from shared.store.client import Store

RESULTS = """
    SELECT scheduler, task_id, gpu_fraction, device, cpu, time, turnaround, energy, cost,
           gpu_time, cpu_time, status = 'failed' AS failed
    FROM scheduler_results FINAL
    WHERE run = {run:String} AND scheduler IN {schedulers:Array(String)}
      AND task_id >= {first:Int64} AND task_id < {last:Int64}
    ORDER BY scheduler, task_id
"""

FEATURES = """
    SELECT task_id, size, compute_intensity, memory_required, width FROM tasks FINAL
    WHERE run = {run:String} AND task_id >= {first:Int64} AND task_id < {last:Int64}
    ORDER BY task_id
"""


def common_tasks(store: Store, run: str, schedulers: Sequence[str], tasks: int) -> tuple[int, int]:
    """The newest tasks that have a stored result of every scheduler: first, and one past last."""
    standings = newest_standings(store, run, schedulers)
    last = min((row["tasks"] for row in standings.values()), default=0)
    if len(standings) < len(set(schedulers)):
        last = 0
    return max(last - tasks, 0), last


def results(store: Store, run: str, schedulers: Sequence[str], first: int, last: int) -> pa.Table:
    """The results for these tasks, ordered by scheduler and task."""
    parameters = {"run": run, "schedulers": list(schedulers), "first": first, "last": last}
    return store.table(RESULTS, parameters)


def features(store: Store, run: str, first: int, last: int) -> pa.Table:
    return store.table(FEATURES, {"run": run, "first": first, "last": last})
