"""`make bench-bound`: seconds and certificates of the bounds of a million tasks on two and on four
device types, beside a linear-programming solver on as many as that takes in about the same time;
one JSON object."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from shared.domain.bounds.cluster_bound import Bound, arrival_bound, cluster_bound
from shared.domain.bounds.relaxation import Work, relax
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats
from shared.domain.times import real_seconds
from shared.domain.workload import Cursor, generate
from tests.bench import report

MANY, FEW = 1_000_000, 5_000
POLICIES = ("cpu", "page", "fail")
# Tasks per second of simulated time: the cluster is far from busy, or never catches up.
RATES = {"idle": 4, "overloaded": 4000}
CLUSTERS: dict[str, dict[str, Any]] = {
    "two types": {},
    "four types": {
        "devices": [
            {"type": "cpu", "count": 16},
            {"type": "a100", "count": 4, "speed": 6, "memory_mb": 40_000, "bandwidth_mb_s": 25_000},
            {"type": "v100", "count": 8, "speed": 3, "memory_mb": 16_000},
            {"type": "t4", "count": 16, "speed": 1.5, "memory_mb": 8_000},
        ]
    },
}


def main() -> None:
    given = report.parser("bench-bound", __doc__ or "").parse_args()
    found: dict[str, Any] = {"tasks": MANY}
    for name, cluster in CLUSTERS.items():
        report.progress(name)
        found[name] = {
            **{policy: measured(cluster_bound, cluster, policy) for policy in POLICIES},
            **{rate: measured(arrival_bound, cluster, "cpu", rate) for rate in RATES},
        }
    found["solver"] = beside_the_solver()
    report.publish("bench-bound", found, table(found), write=given.write)


def measured(bound_of: Any, cluster: dict[str, Any], policy: str, rate: str = "idle") -> Any:
    spec = RunSpec.parse(
        {
            "seed": 1,
            "cluster": cluster,
            "physics": {"memory_policy": policy},
            "workload": {"arrival_rate": RATES[rate]},
        }
    )
    tasks, _ = generate(spec, Cursor(), MANY)
    began = time.perf_counter()
    bound: Bound = bound_of(tasks, spec)
    seconds = time.perf_counter() - began
    return {
        "seconds": round(seconds, 3),
        "value": bound.value,
        "upper": bound.upper,
        "gap": bound.gap,
        "method": bound.method,
    }


def beside_the_solver() -> dict[str, Any]:
    """Ours without HiGHS, and the textbook's linear program, which knows no limit of memory."""
    devices = [{**each, "memory_mb": 1e9} for each in CLUSTERS["four types"]["devices"]]
    spec = RunSpec.parse({"seed": 1, "cluster": {"devices": devices}})
    tasks, _ = generate(spec, Cursor(), FEW)
    work = real_seconds(tasks, spec) / spec.platform.counts
    none = np.zeros((0, work.shape[1]))
    began = time.perf_counter()
    solved = solver(work)
    middle = time.perf_counter()
    ours = relax(Work(work, np.zeros(0, np.int64), none, none), most_solved=0)
    ended = time.perf_counter()
    return {
        "tasks": FEW,
        "solver_s": round(middle - began, 4),
        "ours_s": round(ended - middle, 4),
        "relative_difference": abs(solved - ours.lower) / solved,
    }


def solver(work: Floats) -> float:
    """least C with sum of y work <= C on each type and sum of y = 1 for each task."""
    tasks, types = work.shape
    shares = np.arange(work.size)
    loads = csr_array(
        (
            np.append(work.ravel(), -np.ones(types)),
            (np.append(shares % types, range(types)), np.append(shares, [work.size] * types)),
        )
    )
    whole = csr_array((np.ones(work.size), (shares // types, shares)), (tasks, work.size + 1))
    goal = np.append(np.zeros(work.size), 1.0)
    return float(linprog(goal, loads, np.zeros(types), whole, np.ones(tasks)).fun)


def table(found: dict[str, Any]) -> report.Table:
    solver = found["solver"]
    rows = [(f"bound of {MANY:,} tasks", "method", "seconds", "left open, relative")]
    for name in CLUSTERS:
        labels = {
            **{policy: f"what does not fit: {policy}" for policy in POLICIES},
            **{rate: f"with arrival times, {rate}" for rate in RATES},
        }
        for key, label in labels.items():
            each = found[name][key]
            figures = (each["method"] or "one task", f"{each['seconds']:.2f}", f"{each['gap']:.1g}")
            rows.append((f"{name}; {label}", *figures))
    few = f"four types; {FEW:,} tasks"
    difference = f"{solver['relative_difference']:.1g} from the solver's"
    return [
        *rows,
        (few, "linear program", f"{solver['solver_s']:.2f}", ""),
        (few, "dual", f"{solver['ours_s']:.2f}", difference),
    ]


if __name__ == "__main__":
    main()
