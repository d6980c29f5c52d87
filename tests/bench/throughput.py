"""`make bench`: what the arena does on this machine, as one JSON object on stdout.

throughput   a run at full pace with every built-in scheduler, results durable in ClickHouse;
             CPU time of each process per task says where the time goes
latency      at 100 and 1,000 tasks/s, all schedulers, learning: from tasks published to their
             results on the bus, by stage and by scheduler, from the first task of a run on and in
             a steady run; the slowest messages with what the machine did then
live         CPU of all processes at the pace of a run that is watched
memory       of each process after the runs
start        from `hybrid up` to healthy, and to the first stored result of every scheduler
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from shared.domain.schedulers import BUILT_IN
from tests.bench import report
from tests.bench.latency import WARM_UP_SECONDS, measure_latency
from tests.bench.processes import cpu_seconds, memory_in_use, running_arena
from tests.counting import once
from tests.e2e.arena import RULES, ArenaProcess

# The least that a run can have: what it takes to start and end one.
SHORT_RUN_TASKS = 20_000
LIVE_PACE = 20


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


if __name__ == "__main__":
    main()
