"""Sums up one run of an experiment from ClickHouse: see `tables.py` for what is kept.

ClickHouse does the adding up; only the tasks' three columns come over whole, for the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from services.lab import tables
from services.lab.experiment import Experiment
from services.lab.recovery import recovered_after
from shared.bound import arrival_bound, cluster_bound
from shared.errors import ArenaError
from shared.physics import cpu_seconds, gpu_seconds
from shared.spec import RunSpec
from shared.store.client import Store
from shared.store.tasks import read_tasks

STRETCHES = 200
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
           quantileExact(0.95)(turnaround) AS p95_turnaround,
           quantileExact(0.99)(turnaround) AS p99_turnaround,
           sum(energy) AS total_energy, sum(cost) AS total_cost, max(finish) AS last_finish,
           avg(gpu_fraction) AS gpu_share, toInt64(countIf(gpu_fraction > 0)) AS gpu_tasks,
           toInt64(countIf(explored)) AS explored
    {JUDGED} GROUP BY scheduler ORDER BY scheduler
"""
COURSE = f"""
    SELECT toString(scheduler) AS scheduler, toInt64(min(task_id)) AS first_task,
           toInt64(count()) AS tasks, max(finish - turnaround) AS arrival, sum(time) AS time,
           sum(wait) AS wait, sum(energy) AS energy, avg(gpu_fraction) AS gpu_share
    {RESULTS} GROUP BY scheduler, intDiv(task_id, {{width:Int64}}) ORDER BY scheduler, first_task
"""
QUANTILES = """
    SELECT toString(scheduler) AS scheduler, quantilesExact({levels})({figure}) AS found
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
MODELS = """
    SELECT toString(name) AS name, toInt64(version) AS version, shipped, reason, score,
           champion_score, last_task, toInt64(trained_on) AS trained_on
    FROM models FINAL WHERE run = {run:String} ORDER BY name, created_at
"""

# Recovery is looked for in this many tasks after the shift, not in a whole run of millions.
LOOKED_THROUGH = 20_000


def collect(
    store: Store,
    experiment: Experiment,
    variant: str,
    seed: int,
    run: str,
    schedulers: Sequence[str],
) -> dict[str, pa.Table]:
    """Every table's rows for one run of these schedulers. Refuses a run that lacks a result or has
    one twice."""
    spec = experiment.run_spec(variant, seed)
    found = _Run(store, run, experiment, spec, schedulers)
    which = {"variant": variant, "seed": seed}
    return {
        "outcomes": _table(tables.OUTCOMES, found.outcomes(), which | {"run": run}),
        "quantiles": _table(tables.QUANTILES, found.quantiles(), which),
        "course": _table(tables.COURSE, found.course(), which),
        "workload": _table(tables.WORKLOAD, found.workload(), which),
        "graph": _table(tables.GRAPH, found.graph(), which),
        "models": _table(tables.MODELS, found.models(), which),
    }


def _table(schema: pa.Schema, rows: pa.Table, constants: dict[str, Any]) -> pa.Table:
    columns = {name: rows.column(name) for name in rows.column_names}
    for name, value in constants.items():
        columns[name] = pa.array([value] * rows.num_rows, schema.field(name).type)
    return pa.table({name: columns[name] for name in schema.names}).cast(schema)


class _Run:
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
        self._asked = {"run": run, "first": experiment.judge_from}
        self._run = run

    def _ask(self, sql: str, **more: Any) -> pa.Table:
        return self._store.table(sql, {**self._asked, **more})

    def outcomes(self) -> pa.Table:
        rows = self._ask(OUTCOMES)
        self._check(rows)
        tasks = read_tasks(self._store, self._run, first=self._experiment.judge_from)
        began = float(tasks.arrival_time.min())
        same = np.ones(rows.num_rows)
        columns = {
            "makespan": pc.subtract(rows.column("last_finish"), began),
            "bound": pa.array(same * cluster_bound(tasks, self._spec)),
            "arrival_bound": pa.array(same * (arrival_bound(tasks, self._spec) - began)),
            "recovered_after": pa.array(self._recovered(rows), pa.int64()),
        }
        for name, column in columns.items():
            rows = rows.append_column(name, column)
        return rows

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

    def _recovered(self, rows: pa.Table) -> list[int | None]:
        names = rows.column("scheduler").to_pylist()
        if "recovery" not in self._experiment.figures or "oracle" not in names:
            return [None] * len(names)
        times = {
            row["scheduler"]: np.array(row["times"])
            for row in self._ask(TIMES, most=LOOKED_THROUGH).to_pylist()
        }
        return [recovered_after(times[name], times["oracle"]) for name in names]

    def quantiles(self) -> pa.Table:
        levels = ", ".join(f"{level:.3f}" for level in LEVELS)
        pieces = []
        for figure in ("turnaround", "time", "wait"):
            rows = self._ask(QUANTILES.format(levels=levels, figure=figure, judged=JUDGED))
            for row in rows.to_pylist():
                pieces.append(
                    pa.table(
                        {
                            "scheduler": [row["scheduler"]] * len(LEVELS),
                            "figure": [figure] * len(LEVELS),
                            "level": LEVELS,
                            "value": row["found"],
                        }
                    )
                )
        return pa.concat_tables(pieces)

    def course(self) -> pa.Table:
        rows = self._ask(COURSE, width=max(-(-self._experiment.tasks // STRETCHES), 1))
        scheduler = np.array(rows.column("scheduler").to_pylist())
        first = rows.column("first_task").to_numpy()
        time = rows.column("time").to_numpy()
        mine = scheduler == "oracle"
        oracle = dict(zip(first[mine].tolist(), time[mine].tolist(), strict=True))
        floor = [oracle.get(task) for task in first.tolist()]
        return rows.append_column("oracle_time", pa.array(floor, pa.float64()))

    def workload(self) -> pa.Table:
        step = max(self._experiment.tasks // SAMPLED_TASKS, 1)
        tasks = read_tasks(self._store, self._run, step=step)
        return pa.table(
            {
                "task_id": tasks.task_id,
                "size": tasks.size,
                "compute_intensity": tasks.compute_intensity,
                "memory_required": tasks.memory_required,
                "arrival_time": tasks.arrival_time,
                "cpu_time": cpu_seconds(tasks, self._spec),
                "gpu_time": gpu_seconds(tasks, self._spec),
                "judged": tasks.task_id >= self._experiment.judge_from,
            }
        )

    def graph(self) -> pa.Table:
        return self._ask(GRAPH, most=DRAWN_TASKS)

    def models(self) -> pa.Table:
        return self._ask(MODELS)
