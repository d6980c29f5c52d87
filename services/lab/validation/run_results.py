"""What a validation reads of a run's results from ClickHouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.lab.validation.agreement import Outcome
from shared.domain.spec import RunSpec
from shared.domain.times import seconds
from shared.errors import ArenaError
from shared.store.client import Store
from shared.store.tasks import read_tasks

OUTCOMES = """
    SELECT toString(scheduler) AS scheduler, toInt64(count()) AS tasks,
           toInt64(countIf(status = 'failed')) AS failed,
           avg(turnaround) AS turnaround, max(finish) AS finish
    FROM scheduler_results FINAL WHERE run = {run:String} GROUP BY scheduler
"""
# Tasks that ran completely on one device.
WHOLE_TASKS = """
    SELECT toString(scheduler) AS scheduler, task_id, if(gpu_time > 0, device, cpu) AS device, time
    FROM scheduler_results FINAL
    WHERE run = {run:String} AND status = 'ok' AND time > 0 AND (gpu_time > 0) != (cpu_time > 0)
"""


class ValidationFailed(ArenaError):
    """Runs that cannot be compared."""


@dataclass(frozen=True, slots=True)
class TaskTime:
    scheduler: str
    task_id: int
    kind: str
    type: str  # of the device
    predicted: float  # by the platform, without noise; seconds
    measured: float


def outcomes(store: Store, run: str, spec: RunSpec) -> dict[str, Outcome]:
    """By scheduler; the makespan counts from the first arrival."""
    rows = store.query(OUTCOMES, {"run": run})
    start = float(read_tasks(store, run, most=1).arrival_time[0])
    _check(run, spec, {row["scheduler"]: row for row in rows})
    return {
        row["scheduler"]: Outcome(row["turnaround"], row["finish"] - start)
        for row in sorted(rows, key=lambda row: str(row["scheduler"]))
    }


def task_times(store: Store, run: str, spec: RunSpec) -> list[TaskTime]:
    """The times of the tasks that ran on one device."""
    tasks = read_tasks(store, run)
    predicted = seconds(tasks, spec)
    row_of = {int(task_id): row for row, task_id in enumerate(tasks.task_id)}
    platform = spec.platform
    times = []
    for row in store.query(WHOLE_TASKS, {"run": run}):
        task, number = row_of[row["task_id"]], int(platform.type_of[row["device"]])
        times.append(
            TaskTime(
                row["scheduler"],
                row["task_id"],
                tasks.kind[task] if tasks.kind else "",
                platform.types[number].name,
                float(predicted[task, number]),
                row["time"],
            )
        )
    return times


def _check(run: str, spec: RunSpec, rows: Mapping[str, Mapping[str, Any]]) -> None:
    for scheduler in spec.schedulers:
        row = rows.get(scheduler)
        if row is None or row["tasks"] != spec.tasks:
            have = 0 if row is None else row["tasks"]
            raise ValidationFailed(f"run {run}: {scheduler} has {have} of {spec.tasks} results")
        if row["failed"]:
            raise ValidationFailed(
                f'run {run}: {row["failed"]} tasks of {scheduler} failed; `hybrid sql "SELECT '
                f"task_id, reason FROM scheduler_results WHERE run = '{run}' AND status = "
                "'failed'\"` says why"
            )
