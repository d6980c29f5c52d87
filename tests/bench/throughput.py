"""`make bench`: what the arena does on this machine, as one JSON object on stdout.

throughput   a run at full pace with every built-in scheduler, results durable in ClickHouse;
             CPU time of each process per task says where the time goes
latency      at 100 tasks/s, all schedulers, learning: from tasks published to their results on
             the live feed
memory       of each process after the run
start        from `hybrid up` to healthy, and to the first stored result of every scheduler
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

import nats

from deploy.local.arena import find
from shared.domain.schedulers import BUILT_IN
from shared.messages import batches
from tests.bench import report
from tests.bench.processes import cpu_seconds, memory_in_use, running_arena
from tests.counting import once
from tests.e2e.arena import RULES, ArenaProcess

# Until modules are imported, caches filled and connections open.
WARM_UP_SECONDS = 10.0


def main() -> None:
    parser = report.parser("bench", __doc__ or "")
    parser.add_argument("--tasks", type=int, default=300_000, help="tasks of the throughput run")
    parser.add_argument("--seconds", type=float, default=20, help="how long latency is measured")
    given = parser.parse_args()
    measured = {"start": measure_start(), **measure_run(given.tasks, given.seconds)}
    report.publish("bench", measured, table(measured), write=given.write)


def table(found: dict[str, Any]) -> report.Table:
    rules, everybody = found["throughput"], found["throughput_learning"]
    latency, start = found["latency"], found["start"]
    parts: dict[str, float] = {}
    for name, spent in everybody["cpu_us_per_task"].items():
        part = "schedulers" if name.startswith("scheduler ") else name
        parts[part] = parts.get(part, 0.0) + spent
    largest = sorted(parts.items(), key=lambda part: -part[1])
    return [
        (f"{rules['tasks']:,} tasks at full pace", ""),
        ("the six rules", _rate(rules)),
        ("all eight schedulers, learning", _rate(everybody)),
        (
            "CPU time of a task, all eight",
            f"{sum(parts.values()):.0f} µs: " + ", ".join(f"{n} {us:.0f}" for n, us in largest),
        ),
        (
            "from task to result on the bus at 100 tasks/s, all eight, learning",
            f"p50 {latency['p50_ms']:.0f} ms, p95 {latency['p95_ms']:.0f} ms, "
            f"p99 {latency['p99_ms']:.0f} ms",
        ),
        ("from `hybrid up` to healthy", f"{start['healthy_s']:.1f} s"),
        (
            "to the first stored result, pre-training included",
            f"{start['first_stored_result_s']:.1f} s",
        ),
        ("memory of all processes after the runs", f"{found['memory']['total_mib']:,} MiB"),
    ]


def _rate(run: dict[str, Any]) -> str:
    return f"{run['tasks_per_s']:,} tasks/s, {run['decisions_per_s']:,} decisions/s"


def measure_start() -> dict[str, float]:
    report.progress("start: from `hybrid up` to the first result")
    began = time.monotonic()
    with running_arena() as arena:  # the default run, at the pace one can watch
        healthy = time.monotonic() - began
        arena.wait_for(arena.announced["run"], lambda status: status["tasks_processed"] > 0)
        first = time.monotonic() - began
    return {"healthy_s": round(healthy, 2), "first_stored_result_s": round(first, 2)}


def measure_run(tasks: int, seconds: float) -> dict[str, Any]:
    with running_arena("--idle") as arena:
        # First: ClickHouse merges for a while after a run at full pace.
        report.progress(f"latency: 100 tasks/s for {seconds:.0f} s")
        latency = asyncio.run(measure_latency(arena, seconds))
        report.progress("warm-up")
        arena.complete(arena.start_run(tasks=20_000, pace="max"))
        report.progress(f"throughput: {tasks:,} tasks at full pace")
        throughput = measure_throughput(arena, tasks, RULES)
        report.progress("the same with the learners, learning")
        learning = measure_throughput(arena, tasks, BUILT_IN)
        memory = memory_in_use(arena)
    return {
        "throughput": throughput,
        "throughput_learning": learning,
        "memory": memory,
        "latency": latency,
    }


def measure_throughput(
    arena: ArenaProcess, tasks: int, schedulers: tuple[str, ...]
) -> dict[str, Any]:
    """From the first task published to everything stored."""
    run = arena.start_run(tasks=tasks, pace="max", seed=1, schedulers=schedulers)
    # Learners are pre-trained before the first task.
    arena.wait_for(run, lambda status: status["tasks_sent"] > 0)
    before = cpu_seconds(arena)
    arena.complete(run, timeout=600)
    used = {name: spent - before[name] for name, spent in cpu_seconds(arena).items()}
    detail = arena.http.get(f"/api/runs/{run}").json()
    first = arena.sql(
        "SELECT toUnixTimestamp64Micro(min(published_at)) / 1e6 AS at "
        f"FROM tasks WHERE run = '{run}'"
    )[0]["at"]
    wall = detail["updated_at"] - first
    stored = arena.counted(run)
    assert stored == once(tasks, schedulers), stored
    return {
        "tasks": tasks,
        "schedulers": len(schedulers),
        "seconds": round(wall, 2),
        "tasks_per_s": round(tasks / wall),
        "decisions_per_s": round(tasks * len(schedulers) / wall),
        "results_stored": sum(row["results"] for row in stored),
        "cpu_us_per_task": {name: round(spent / tasks * 1e6, 2) for name, spent in used.items()},
        "cores_busy": round(sum(used.values()) / wall, 2),
    }


async def measure_latency(arena: ArenaProcess, seconds: float) -> dict[str, Any]:
    local = find(arena.folder)
    client = await nats.connect(
        f"nats://127.0.0.1:{local.ports.nats}", user="admin", password=local.secrets.nats["admin"]
    )
    run = arena.start_run(pace=100, seed=2, schedulers=BUILT_IN)
    arena.wait_for(run, lambda status: status["tasks_sent"] > 0)
    feed = await client.subscribe(f"results.{run}.*")
    delays: list[float] = []
    warm_at = time.time() + WARM_UP_SECONDS
    end_at = warm_at + seconds
    async for message in feed.messages:
        now = time.time()
        if now > end_at:
            break
        if now > warm_at:
            published_at = batches.decode(message.data, message.subject).envelope.published_at
            delays.append((now - published_at) * 1000)
    await client.close()
    arena.http.post("/api/simulation/stop", params={"run": run})
    ranked = statistics.quantiles(delays, n=100)
    return {
        "tasks_per_s": 100,
        "messages": len(delays),
        "p50_ms": round(ranked[49], 1),
        "p95_ms": round(ranked[94], 1),
        "p99_ms": round(ranked[98], 1),
        "max_ms": round(max(delays), 1),
    }


if __name__ == "__main__":
    main()
