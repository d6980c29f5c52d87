"""Proves from ClickHouse alone that a run is complete: nothing lost, doubled or different.

It knows the published rules (the spec, the physics, the tables) and none of the services:

- every task is there once, and has exactly one result from every scheduler;
- every result is what physics and virtual cluster give for the decision that was taken;
- every standing is the sum of the results up to it, and the training data are the Oracle's;
- the schedulers that do not learn gave, bit for bit, what they gave in an undisturbed run.

Runs are read in chunks, so one of millions of tasks takes no more memory than a small one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.chaos.clickhouse import ClickHouse, Columns, bits, pick
from tests.chaos.devices import Spec
from tests.chaos.equations import Course, priced
from tests.chaos.findings import Findings, few
from tests.chaos.standings import Standings

CHUNK = 200_000  # tasks

# Rules that do not choose devices: they take turns by task id.
IN_ROTATION = ("round_robin", "random", "greedy", "cpu_only", "gpu_only")

# What may differ between two runs of the same spec: how the stream was cut, and when.
MAY_DIFFER = {"batch", "published_at"}

RESULTS = """
    SELECT * EXCEPT (run, scheduler, status),
           multiIf(status = 'ok', 0, status = 'failed', 1, 2) AS status
    FROM scheduler_results
    WHERE run = {run:String} AND scheduler = {scheduler:String}
      AND task_id >= {first:Int64} AND task_id < {end:Int64}
    ORDER BY task_id
"""
TASKS = """
    SELECT * EXCEPT (run, published_at), toUnixTimestamp64Micro(published_at) AS published_at
    FROM tasks
    WHERE run = {run:String} AND task_id >= {first:Int64} AND task_id < {end:Int64}
    ORDER BY task_id
"""
TRAINING = """
    SELECT * EXCEPT (run) FROM training_data
    WHERE run = {run:String} AND task_id >= {first:Int64} AND task_id < {end:Int64}
    ORDER BY task_id
"""
# What the training data must be equal to.
FROM_TASK = ("size", "compute_intensity", "memory_required")
FROM_ORACLE = {"optimal_gpu_fraction": "gpu_fraction", "optimal_time": "time"}


@dataclass(frozen=True, slots=True)
class Chunk:
    first: int
    end: int

    def parameters(self, run: str, **more: str) -> dict[str, Any]:
        return {"run": run, "first": self.first, "end": self.end, **more}


def check(
    clickhouse: ClickHouse,
    run: str,
    *,
    reference: str | None = None,
    rules: tuple[str, ...] = (),
    chunk: int = CHUNK,
) -> Findings:
    """Look through a completed run; `rules` are compared with the run `reference`."""
    return Checker(clickhouse, run, reference, rules).check(chunk)


class Checker:
    def __init__(
        self, clickhouse: ClickHouse, run: str, reference: str | None, rules: tuple[str, ...]
    ) -> None:
        self._clickhouse = clickhouse
        self._run = run
        self._reference = reference
        self._findings = Findings(run)
        self._spec = self._read_spec(run)
        if self._spec["tasks"] is None:
            raise ValueError(f"run {run} is endless: its tasks cannot be counted")
        self._count: int = self._spec["tasks"]
        names = self._spec["schedulers"]
        self._compared = [name for name in names if name in rules] if reference else []
        if reference:
            self._must_be_alike(self._read_spec(reference), reference)
        self._courses = {name: Course(self._spec) for name in names}
        self._standings = {name: Standings(clickhouse, run, name, self._findings) for name in names}
        self._broken: set[str] = set()  # schedulers with gaps: nothing follows from a gap

    def check(self, chunk: int) -> Findings:
        self._check_counts()
        for first in range(0, self._count, chunk):
            self._check_chunk(Chunk(first, min(first + chunk, self._count)))
        for name, standings in self._standings.items():
            if name not in self._broken:
                standings.check_end(self._count)
        return self._findings

    def _read_spec(self, run: str) -> Spec:
        found = self._clickhouse.rows(
            "SELECT spec, state FROM runs FINAL WHERE run = {run:String}", {"run": run}
        )
        if len(found) != 1:
            raise ValueError(f"run {run} has {len(found)} rows in `runs`")
        if found[0]["state"] != "completed":
            self._findings.add_lost("run", f"{run} is {found[0]['state']}, not completed")
        spec: Spec = json.loads(found[0]["spec"])
        return spec

    def _must_be_alike(self, other: Spec, reference: str) -> None:
        for name in ("seed", "tasks", "cluster", "physics", "oracle", "workload"):
            if other[name] != self._spec[name]:
                raise ValueError(f"run {reference} is no reference: another {name}")

    def _check_counts(self) -> None:
        """What queries with FINAL return, and rows of unknown schedulers or tasks."""
        for row in self._clickhouse.rows(
            "SELECT scheduler, count() AS results, uniqExact(task_id) AS tasks, "
            "countIf(task_id < 0 OR task_id >= {count:Int64}) AS outside "
            "FROM scheduler_results FINAL WHERE run = {run:String} GROUP BY scheduler",
            {"run": self._run, "count": self._count},
        ):
            name = row["scheduler"]
            if name not in self._courses:
                self._findings.add_doubled(
                    "results", f"{row['results']} of an unknown scheduler, {name}"
                )
            if int(row["results"]) != int(row["tasks"]):
                self._findings.add_doubled(
                    name, f"FINAL has {row['results']} of {row['tasks']} tasks"
                )
            if int(row["outside"]):
                self._findings.add_doubled(
                    name, f"{row['outside']} results of tasks beyond the last"
                )
        (row,) = self._clickhouse.rows(
            "SELECT countIf(task_id < 0 OR task_id >= {count:Int64}) AS outside "
            "FROM tasks FINAL WHERE run = {run:String}",
            {"run": self._run, "count": self._count},
        )
        if int(row["outside"]):
            self._findings.add_doubled("tasks", f"{row['outside']} beyond the last")

    def _check_chunk(self, chunk: Chunk) -> None:
        tasks = self._once("tasks", chunk, self._read(TASKS, chunk, self._run))
        self._findings.tasks += len(tasks["task_id"]) if tasks else 0
        if self._reference:
            others = self._read(TASKS, chunk, self._reference)
            self._compare("tasks", "the undisturbed run", tasks, others)
        for name in self._courses:
            found = self._read(RESULTS, chunk, self._run, scheduler=name)
            results = self._once(name, chunk, found)
            self._findings.results += len(results["task_id"]) if results else 0
            if name in self._compared and self._reference:
                others = self._read(RESULTS, chunk, self._reference, scheduler=name)
                self._compare(name, "the undisturbed run", results, others)
            self._check_results(name, chunk, tasks, results)
            if name == "oracle":
                self._check_training(chunk, tasks, results)

    def _read(self, sql: str, chunk: Chunk, run: str, **more: str) -> Columns:
        return self._clickhouse.columns(sql, chunk.parameters(run, **more))

    def _once(self, place: str, chunk: Chunk, rows: Columns) -> Columns:
        """One row per task. A second one must be the same bit for bit: a merge removes it."""
        ids = rows["task_id"] if rows else np.zeros(0, np.int64)
        again = np.concatenate([[False], ids[1:] == ids[:-1]]) if len(ids) else ids.astype(bool)
        if again.any():
            changed = np.zeros(len(ids), np.bool_)
            for name, column in rows.items():
                values = bits(column)
                here = again & np.concatenate([[False], values[1:] != values[:-1]])
                changed |= here
                if here.any():
                    what = f"tasks {few(ids[here])} have rows that differ in {name}"
                    self._findings.add_doubled(place, what, 0)
            self._findings.doubled += int(changed.sum())
            self._findings.copies += int((again & ~changed).sum())
            rows = pick(rows, ~again)
            ids = rows["task_id"]
        expected = np.arange(chunk.first, chunk.end)
        missing = expected[~np.isin(expected, ids)]
        if len(missing):
            self._findings.add_lost(place, f"no row of tasks {few(missing)}", len(missing))
        return rows

    def _check_results(self, name: str, chunk: Chunk, tasks: Columns, results: Columns) -> None:
        count = chunk.end - chunk.first
        if any(not rows or len(rows["task_id"]) != count for rows in (tasks, results)):
            self._broken.add(name)
        if name in self._broken:
            return
        self._check_decisions(name, tasks, results)
        course = self._courses[name]
        due = priced(tasks, results, self._spec, course.devices)
        self._must_equal(name, "the physics", results, due)
        due = course.scheduled(tasks, results)
        self._must_equal(name, "the virtual cluster", results, due)
        self._must_equal(name, "its task", results, {"batch": tasks["batch"]})
        totals = course.added_up(tasks, results)
        self._standings[name].check(chunk.first, results["batch"], totals)

    def _check_decisions(self, name: str, tasks: Columns, results: Columns) -> None:
        devices = self._courses[name].devices
        share, chance = results["gpu_fraction"], results["probability"]
        device, cpu = results["device"], results["cpu"]
        allowed = {
            "gpu_fraction": (share >= 0) & (share <= 1),
            "device": np.isin(device, devices.accelerators if len(devices.accelerators) else [-1]),
            "cpu": (cpu == -1) | np.isin(cpu, devices.cpus),
            "probability": (chance > 0) & (chance <= 1),
        }
        if name in IN_ROTATION:
            turn = devices.rotation(tasks["task_id"])
            beside = devices.cpu_beside(np.where(share > 0, turn, -1), tasks["task_id"])
            allowed["device"] &= device == turn
            allowed["cpu"] &= cpu == beside
        if name in ("hybrid_ml", "rl_agent"):  # without a model greedy's rule decides
            modelled = results["model_version"] > 0
            allowed["model_version"] = modelled | (share == tasks["compute_intensity"])
        for column, good in allowed.items():
            self._report(name, f"{column} is impossible", tasks["task_id"][~good])

    def _check_training(self, chunk: Chunk, tasks: Columns, oracle: Columns) -> None:
        found = self._once("training_data", chunk, self._read(TRAINING, chunk, self._run))
        lengths = {len(rows["task_id"]) if rows else 0 for rows in (found, tasks, oracle)}
        if lengths != {chunk.end - chunk.first}:
            return
        expected = {name: tasks[name] for name in FROM_TASK}
        expected |= {name: oracle[source] for name, source in FROM_ORACLE.items()}
        self._must_equal("training_data", "the Oracle's results", found, expected)

    def _compare(self, place: str, with_whom: str, mine: Columns, other: Columns) -> None:
        if not mine or not other:
            return  # reported as lost
        other = pick(other, np.concatenate([[True], np.diff(other["task_id"]) != 0]))
        both = np.intersect1d(mine["task_id"], other["task_id"])
        if len(both) < len(mine["task_id"]):
            lacking = np.setdiff1d(mine["task_id"], both)
            self._findings.add_lost(place, f"{with_whom} has no row of tasks {few(lacking)}")
        mine = pick(mine, np.isin(mine["task_id"], both))
        other = pick(other, np.isin(other["task_id"], both))
        expected = {name: other[name] for name in mine if name not in MAY_DIFFER}
        self._must_equal(place, with_whom, mine, expected)

    def _must_equal(self, place: str, what: str, found: Columns, expected: Columns) -> None:
        for name, column in expected.items():
            wrong = bits(found[name]) != bits(column)
            self._report(place, f"{name} is not that of {what}", found["task_id"][wrong])

    def _report(self, place: str, what: str, tasks: Any) -> None:
        if len(tasks):
            self._findings.add_different(place, f"{what} for tasks {few(tasks)}", len(tasks))
