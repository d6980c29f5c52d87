"""`make bench-advice`: the three cases of docs/advice.md on seeds that the advice has not used.

Every built-in scheduler takes part in every run, in lockstep, so that who was recommended can be
compared with all others; one JSON object.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deploy.local.arena import find
from services.cli.client import connect
from services.cli.platforms.option import merge_platform
from services.cli.settings import settings_of
from services.lab.advice.jobs import BASE_CASE, GeneratedJobs, TraceJobs
from services.lab.advice.samples import Samples
from services.lab.advice.verdict import Compared, judge
from services.lab.experiments.run_completion import wait_until_complete
from shared.domain.schedulers import BUILT_IN
from shared.store.client import Store
from tests.bench import report
from tests.bench.processes import running_arena
from tests.e2e.arena import ArenaProcess

TRACE = Path("docs/traces/tasks.csv")
# The advice begins with seed 1.
SEEDS = tuple(range(1001, 1007))

HPC = {"workload": {"preset": "hpc"}}
NOISY = {"objective": {"turnaround": 1}, "physics": {"noise": 0.5}}


def cases() -> dict[str, GeneratedJobs | TraceJobs]:
    both = {"turnaround": 1, "cost": 0.2}
    return {
        "busy mixed node": GeneratedJobs({"objective": both, **HPC}, 600, 0.85),
        "idle node": GeneratedJobs({"objective": {"turnaround": 1}, **HPC}, 400, 0.05),
        "few noisy jobs": TraceJobs(merge_platform("workstation", NOISY), TRACE, None),
    }


def main() -> None:
    given = report.parser("bench-advice", __doc__ or "").parse_args()
    with running_arena("--idle") as arena:
        found = {name: measure(arena, name, jobs) for name, jobs in cases().items()}
    report.publish(
        "bench-advice", {"seeds": SEEDS, "cases": found}, table(found), write=given.write
    )


def measure(arena: ArenaProcess, name: str, jobs: GeneratedJobs | TraceJobs) -> dict[str, Any]:
    local = find(arena.folder)
    assert local is not None
    gateway, store = connect(None, arena.folder), Store(settings_of(local))
    by_seed = jobs.stretch == jobs.tasks
    samples = Samples(jobs.spec(BASE_CASE, SEEDS[0], ()), by_unit=by_seed)
    began = time.monotonic()
    for seed in SEEDS:
        report.progress(f"{name}: seed {seed}")
        spec = jobs.spec(BASE_CASE, seed, BUILT_IN)
        run = gateway.post("/api/runs", spec.model_dump(mode="json"))["run"]
        jobs.send(gateway, run, BASE_CASE, lambda *_: None)
        record = wait_until_complete(gateway, run, lambda *_: None, time.sleep)
        samples.add(store, record, seed, jobs.stretch)
    values = {each: samples.of(each, "objective") for each in samples.competitors}
    verdict = judge(values, 1)
    return {
        "seconds": round(time.monotonic() - began, 1),
        "confidence": verdict.confidence,
        "best": verdict.best,
        "compared": {each.scheduler: _compared(each) for each in verdict.compared},
    }


def _compared(each: Compared) -> dict[str, Any]:
    ratio = each.ratio
    interval = {} if ratio is None else {"ratio": ratio.mean, "low": ratio.low, "high": ratio.high}
    return {"standing": each.standing, **interval}


def table(found: Mapping[str, Any]) -> report.Table:
    rows = []
    for name, case in found.items():
        others = {key: each for key, each in case["compared"].items() if "ratio" in each}
        alike = [key for key, each in others.items() if each["standing"] != "worse"]
        worse = [key for key in others if key not in alike][:1]
        rows.append(
            (
                name,
                f"`{case['best']}`",
                *(
                    ", ".join(f"`{key}` {_interval(others[key])}" for key in group) or "nobody"
                    for group in (alike, worse)
                ),
            )
        )
    return [("case", "best", "not shown to be worse", "next"), *rows]


def _interval(each: Mapping[str, float]) -> str:
    return f"{each['ratio']:.3f} [{each['low']:.3f}, {each['high']:.3f}]"


if __name__ == "__main__":
    main()
