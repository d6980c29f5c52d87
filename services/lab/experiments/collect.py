"""Reads the tables of one run (see `tables.py`) from ClickHouse.

ClickHouse aggregates; only the tasks are read in full, to compute the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from services.lab.experiments import tables
from services.lab.experiments.critical_path import critical_path
from services.lab.experiments.declaration import Experiment
from shared.domain.bounds.cluster_bound import arrival_bound
from shared.domain.quantile_sketch import BUCKET_SQL, QuantileSketch
from shared.domain.schedulers import ORACLE
from shared.domain.spec import RunSpec
from shared.domain.tasks import Bools, Floats, Tasks
from shared.domain.times import seconds
from shared.errors import ArenaError
from shared.store.client import Store
from shared.store.tasks import read_tasks

INTERVALS = 200
SAMPLED_TASKS = 5000
DRAWN_TASKS = 300
LEVELS = np.linspace(0.0, 1.0, 201)

RESULTS = "FROM scheduler_results FINAL WHERE run = {run:String}"
JUDGED = RESULTS + " AND task_id >= {first:Int64}"

OUTCOMES = f"""
    SELECT toString(scheduler) AS scheduler, toInt64(count()) AS tasks,
           toInt64(uniqExact(task_id)) AS distinct_tasks,
           toInt64(countIf(status = 'failed')) AS failed,
           sum(time) AS total_time, avg(time) AS avg_time, avg(wait) AS avg_wait,
           avg(turnaround) AS avg_turnaround,
           sum(energy) AS total_energy, sum(cost) AS total_cost, max(finish) AS last_finish,
           avg(gpu_fraction) AS gpu_share, toInt64(countIf(gpu_fraction > 0)) AS gpu_tasks,
           toInt64(countIf(explored)) AS explored
    {JUDGED} GROUP BY scheduler ORDER BY scheduler
"""
# The buckets in which the simulator counts turnarounds, so quantiles are those of the standings.
BUCKET = BUCKET_SQL.format(column="turnaround")
TURNAROUNDS = f"""
    SELECT toString(scheduler) AS scheduler, {BUCKET} AS bucket, toInt64(count()) AS tasks
    {JUDGED} GROUP BY scheduler, bucket ORDER BY scheduler, bucket
"""
STANDINGS = """
    SELECT toString(scheduler) AS scheduler, argMax(total_slowdown / tasks, batch) AS avg_slowdown,
           argMax(idle_energy, batch) AS idle_energy
    FROM standings FINAL WHERE run = {run:String} GROUP BY scheduler
"""
COURSE = f"""
    SELECT toString(scheduler) AS scheduler, toInt64(min(task_id)) AS first_task,
           toInt64(count()) AS tasks, max(finish - turnaround) AS arrival, sum(time) AS time,
           sum(wait) AS wait, sum(energy) AS energy, avg(gpu_fraction) AS gpu_share
    {RESULTS} GROUP BY scheduler, intDiv(task_id, {{width:Int64}}) ORDER BY scheduler, first_task
"""
QUANTILES = """
    SELECT toString(scheduler) AS scheduler, quantilesExact({levels})({figure}) AS quantiles
    {judged} GROUP BY scheduler ORDER BY scheduler
"""
TIMES = f"""
    SELECT toString(scheduler) AS scheduler, groupArray(time) AS times FROM (
        SELECT scheduler, time {JUDGED}
        ORDER BY scheduler, task_id LIMIT {{most:Int64}} BY scheduler
    ) GROUP BY scheduler
"""
GRAPH = """
    SELECT task_id, dependencies AS parents FROM tasks FINAL
    WHERE run = {run:String} AND task_id >= {first:Int64} ORDER BY task_id LIMIT {most:Int64}
"""
PARENTS = """
    SELECT task_id, dependencies AS parents FROM tasks FINAL
    WHERE run = {run:String} AND task_id >= {first:Int64} AND notEmpty(dependencies)
"""
MODELS = """
    SELECT toString(name) AS name, toInt64(version) AS version, shipped, reason, score,
           champion_score, last_task, toInt64(trained_on) AS trained_on
    FROM models FINAL WHERE run = {run:String} ORDER BY name, created_at
"""

# Recovery is searched in this many tasks after the shift.
RECOVERY_TASKS = 20_000


def collect(
    store: Store,
    experiment: Experiment,
    variant: str,
    seed: int,
    run: str,
    schedulers: Sequence[str],
) -> dict[str, pa.Table]:
    """The rows of every table for one run. A missing or duplicate result is an error."""
    spec = experiment.run_spec(variant, seed)
    reader = _RunReader(store, run, experiment, spec, schedulers)
    key = {"variant": variant, "seed": seed}
    return {
        "outcomes": _table(tables.OUTCOMES, reader.outcomes(), key | {"run": run}),
        "quantiles": _table(tables.QUANTILES, reader.quantiles(), key),
        "course": _table(tables.COURSE, reader.course(), key),
        "workload": _table(tables.WORKLOAD, reader.workload(), key),
        "graph": _table(tables.GRAPH, reader.graph(), key),
        "models": _table(tables.MODELS, reader.models(), key),
    }


def _table(schema: pa.Schema, rows: pa.Table, constants: dict[str, Any]) -> pa.Table:
    columns = {name: rows.column(name) for name in rows.column_names}
    for name, value in constants.items():
        columns[name] = pa.array([value] * rows.num_rows, schema.field(name).type)
    return pa.table({name: columns[name] for name in schema.names}).cast(schema)


class _RunReader:
    def __init__(
        self,
        store: Store,
        run: str,
        experiment: Experiment,
        spec: RunSpec,
        schedulers: Sequence[str],
    ) -> None:
        self._store, self._spec, self._experiment = store, spec, experiment
        self._schedulers = schedulers
        self._parameters = {"run": run, "first": experiment.judge_from}
        self._run = run

    def _query(self, sql: str, **more: Any) -> pa.Table:
        return self._store.table(sql, {**self._parameters, **more})

    def outcomes(self) -> pa.Table:
        rows = self._query(OUTCOMES)
        self._check(rows)
        tasks = read_tasks(self._store, self._run, first=self._experiment.judge_from)
        start = float(tasks.arrival_time.min())
        bound = arrival_bound(tasks, self._spec).value - start
        names = rows.column("scheduler").to_pylist()
        p95, p99 = np.array([self._turnarounds[name].quantiles(0.95, 0.99) for name in names]).T
        slowdown, idle_energy = self._of_the_complete_run(names)
        columns = {
            "makespan": pc.subtract(rows.column("last_finish"), start),
            "arrival_bound": pa.array([bound] * rows.num_rows),
            "critical_path": pa.array([self._critical_path(tasks)] * rows.num_rows, pa.float64()),
            "p95_turnaround": pa.array(p95),
            "p99_turnaround": pa.array(p99),
            "avg_slowdown": slowdown,
            "energy_with_idle": pc.add(rows.column("total_energy"), idle_energy),
            "recovered_after": pa.array(self._recovered(names), pa.int64()),
        }
        for name, column in columns.items():
            rows = rows.append_column(name, column)
        return rows

    def _critical_path(self, tasks: Tasks) -> float | None:
        parents = {row["task_id"]: row["parents"] for row in self._query(PARENTS).to_pylist()}
        if not parents:
            return None
        linked = replace(tasks, parents=[parents.get(i, ()) for i in tasks.task_id.tolist()])
        return critical_path(linked, self._spec)

    @cached_property
    def _turnarounds(self) -> dict[str, QuantileSketch]:
        rows = self._query(TURNAROUNDS)
        scheduler = np.array(rows.column("scheduler").to_pylist())
        bucket, tasks = (rows.column(name).to_numpy() for name in ("bucket", "tasks"))
        sketches = {}
        for name in np.unique(scheduler):
            own = scheduler == name
            counts = np.zeros(int(np.ptp(bucket[own])) + 1, np.int64)
            counts[bucket[own] - bucket[own][0]] = tasks[own]
            sketches[str(name)] = QuantileSketch(int(bucket[own][0]), counts)
        return sketches

    def _of_the_complete_run(self, names: list[str]) -> list[pa.Array]:
        """Slowdown and idle energy: the simulator adds them up over the run, not over a part."""
        totals = {} if self._experiment.judge_from else self._rows_by_scheduler(STANDINGS)
        return [
            pa.array([totals.get(name, {}).get(column) for name in names], pa.float64())
            for column in ("avg_slowdown", "idle_energy")
        ]

    def _rows_by_scheduler(self, sql: str, **more: Any) -> dict[str, dict[str, Any]]:
        return {row["scheduler"]: row for row in self._query(sql, **more).to_pylist()}

    def _check(self, rows: pa.Table) -> None:
        expected = self._experiment.tasks - self._experiment.judge_from
        missing = sorted(set(self._schedulers) - set(rows.column("scheduler").to_pylist()))
        if missing:
            raise ArenaError(
                f"run {self._run}: ClickHouse has no judged results of {', '.join(missing)}"
            )
        for row in rows.select(["scheduler", "tasks", "distinct_tasks"]).to_pylist():
            if not row["tasks"] == row["distinct_tasks"] == expected:
                raise ArenaError(
                    f"run {self._run}: {row['scheduler']} has {row['tasks']} results of "
                    f"{row['distinct_tasks']} tasks, {expected} were expected"
                )

    def _recovered(self, names: list[str]) -> list[int | None]:
        if "recovery" not in self._experiment.figures or ORACLE not in names:
            return [None] * len(names)
        times = {
            name: np.array(row["times"])
            for name, row in self._rows_by_scheduler(TIMES, most=RECOVERY_TASKS).items()
        }
        return [recovered_after(times[name], times[ORACLE]) for name in names]

    def quantiles(self) -> pa.Table:
        levels = ", ".join(f"{level:.3f}" for level in LEVELS)
        curves = [
            (name, "turnaround", sketch.quantiles(*LEVELS))
            for name, sketch in self._turnarounds.items()
        ]
        for figure in ("time", "wait"):
            sql = QUANTILES.format(levels=levels, figure=figure, judged=JUDGED)
            rows = self._rows_by_scheduler(sql).items()
            curves += [(name, figure, row["quantiles"]) for name, row in rows]
        return pa.concat_tables(
            pa.table(
                {
                    "scheduler": [name] * len(LEVELS),
                    "figure": [figure] * len(LEVELS),
                    "level": LEVELS,
                    "value": values,
                }
            )
            for name, figure, values in curves
        )

    def course(self) -> pa.Table:
        rows = self._query(COURSE, width=max(-(-self._experiment.tasks // INTERVALS), 1))
        scheduler = np.array(rows.column("scheduler").to_pylist())
        first = rows.column("first_task").to_numpy()
        time = rows.column("time").to_numpy()
        is_oracle = scheduler == ORACLE
        oracle = dict(zip(first[is_oracle].tolist(), time[is_oracle].tolist(), strict=True))
        oracle_time = [oracle.get(task) for task in first.tolist()]
        return rows.append_column("oracle_time", pa.array(oracle_time, pa.float64()))

    def workload(self) -> pa.Table:
        step = max(self._experiment.tasks // SAMPLED_TASKS, 1)
        tasks = read_tasks(self._store, self._run, step=step)
        platform, times = self._spec.platform, seconds(tasks, self._spec)
        accelerator = np.array([each.accelerator for each in platform.types])
        names = np.array([each.name for each in platform.types])
        outside: Bools = np.zeros(len(tasks), np.bool_)
        if platform.measured is not None:
            kinds = tasks.kind or [""] * len(tasks)
            outside = np.any(platform.measured.outside(kinds, tasks.size), axis=1)
        return pa.table(
            {
                "task_id": tasks.task_id,
                "size": tasks.size,
                "compute_intensity": tasks.compute_intensity,
                "memory_required": tasks.memory_required,
                "arrival_time": tasks.arrival_time,
                "cpu_time": times[:, ~accelerator].min(axis=1, initial=np.inf),
                "gpu_time": times[:, accelerator].min(axis=1, initial=np.inf),
                "fastest": names[times.argmin(axis=1)],
                "extrapolated": outside,
                "judged": tasks.task_id >= self._experiment.judge_from,
            }
        )

    def graph(self) -> pa.Table:
        return self._query(GRAPH, most=DRAWN_TASKS)

    def models(self) -> pa.Table:
        return self._query(MODELS)


def recovered_after(time: Floats, oracle: Floats) -> int | None:
    """Tasks until a scheduler's time is near the Oracle's over the next ones; None: never."""
    window = np.ones(min(tables.RECOVERY_WINDOW, len(oracle)))
    ratio = np.convolve(time, window, "valid") / np.convolve(oracle, window, "valid")
    near = np.flatnonzero(ratio <= tables.RECOVERY_RATIO)
    return int(near[0]) if len(near) else None
