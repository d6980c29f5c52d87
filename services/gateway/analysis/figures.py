"""What schedulers achieved on a range of tasks, and how two runs differ on it."""

from __future__ import annotations

from typing import Any

from services.gateway.analysis.schemas import Comparison, Figures, RunFigures, SchedulerComparison
from shared.store.client import Store

STORED = """
    SELECT scheduler, max(task_id) + 1 AS end FROM scheduler_results
    WHERE run = {run:String} GROUP BY scheduler
"""
FIGURES = """
    SELECT scheduler, count() AS tasks, countIf(status = 'failed') AS failed,
           avg(turnaround) AS avg_turnaround, avg(wait) AS avg_wait, avg(time) AS avg_time,
           avg(energy) AS avg_energy, avg(cost) AS avg_cost, max(finish) AS makespan,
           quantilesExact(0.5, 0.95, 0.99)(turnaround) AS quantiles
    FROM scheduler_results FINAL
    WHERE run = {run:String} AND task_id >= {first:Int64} AND task_id < {end:Int64}
    GROUP BY scheduler
"""
DIFFERENCES = """
    SELECT scheduler, count() AS tasks, countIf(a.finish != b.finish) AS different,
           minIf(task_id, a.finish != b.finish) AS first
    FROM (
        SELECT scheduler, task_id, finish FROM scheduler_results FINAL
        WHERE run = {run:String} AND task_id >= {first:Int64} AND task_id < {end:Int64}
    ) AS a
    INNER JOIN (
        SELECT scheduler, task_id, finish FROM scheduler_results FINAL
        WHERE run = {other:String} AND task_id >= {first:Int64} AND task_id < {end:Int64}
    ) AS b USING (scheduler, task_id)
    GROUP BY scheduler
"""


def stored_ends(store: Store, run: str) -> dict[str, int]:
    """By scheduler: the task after the last one with a result."""
    return {row["scheduler"]: int(row["end"]) for row in store.query(STORED, {"run": run})}


def figures(store: Store, run: str, first: int, end: int | None) -> RunFigures:
    """The figures of the tasks from `first` to before `end`; None: as far as all schedulers have
    results."""
    if end is None:
        end = min(stored_ends(store, run).values(), default=first)
    end = max(end, first)
    rows = store.query(FIGURES, {"run": run, "first": first, "end": end})
    by_name = {row["scheduler"]: _figures(row) for row in rows}
    return RunFigures(run=run, first=first, end=end, schedulers=dict(sorted(by_name.items())))


def _figures(row: dict[str, Any]) -> Figures:
    p50, p95, p99 = row["quantiles"]
    values = {name: row[name] for name in Figures.model_fields if name in row}
    return Figures(**values, turnaround_p50=p50, turnaround_p95=p95, turnaround_p99=p99)


def compare(store: Store, run: str, other: str, first: int) -> Comparison:
    """Compare two runs on the tasks from `first` on that all schedulers of both have done."""
    ends = [stored_ends(store, run), stored_ends(store, other)]
    end = max(min((e for each in ends for e in each.values()), default=first), first)
    mine, others = (figures(store, each, first, end).schedulers for each in (run, other))
    values = {"run": run, "other": other, "first": first, "end": end}
    differences = {row["scheduler"]: row for row in store.query(DIFFERENCES, values)}
    schedulers = {}
    for name in sorted({*mine, *others}):
        row = differences.get(name)
        different = int(row["different"]) if row else None
        schedulers[name] = SchedulerComparison(
            figures=mine.get(name),
            other=others.get(name),
            different=different,
            first_different=int(row["first"]) if row and different else None,
        )
    return Comparison(run=run, other=other, first=first, end=end, schedulers=schedulers)
