"""`make bench-containers`: the arena under docker-compose, as one JSON object on stdout.

Seconds from `up` to the first stored result, and what a scheduler that is slow on purpose manages
with one, two and four workers.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench import report
from tests.containers.cluster import SLOW, Cluster, build_image
from tests.containers.slow import TASK_SECONDS

WORKERS = (1, 2, 4)
PACE = 10_000  # more than the most workers manage


def main() -> None:
    parser = report.parser("bench-containers", __doc__ or "")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    given = parser.parse_args()
    report.progress("building the image")
    build_image()
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        cluster = Cluster(Path(folder), SLOW)
        report.progress("up")
        try:
            measured = measure(cluster, given.seconds)
        finally:
            cluster.stop()
    report.publish("bench-containers", measured, table(measured), write=given.write)


def table(found: dict[str, Any]) -> report.Table:
    up, slow = found["up"], found["slow_policy"]
    return [
        ("", ""),
        ("from `docker compose up` to healthy", f"{up['healthy_seconds']:.0f} s"),
        ("to the first stored result", f"{up['first_result_seconds']:.0f} s"),
        *(
            (
                f"a scheduler that takes {slow['seconds_a_task'] * 1e3:g} ms a task: "
                f"{n} worker{'s' * (n > 1)}",
                f"{rate:,.0f} tasks/s",
            )
            for n, rate in slow["tasks_per_s_by_workers"].items()
        ),
    ]


def measure(cluster: Cluster, seconds: float) -> dict[str, Any]:
    began = time.monotonic()
    cluster.start()
    started = time.monotonic() - began
    cluster.wait_until_healthy()
    healthy = time.monotonic() - began
    run = cluster.start_run(tasks=1, schedulers=["greedy"])
    cluster.wait_for(run, lambda status: status["tasks_processed"] == 1)
    first = time.monotonic() - began
    return {
        "up": {
            "command_seconds": round(started, 1),
            "healthy_seconds": round(healthy, 1),
            "first_result_seconds": round(first, 1),
            "containers": len(cluster.containers()),
        },
        "slow_policy": {
            "seconds_a_task": TASK_SECONDS,
            "tasks_per_s_by_workers": {n: throughput(cluster, n, seconds) for n in WORKERS},
        },
    }


def throughput(cluster: Cluster, workers: int, seconds: float) -> float:
    """Results stored per second, measured from the first stored result on."""
    report.progress(f"{workers} workers")
    cluster.scale("scheduler-slow", workers)
    run = cluster.start_run(pace=PACE, schedulers=["slow"])
    cluster.wait_for(run, lambda status: status["tasks_processed"] > 0)
    before, began = int(cluster.status(run)["tasks_processed"]), time.monotonic()
    time.sleep(seconds)
    gained = int(cluster.status(run)["tasks_processed"]) - before
    rate = gained / (time.monotonic() - began)
    cluster.http.post("/api/simulation/stop", params={"run": run}).raise_for_status()
    return round(rate, 1)


if __name__ == "__main__":
    main()
