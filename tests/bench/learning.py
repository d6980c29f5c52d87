"""`make bench-learning`: what the learners reach, over several seeds, as one JSON object.

default      10,000 tasks of the default preset
overlapped   the same in the overlapped split mode, where the best share is inside (0, 1)
drift        gpu_friendly, then cpu_friendly: tasks until a learner is back within 10 % of the
             Oracle (over the next 50 tasks), with a frozen forest for contrast
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from services.lab.collect import recovered_after
from tests.bench import machine
from tests.bench.__main__ import say
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
    parser = argparse.ArgumentParser(prog="make bench-learning", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--pace", type=float, default=500, help="of the runs without drift")
    parser.add_argument("--drift-pace", type=float, default=50)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        arena = ArenaProcess(
            Path(folder) / "arena", "--idle", "--add", "services.scheduler.frozen:FrozenForest"
        )
        try:
            json.dump(measure(arena, given), sys.stdout, indent=2)
        finally:
            arena.stop()
    print()


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
        "machine": machine.describe(),
        "default": over_seeds(arena, "default", plain, seeds),
        "overlapped": over_seeds(arena, "overlapped", overlapped, seeds),
        "drift": recovery(arena, drift, seeds),
    }


def race(arena: ArenaProcess, label: str, spec: dict[str, Any], seed: int) -> str:
    say(f"{label}, seed {seed}")
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
            row.setdefault("vs_oracle", []).append(sum(spent) / sum(times["oracle"]))
            row.setdefault("vs_oracle_last", []).append(
                sum(spent[late:]) / sum(times["oracle"][late:])
            )
            if name in ("greedy", "round_robin"):
                agent = times["rl_agent"]
                row.setdefault("agent_better_by", []).append(1 - sum(agent) / sum(spent))
                row.setdefault("agent_better_by_last", []).append(
                    1 - sum(agent[late:]) / sum(spent[late:])
                )
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
