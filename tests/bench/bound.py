"""`make bench-bound`: seconds for the bounds of a million tasks, beside a linear-programming solver
on as many as that takes in about the same time; one JSON object."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linprog

from shared.domain.cluster_bound import arrival_bound, cluster_bound
from shared.domain.physics import cpu_seconds, gpu_seconds
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.workload import Cursor, generate
from tests.bench import report

MANY, FEW = 1_000_000, 5_000


def main() -> None:
    given = report.parser("bench-bound", __doc__ or "").parse_args()
    spec = RunSpec.parse({"seed": 1})
    # The textbook's linear program knows no limit of GPU memory.
    roomy = RunSpec.parse({"seed": 1, "cluster": {"gpu_memory_mb": 1e9}})
    many, few = (generate(spec, Cursor(), count)[0] for count in (MANY, FEW))
    found: dict[str, Any] = {"tasks": MANY}
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
    report.publish("bench-bound", found, table(found), write=given.write)


def table(found: dict[str, Any]) -> report.Table:
    solver = found["solver"]
    return [
        (f"bound of {MANY:,} tasks", "seconds"),
        *(
            (f"what does not fit a GPU: {policy}", f"{found[f'cluster_bound_{policy}_s']:.2f}")
            for policy in ("cpu", "page", "fail")
        ),
        ("with arrival times", f"{found['arrival_bound_s']:.2f}"),
        (f"{FEW:,} tasks by a linear-programming solver", f"{solver['solver_s']:.2f}"),
        (f"{FEW:,} tasks by ours", f"{solver['ours_s']:.4f}"),
    ]


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
