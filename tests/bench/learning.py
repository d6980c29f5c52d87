"""`make bench-learning`: what the learners reach, over several seeds, as one JSON object.

default      10,000 tasks of the default preset
overlapped   the same in the overlapped split mode, where the best share is inside (0, 1)
drift        gpu_friendly, then cpu_friendly: tasks until a learner is back within 10 % of the
             Oracle (over the next 50 tasks), with a frozen forest for contrast
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import numpy as np

from services.lab.experiments.collect import recovered_after
from tests.bench import report
from tests.bench.processes import running_arena
from tests.e2e.arena import ArenaProcess

COMPETITORS = ["oracle", "greedy", "round_robin", "hybrid_ml", "rl_agent", "frozen_forest"]
DRIFT_AT, DRIFT_TASKS = 1500, 2500

TIMES = """
    SELECT scheduler, groupArray(time) AS times FROM (
        SELECT scheduler, time FROM scheduler_results FINAL WHERE run = '{run}' ORDER BY task_id
    ) GROUP BY scheduler
"""


MODELS = """
    SELECT name, countIf(models.shipped) AS shipped, countIf(NOT models.shipped) AS kept_back
    FROM models FINAL WHERE run = '{run}' GROUP BY name
"""


def main() -> None:
    parser = report.parser("bench-learning", __doc__ or "")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--pace", type=float, default=500, help="of the runs without drift")
    parser.add_argument("--drift-pace", type=float, default=50)
    given = parser.parse_args()
    frozen = "services.scheduler.frozen_forest:FrozenForest"
    with running_arena("--idle", "--add", frozen) as arena:
        measured = measure(arena, given)
    table = [*table_of_ratios(measured, given), *table_of_recovery(measured["drift"])]
    report.publish("bench-learning", measured, table, write=given.write)


def table_of_ratios(measured: dict[str, Any], given: argparse.Namespace) -> report.Table:
    title = f"{given.seeds} seeds of {given.tasks:,} tasks at {given.pace:g} tasks/s"
    rows = [(title, "whole run", "last fifth")]
    for mode in ("default", "overlapped"):
        for name, row in measured[mode].items():
            whole, last = (
                f"{row[field]['mean']:.3f} ± {row[field]['stdev']:.3f}"
                for field in ("vs_oracle", "vs_oracle_last")
            )
            rows.append((name if mode == "default" else f"{name}, overlapped", whole, last))
    return rows


def table_of_recovery(drift: dict[str, Any]) -> report.Table:
    rows = []
    for name, row in drift.items():
        counts = row["tasks_until_within_10_percent"]
        needed = ", ".join("never" if count is None else str(count) for count in counts)
        mean = f"{row['first_500']['mean']:.2f} over 500 tasks"
        rows.append((f"{name}, after the workload changed", mean, f"tasks to recover: {needed}"))
    return rows


def measure(arena: ArenaProcess, given: argparse.Namespace) -> dict[str, Any]:
    seeds = range(1, given.seeds + 1)
    plain = {"tasks": given.tasks, "pace": given.pace}
    overlapped = {**plain, "physics": {"split": "overlapped"}}
    drift = {
        "tasks": DRIFT_TASKS,
        "pace": given.drift_pace,
        "workload": {
            "preset": "gpu_friendly",
            "drift": [{"after": DRIFT_AT, "preset": "cpu_friendly"}],
        },
    }
    return {
        "default": over_seeds(arena, "default", plain, seeds),
        "overlapped": over_seeds(arena, "overlapped", overlapped, seeds),
        "drift": recovery(arena, drift, seeds),
    }


def race(arena: ArenaProcess, label: str, spec: dict[str, Any], seed: int) -> str:
    report.progress(f"{label}, seed {seed}")
    run = arena.start_run(**spec, seed=seed, schedulers=COMPETITORS)
    arena.complete(run, timeout=600)
    return run


def times_of(arena: ArenaProcess, run: str) -> dict[str, list[float]]:
    return {row["scheduler"]: row["times"] for row in arena.sql(TIMES.format(run=run))}


def over_seeds(
    arena: ArenaProcess, label: str, spec: dict[str, Any], seeds: range
) -> dict[str, Any]:
    """Total time over the Oracle's, of the whole run and of its last fifth; the agent's lead; how
    many models were shipped, and judged worse than the one in service."""
    found: dict[str, dict[str, list[float]]] = {}
    for seed in seeds:
        run = race(arena, label, spec, seed)
        times = times_of(arena, run)
        for row in arena.sql(MODELS.format(run=run)):
            for field in ("shipped", "kept_back"):
                found.setdefault(row["name"], {}).setdefault(field, []).append(row[field])
        late = len(times["oracle"]) * 4 // 5
        for name, spent in times.items():
            row = found.setdefault(name, {})
            for suffix, part in (("", slice(None)), ("_last", slice(late, None))):
                own, best, agent = (
                    sum(t[part]) for t in (spent, times["oracle"], times["rl_agent"])
                )
                row.setdefault(f"vs_oracle{suffix}", []).append(own / best)
                if name in ("greedy", "round_robin"):
                    row.setdefault(f"agent_better_by{suffix}", []).append(1 - agent / own)
    return {
        name: {field: spread(values) for field, values in row.items()}
        for name, row in sorted(found.items())
    }


def recovery(arena: ArenaProcess, spec: dict[str, Any], seeds: range) -> dict[str, Any]:
    needed: dict[str, list[float | None]] = {}
    after: dict[str, list[float]] = {}
    for seed in seeds:
        times = times_of(arena, race(arena, "drift", spec, seed))
        for name in ("hybrid_ml", "rl_agent", "frozen_forest", "greedy"):
            back = recovered_after(*(np.array(times[one][DRIFT_AT:]) for one in (name, "oracle")))
            needed.setdefault(name, []).append(back)
            stretch = slice(DRIFT_AT, DRIFT_AT + 500)
            after.setdefault(name, []).append(
                sum(times[name][stretch]) / sum(times["oracle"][stretch])
            )
    return {
        name: {"tasks_until_within_10_percent": needed[name], "first_500": spread(after[name])}
        for name in needed
    }


def spread(values: list[float]) -> dict[str, float]:
    return {
        "mean": round(statistics.mean(values), 4),
        "stdev": round(statistics.stdev(values), 4) if len(values) > 1 else 0.0,
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }


if __name__ == "__main__":
    main()
