"""`make bench-policies`: what cluster policies cost and how they scale, as one JSON object.

- Microseconds of CPU that earliest finish takes for a task, by number of devices.
- Tasks per second of `eft` in the pipeline beside `greedy`.
- A policy that takes 0.5 ms a task to prepare, in one run, with one, two and three workers.
- How long a run stands still when a worker of `eft` is killed, alone and with a replica.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from services.scheduler.cluster_worker import ClusterCopy, place
from services.scheduler.policies.eft import EarliestFinish
from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor, generate
from shared.messages import batches
from shared.messages.batches import Batch, Envelope
from tests.bench import report
from tests.e2e.arena import ArenaProcess

WORKERS = (1, 2, 3)
TASK_SECONDS = 0.0005
SLOW = f"""
import time
from services.scheduler.policy import ClusterPolicy


class SlowPrepare(ClusterPolicy):
    '''Earliest finish that takes its time to prepare.'''

    name = "slow_prepare"

    def prepare(self, tasks, spec):
        time.sleep({TASK_SECONDS} * len(tasks))

    def decide(self, tasks, cluster, spec):
        for task in cluster.arrivals():
            cluster.place(cluster.finish().argmin())
        return cluster.decisions()
"""


def devices(count: int) -> dict[str, Any]:
    kinds = [
        {"type": "gpu", "count": count * 4 // 5},
        {"type": "cpu", "count": count - count * 4 // 5},
    ]
    return {"cluster": {"devices": kinds}, "workload": {"arrival_rate": 3.2 * count}}


def cost_of_a_task(data: dict[str, Any], repeats: int = 20) -> float:
    """Microseconds of CPU of the fastest of several tries: others share the machine."""
    spec = RunSpec.parse(data)
    tasks, _ = generate(spec, Cursor(), 2000)
    batch = Batch(Envelope("tasks", "run", 0, 0.0), batches.task_rows(tasks))
    copy, policy = ClusterCopy.new(spec), EarliestFinish()
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        place(batch, policy, copy, spec, None)
        best = min(best, time.process_time() - began)
    return best / len(tasks) * 1e6


def throughput(arena: ArenaProcess, scheduler: str, tasks: int) -> float:
    """From the first results on: before them the simulator learns of a new scheduler."""
    run = arena.start_run(tasks=tasks, pace="max", schedulers=[scheduler])
    first = arena.wait_for(run, lambda status: status["tasks_processed"] > 0)["tasks_processed"]
    began = time.monotonic()
    arena.wait_for(run, lambda status: status["tasks_processed"] == tasks)
    return (tasks - first) / (time.monotonic() - began)


def longest_pause(arena: ArenaProcess, scheduler: str) -> float:
    """Seconds without a new result when a worker is killed in a steady run."""
    run = arena.start_run(pace=500, schedulers=[scheduler])
    arena.wait_for(run, lambda status: status["tasks_processed"] > 1000)
    arena.kill_worker(scheduler)
    began = changed = time.monotonic()
    longest, seen = 0.0, -1
    while time.monotonic() - began < 15:
        done = arena.status(run)["tasks_processed"]
        now = time.monotonic()
        if done != seen:
            longest, seen, changed = max(longest, now - changed), done, now
        time.sleep(0.02)
    arena.http.post("/api/simulation/stop", params={"run": run}).raise_for_status()
    return longest


def measure(folder: Path, tasks: int) -> dict[str, Any]:
    view = {count: cost_of_a_task(devices(count)) for count in (5, 100, 1000)}
    noisy = cost_of_a_task(devices(5) | {"physics": {"noise": 0.3}})
    policy = folder / "slow_prepare.py"
    policy.write_text(SLOW)
    found: dict[str, Any] = {"microseconds_by_devices": view, "microseconds_with_noise": noisy}
    rates, pauses = {}, {}
    for workers in WORKERS:
        report.progress(f"{workers} workers")
        options = ("--idle", "--add", str(policy))
        scale = ("--scale", f"slow_prepare={workers}", "--scale", f"eft={workers}")
        arena = ArenaProcess(folder / f"arena-{workers}", *options, *scale)
        try:
            if workers == 1:
                pairs = [
                    (throughput(arena, "greedy", tasks), throughput(arena, "eft", tasks))
                    for _ in range(3)
                ]
                found["tasks_per_s"] = dict(zip(("greedy", "eft"), map(max, *pairs), strict=True))
            rates[workers] = throughput(arena, "slow_prepare", 40_000)
            pauses[workers] = longest_pause(arena, "eft")
        finally:
            arena.stop()
    return {**found, "slow_prepare_tasks_per_s": rates, "pause_seconds": pauses}


def table(found: dict[str, Any]) -> report.Table:
    rates = found["tasks_per_s"]
    return [
        ("", ""),
        *(
            (f"`eft` on {count:,} devices, batch and decisions included", f"{cost:.1f} µs a task")
            for count, cost in found["microseconds_by_devices"].items()
        ),
        ("the same on 5 devices with noise", f"{found['microseconds_with_noise']:.1f} µs a task"),
        ("`greedy` alone in the pipeline", f"{rates['greedy']:,.0f} tasks/s"),
        ("`eft` alone in the pipeline", f"{rates['eft']:,.0f} tasks/s"),
        *(
            (f"{TASK_SECONDS * 1e3:g} ms a task to prepare, {n} workers", f"{rate:,.0f} tasks/s")
            for n, rate in found["slow_prepare_tasks_per_s"].items()
        ),
        *(
            (f"one of {n} workers of `eft` is killed", f"{pause:.1f} s without a result")
            for n, pause in found["pause_seconds"].items()
        ),
    ]


def main() -> None:
    parser = report.parser("bench-policies", __doc__ or "")
    parser.add_argument("--tasks", type=int, default=200_000, help="of a run of greedy and of eft")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        measured = measure(Path(folder), given.tasks)
    report.publish("bench-policies", measured, table(measured), write=given.write)


if __name__ == "__main__":
    main()
