"""`make bench-bound`: seconds for the bounds of a million tasks, beside a linear-programming solver
on as many as that takes in about the same time; one JSON object."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linprog

from shared.bound import arrival_bound, cluster_bound
from shared.physics import cpu_seconds, gpu_seconds
from shared.spec import RunSpec
from shared.tasks import Tasks
from shared.workload import Cursor, generate
from tests.bench import machine

MANY, FEW = 1_000_000, 5_000


def main() -> None:
    spec = RunSpec.parse({"seed": 1})
    # Without tasks that do not fit a GPU the textbook's program is the whole truth.
    roomy = RunSpec.parse({"seed": 1, "cluster": {"gpu_memory_mb": 1e9}})
    many, few = (generate(spec, Cursor(), count)[0] for count in (MANY, FEW))
    found: dict[str, Any] = {"machine": machine.describe(), "tasks": MANY}
    for policy in ("cpu", "page", "fail"):
        chosen = RunSpec.parse({"seed": 1, "physics": {"memory_policy": policy}})
        found[f"cluster_bound_{policy}_s"] = timed(lambda s=chosen: cluster_bound(many, s))[0]
    found["arrival_bound_s"] = timed(lambda: arrival_bound(many, spec))[0]
    seconds, solved = timed(lambda: solver(few, roomy))
    sorted_seconds, ours = timed(lambda: cluster_bound(few, roomy))
    found["solver"] = {
        "tasks": FEW,
        "solver_s": seconds,
        "ours_s": sorted_seconds,
        "relative_difference": abs(solved - ours) / solved,
    }
    json.dump(found, sys.stdout, indent=2)
    print()


def timed(work: Callable[[], float]) -> tuple[float, float]:
    began = time.perf_counter()
    result = work()
    return round(time.perf_counter() - began, 4), result


def solver(tasks: Tasks, spec: RunSpec) -> float:
    """least C with sum y g <= gpus C and sum (1 - y) c <= cpus C."""
    on_cpu, on_gpu = cpu_seconds(tasks, spec), gpu_seconds(tasks, spec)
    goal = np.append(np.zeros(len(tasks)), 1.0)
    rows = np.vstack(
        [
            np.append(on_gpu, -float(spec.cluster.gpus)),
            np.append(-on_cpu, -float(spec.cluster.cpus)),
        ]
    )
    bounds = [(0.0, 1.0)] * len(tasks) + [(0.0, None)]
    return float(linprog(goal, rows, [0.0, -on_cpu.sum()], bounds=bounds).fun)


if __name__ == "__main__":
    main()
