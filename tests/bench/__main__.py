"""`make bench`: what the arena does on this machine, as one JSON object on stdout.

throughput   a run at full pace with every built-in scheduler, results durable in ClickHouse;
             CPU time of each process per task says where the time goes
latency      at 100 tasks/s, all schedulers, learning: from tasks published to their results on
             the live feed
memory       of each process after the run
start        from `hybrid up` to healthy, and to the first stored result of every scheduler
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nats
import psutil

from deploy.local.arena import find
from shared import batches
from tests.bench import machine
from tests.counting import once
from tests.e2e.arena import RULES, ArenaProcess

EVERYBODY = (*RULES, "hybrid_ml", "rl_agent")
# Until imports, caches and connections are what they will be.
WARM_UP_SECONDS = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=300_000, help="tasks of the throughput run")
    parser.add_argument("--seconds", type=float, default=20, help="how long latency is measured")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        measured = {
            "machine": machine.describe(),
            "start": measure_start(Path(folder) / "start"),
            **measure_run(Path(folder) / "run", given.tasks, given.seconds),
        }
    json.dump(measured, sys.stdout, indent=2)
    print()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure_start(folder: Path) -> dict[str, float]:
    say("start: from `hybrid up` to the first result")
    began = time.monotonic()
    arena = ArenaProcess(folder)  # the default run, at the pace one can watch
    healthy = time.monotonic() - began
    arena.wait_for(arena.announced["run"], lambda status: status["tasks_processed"] > 0)
    first = time.monotonic() - began
    arena.stop()
    return {"healthy_s": round(healthy, 2), "first_stored_result_s": round(first, 2)}


def measure_run(folder: Path, tasks: int, seconds: float) -> dict[str, Any]:
    arena = ArenaProcess(folder, "--idle")
    try:
        # First: ClickHouse merges for a while after a run at full pace.
        say(f"latency: 100 tasks/s for {seconds:.0f} s")
        latency = asyncio.run(measure_latency(arena, seconds))
        say("warm-up")
        arena.complete(arena.start_run(tasks=20_000, pace="max"))
        say(f"throughput: {tasks:,} tasks at full pace")
        throughput = measure_throughput(arena, tasks, RULES)
        say("the same with the learners, learning")
        learning = measure_throughput(arena, tasks, EVERYBODY)
        memory = measure_memory(arena)
    finally:
        arena.stop()
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


def processes(arena: ArenaProcess) -> dict[str, psutil.Process]:
    """The arena's processes by name, the supervisor aside."""
    named = {}
    for child in arena.processes(""):
        command = child.cmdline()
        name = Path(command[-1]).name.removeprefix("services.")
        if "deploy.local.clickhouse" in command:
            name = "clickhouse"
        elif "nats-server" in command[0]:
            name = Path(command[-1]).stem
        elif name == "scheduler":
            name = f"scheduler {child.environ()['HYBRID_POLICY']}"
        named[name] = child
    return named


def cpu_seconds(arena: ArenaProcess) -> dict[str, float]:
    spent = {}
    for name, process in processes(arena).items():
        times = process.cpu_times()
        spent[name] = times.user + times.system
    return spent


def measure_memory(arena: ArenaProcess) -> dict[str, Any]:
    """PSS shares out what processes have in common, so it may be added up."""
    used = {
        name: round(process.memory_full_info().pss / 2**20)
        for name, process in processes(arena).items()
    }
    return {"pss_mib": used, "total_mib": sum(used.values())}


async def measure_latency(arena: ArenaProcess, seconds: float) -> dict[str, Any]:
    local = find(arena.folder)
    assert local is not None
    client = await nats.connect(
        f"nats://127.0.0.1:{local.ports.nats}", user="admin", password=local.secrets.nats["admin"]
    )
    run = arena.start_run(pace=100, seed=2, schedulers=EVERYBODY)
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
