"""Writes the folder of an experiment with known outcomes.

The Oracle's total time of a seed is `oracle_time(seed)`; a scheduler's is that times its factor,
times exp(noise) that depends on the seed and the scheduler alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from services.lab.experiments.declaration import Experiment
from services.lab.experiments.tables import TABLES
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.times import seconds

ALL_FIGURES = (
    "total_time", "average_time", "makespan", "cost", "energy", "latency", "boxes", "speedup",
    "regret", "models", "workload", "graph", "sweep", "reference", "recovery", "turnaround",
    "breakdown",
)  # fmt: skip

SIX = {
    "oracle": 1.0, "greedy": 1.4, "rl_agent": 1.6, "round_robin": 4.4, "random": 5.2,
    "frozen_forest": 9.5,
}  # fmt: skip

REFERENCE = {
    "source": "a table",
    "total_time": {
        "oracle": 12.97, "greedy": 18.30, "rl_agent": 21.12, "round_robin": 56.87,
        "random": 67.14, "frozen_forest": 122.92,
    },
}  # fmt: skip

Factors = dict[str, float]


def oracle_time(seed: int) -> float:
    return 100.0 + 3 * seed


def declare(**changes: Any) -> Experiment:
    fields: dict[str, Any] = {
        "name": "synthetic",
        "title": "A synthetic experiment",
        "question": "Does the report say what the numbers say?",
        "tasks": 2000,
        "seeds": (1, 2, 3, 4, 5),
        "figures": ALL_FIGURES,
    }
    return Experiment.model_validate({**fields, **changes})


class Synthetic:
    """Writes the folder of an experiment; every part can be changed before."""

    def __init__(
        self,
        experiment: Experiment,
        factors: Factors | Callable[[str], Factors] = SIX,
        *,
        noise: float = 0.01,
        wait: Callable[[str, str], float] = lambda variant, scheduler: 0.5,
        energy: Callable[[str, str], float] | None = None,
        idle: float = 0.0,
        failed: dict[str, int] | None = None,
        recovered: dict[str, int | None] | None = None,
        with_models: bool = True,
        with_parents: bool = False,
        stretches: int = 100,
        sample: int = 400,
    ) -> None:
        self.experiment = experiment
        self.factors = factors if callable(factors) else lambda variant: dict(factors)
        self.noise, self.wait, self.energy, self.idle = noise, wait, energy, idle
        self.failed, self.recovered = failed or {}, recovered or {}
        self.with_models, self.with_parents = with_models, with_parents
        self.stretches, self.sample = stretches, sample

    def total_time(self, variant: str, seed: int, scheduler: str) -> float:
        factor = self.factors(variant)[scheduler]
        wobble = 0.0 if scheduler == "oracle" else self.noise * _normal(seed, scheduler)
        return oracle_time(seed) * factor * math.exp(wobble)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
        for variant, seed in self.experiment.runs():
            which = {"variant": variant, "seed": seed}
            rows["workload"] += self._workload(which)
            rows["graph"] += self._graph(which)
            if self.with_models:
                rows["models"] += self._models(which)
            for scheduler in self.factors(variant):
                who = {**which, "scheduler": scheduler}
                rows["outcomes"].append(self._outcome(who))
                rows["quantiles"] += self._quantiles(who)
                rows["course"] += self._course(who)
        return rows

    def write(self, folder: Path) -> Path:
        (folder / "data").mkdir(parents=True, exist_ok=True)
        (folder / "experiment.json").write_text(self.experiment.model_dump_json())
        (folder / "provenance.json").write_text(json.dumps(self.provenance()))
        for name, rows in self.tables().items():
            table = pa.Table.from_pylist(rows, schema=TABLES[name])
            pa.parquet.write_table(table, folder / "data" / f"{name}.parquet")
        return folder

    def provenance(self) -> dict[str, Any]:
        return {
            "command": f"hybrid experiment run {self.experiment.name} --out results",
            "started_at": "2026-01-02T03:04:05+00:00",
            "finished_at": "2026-01-02T03:14:05+00:00",
            "version": "0.1.0",
            "commit": "0123456789abcdef",
            "python": "3.11.9",
            "packages": {"numpy": "2.4.6", "pyarrow": "25.0.0"},
            "machine": {"cpu": "Model X", "cores": 2, "memory_gb": 7.8, "system": "Linux"},
            "arena": "embedded",
            "runs": [
                {
                    "variant": variant,
                    "seed": seed,
                    "run": f"run-{variant or 'x'}-{seed}",
                    "seconds": 12.5,
                    "tasks_per_s": self.experiment.tasks / 12.5,
                    "spec": json.loads(self.experiment.run_spec(variant, seed).model_dump_json()),
                }
                for variant, seed in self.experiment.runs()
            ],
            "processes": [
                {"name": "clickhouse", "peak_mb": 812.5},
                {"name": "trainer", "peak_mb": 640.0},
            ],
        }

    @property
    def judged(self) -> int:
        return self.experiment.tasks - self.experiment.judge_from

    def _outcome(self, who: dict[str, Any]) -> dict[str, Any]:
        variant, seed, name = who["variant"], who["seed"], who["scheduler"]
        time = self.total_time(variant, seed, name)
        factor = time / oracle_time(seed)
        wait = self.wait(variant, name) * (1 + 0.05 * _normal(seed, name))
        mean = time / self.judged
        bound = oracle_time(seed) / 4
        joules = self.energy(variant, name) if self.energy else 40 * factor**0.5
        return {
            **who,
            "run": f"run-{variant or 'x'}-{seed}",
            "tasks": self.judged,
            "failed": self.failed.get(name, 0),
            "total_time": time,
            "avg_time": mean,
            "avg_wait": wait,
            "avg_turnaround": mean + wait,
            "p95_turnaround": 4 * (mean + wait),
            "p99_turnaround": 9 * (mean + wait),
            "avg_slowdown": self._of_complete(2 + factor),
            "total_energy": joules * oracle_time(seed),
            "energy_with_idle": self._of_complete((joules + self.idle) * oracle_time(seed)),
            "total_cost": 1e-4 * time,
            "makespan": bound * (1.2 + 0.3 * factor),
            "arrival_bound": bound,
            "critical_path": bound / 2 if self.with_parents else None,
            "gpu_share": min(1.0, 0.6 / factor),
            "gpu_tasks": self.judged // 2,
            "explored": 0,
            "recovered_after": self.recovered.get(name, 0 if factor < 1.1 else None),
        }

    def _of_complete(self, value: float) -> float | None:
        return None if self.experiment.judge_from else value

    def _quantiles(self, who: dict[str, Any]) -> list[dict[str, Any]]:
        mean = self.total_time(who["variant"], who["seed"], who["scheduler"]) / self.judged
        wait = self.wait(who["variant"], who["scheduler"])
        levels = np.linspace(0, 1, 201)
        shape = -np.log(1 - levels * 0.999)
        result = {"time": mean * shape, "wait": wait * shape, "turnaround": (mean + wait) * shape}
        return [
            {**who, "figure": figure, "level": float(level), "value": float(value)}
            for figure, values in result.items()
            for level, value in zip(levels, values, strict=True)
        ]

    def _course(self, who: dict[str, Any]) -> list[dict[str, Any]]:
        tasks, count = self.experiment.tasks, self.stretches
        edges = np.linspace(0, tasks, count + 1).round().astype(int)
        factor = self.total_time(who["variant"], who["seed"], who["scheduler"])
        factor /= oracle_time(who["seed"])
        has_oracle = "oracle" in self.factors(who["variant"])
        after = self.recovered.get(who["scheduler"])
        rows = []
        for first, end in pairwise(edges):
            since = first - self.experiment.judge_from
            now = factor
            if after is not None and since >= 0:
                now = 1 + (factor * 4 - 1) * math.exp(-3 * since / max(after, 1))
            oracle = oracle_time(who["seed"]) / tasks * (end - first)
            rows.append(
                {
                    **who,
                    "first_task": int(first),
                    "tasks": int(end - first),
                    "arrival": float(end) / 4,
                    "time": oracle * now,
                    "oracle_time": oracle if has_oracle else None,
                    "wait": 1.0,
                    "energy": oracle * now * 40,
                    "gpu_share": 0.5,
                }
            )
        return rows

    def _workload(self, which: dict[str, Any]) -> list[dict[str, Any]]:
        draw = np.random.default_rng(which["seed"])
        n = self.sample
        ids = np.linspace(0, self.experiment.tasks - 1, n).astype(int)
        judged = ids >= self.experiment.judge_from
        tasks = Tasks(
            ids,
            draw.lognormal(5.3, 0.8, n),
            draw.uniform(0, 1, n),
            draw.lognormal(6.7, 1.3, n) * np.where(judged & ~judged.all(), 4.0, 1.0),
            np.cumsum(draw.exponential(0.25 * self.experiment.tasks / n, n)),
        )
        gpu_time, cpu_time = seconds(tasks, RunSpec.parse({})).T
        columns = {
            "task_id": tasks.task_id,
            "size": tasks.size,
            "compute_intensity": tasks.compute_intensity,
            "memory_required": tasks.memory_required,
            "arrival_time": tasks.arrival_time,
            "cpu_time": cpu_time,
            "gpu_time": gpu_time,
            "fastest": np.where(gpu_time < cpu_time, "gpu", "cpu"),
            "extrapolated": np.arange(n) % 4 == 0,
            "judged": judged,
        }
        return [
            {**which, **{name: values[i].item() for name, values in columns.items()}}
            for i in range(n)
        ]

    def _graph(self, which: dict[str, Any]) -> list[dict[str, Any]]:
        draw = np.random.default_rng(which["seed"])
        start = self.experiment.judge_from
        rows = []
        for i in range(min(300, self.judged)):
            parents: list[int] = []
            if self.with_parents and i > 0 and draw.random() < 0.4:
                parents = sorted({int(start + draw.integers(max(0, i - 12), i)) for _ in range(2)})
            rows.append({**which, "task_id": start + i, "parents": parents})
        return rows

    def _models(self, which: dict[str, Any]) -> list[dict[str, Any]]:
        rows = []
        for name in ("hybrid_ml", "rl_agent"):
            if name not in self.factors(which["variant"]):
                continue
            for version in range(1, 13):
                shipped = version % 4 != 0
                scored = name == "hybrid_ml"
                rows.append(
                    {
                        **which,
                        "name": name,
                        "version": version,
                        "shipped": shipped,
                        "reason": "not worse" if shipped else "worse",
                        "score": 1 + 0.3 / version if scored else None,
                        "champion_score": 1.1 if scored else None,
                        "last_task": version * self.experiment.tasks // 13,
                        "trained_on": 1000,
                    }
                )
        return rows


def _normal(seed: int, name: str) -> float:
    return float(np.random.default_rng([seed, *name.encode()]).normal())
