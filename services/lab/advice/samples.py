"""What the runs of one case measured: a row per scheduler and unit of comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shared.domain.learning.objective import penalty
from shared.domain.schedulers import REFERENCES
from shared.domain.spec import RunSpec
from shared.store.client import Store

FIGURES = ("turnaround", "wait", "time", "energy", "cost")
MEANS = """
    SELECT toString(scheduler) AS scheduler, toInt64(intDiv(task_id, {stretch:Int64})) AS stretch,
           avg(turnaround) AS turnaround, avg(wait) AS wait, avg(time) AS time,
           avg(energy) AS energy, avg(cost) AS cost, toInt64(countIf(status = 'failed')) AS failed
    FROM scheduler_results FINAL WHERE run = {run:String} GROUP BY scheduler, stretch
"""
SPAN = (
    "SELECT max(arrival_time) - min(arrival_time) AS span FROM tasks FINAL WHERE run = {run:String}"
)

Unit = tuple[int, int]  # of generated jobs: the seed; of a trace: the stretch


@dataclass(slots=True)
class Samples:
    """Means per task, of every scheduler in every unit."""

    spec: RunSpec
    by_unit: bool  # whether each seed is a unit of its own
    values: dict[str, dict[str, dict[Unit, list[float]]]] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    over_bound: dict[str, list[float]] = field(default_factory=dict)  # makespan, of each run
    seeds: set[int] = field(default_factory=set)
    runs: list[str] = field(default_factory=list)
    span_s: float = 0.0  # of the arrivals of a run, the mean of all

    def add(self, store: Store, record: Mapping[str, Any], seed: int, stretch: int) -> None:
        """Read a completed run."""
        run, bound = record["run"], record["bound"]
        self.seeds.add(seed)
        self.runs.append(run)
        span = float(store.query(SPAN, {"run": run})[0]["span"])
        self.span_s += (span - self.span_s) / len(self.runs)
        for row in store.query(MEANS, {"run": run, "stretch": stretch}):
            name = row["scheduler"]
            unit = (seed if self.by_unit else 0, int(row["stretch"]))
            self.failed[name] = self.failed.get(name, 0) + int(row["failed"])
            for figure in FIGURES:
                of_unit = self.values.setdefault(name, {}).setdefault(figure, {})
                of_unit.setdefault(unit, []).append(float(row[figure]))
        for name, standing in record["schedulers"].items():
            if bound:
                self.over_bound.setdefault(name, []).append(standing["makespan"] / bound)

    @property
    def competitors(self) -> list[str]:
        """The schedulers without the references, which nobody can deploy."""
        return [name for name in self.values if name not in REFERENCES]

    def of(self, scheduler: str, figure: str) -> dict[int, float]:
        """A figure by unit of comparison; a stretch has the mean of its replays."""
        if figure == "objective":
            return self.objective(scheduler, self.spec)
        units = self.values[scheduler][figure]
        return {seed * 1_000_000 + part: float(np.mean(units[seed, part])) for seed, part in units}

    def objective(self, scheduler: str, spec: RunSpec) -> dict[int, float]:
        """What the user wants to minimise, in seconds; linear, so means per task are enough."""
        columns = [self.of(scheduler, each) for each in ("turnaround", "energy", "cost")]
        units = list(columns[0])
        turnaround, energy, cost = (np.array([c[unit] for unit in units]) for c in columns)
        weighted = penalty(turnaround, energy, cost, spec)
        return dict(zip(units, weighted.tolist(), strict=True))
