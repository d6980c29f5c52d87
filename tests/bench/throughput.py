"""`make bench`: what the arena does on this machine, as one JSON object on stdout.

start        from `hybrid up` to healthy, and to the first stored result of every scheduler
latency      all schedulers, learning: from tasks published to their results on the bus, by stage
             and by scheduler, from the first task of a run on and in a steady run; the slowest
             messages with what the machine did then
live         CPU of all processes at the pace of a run that is watched
throughput   runs at full pace, results durable in ClickHouse; CPU time of each process per task
             says where the time goes
short run    from the request to the end of a run of 20,000 tasks, rules alone
memory       of each process after the runs, and of all when freed memory is returned
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared.domain.schedulers import BUILT_IN
from tests.bench import machine, report
from tests.bench.latency import WARM_UP_SECONDS, measure_latency
from tests.bench.processes import cpu_seconds, memory_in_use, processes, running_arena
from tests.counting import once
from tests.e2e.arena import ArenaProcess

# Those that look at the task alone and do not learn.
SIX_RULES = ("cpu_only", "gpu_only", "greedy", "oracle", "random", "round_robin")
# Those that look at the task alone, learners included: the built-in ones until version 0.1.
EIGHT = (*SIX_RULES, "hybrid_ml", "rl_agent")
SHORT_RUN_TASKS = 20_000
# Until freed memory is returned to the system.
SETTLE_SECONDS = 12.0
LIVE_PACE = 20.0
PROFILED = ("scheduler greedy", "simulator", "recorder")


def main() -> None:
    parser = report.parser("bench", __doc__ or "")
    parser.add_argument("--tasks", type=int, default=300_000, help="tasks of the throughput runs")
    parser.add_argument("--seconds", type=float, default=20, help="how long latency is measured")
    parser.add_argument(
        "--profile", type=Path, metavar="DIR", help="write flame graphs of the rules' run there"
    )
    given = parser.parse_args()
    measured = {
        "start": measure_start(),
        **measure_runs(given.tasks, given.seconds, given.profile),
    }
    report.publish("bench", measured, table(measured), write=given.write)
    if given.write:
        report.record(record(measured), {"machine": machine.describe()})


def table(found: dict[str, Any]) -> report.Table:
    rules, everybody, start = found["rules"], found["everybody"], found["start"]
    count = everybody["schedulers"]
    return [
        (f"{rules['tasks']:,} tasks at full pace", ""),
        ("the six rules that look at the task alone", _rate(rules)),
        ("their CPU time of a task", _parts(rules)),
        (f"all {count} built-in schedulers, learning", _rate(everybody)),
        ("their CPU time of a task", _parts(everybody)),
        *(
            (f"from task to result on the bus, {name.replace('_', ' ')}", _latency(each))
            for name, each in found["latency"].items()
        ),
        (
            f"a run of {SHORT_RUN_TASKS:,} tasks, the six rules, from the request to its end",
            f"{found['short_run_s']:.1f} s",
        ),
        (
            f"all {count} schedulers at {LIVE_PACE:.0f} tasks/s",
            f"{found['live_cores']:.2f} of a core",
        ),
        ("from `hybrid up` to healthy", f"{start['healthy_s']:.1f} s"),
        (
            "to the first stored result, pre-training included",
            f"{start['first_stored_result_s']:.1f} s",
        ),
        (
            f"memory of all processes after the runs, and {SETTLE_SECONDS:.0f} s later",
            f"{found['memory']['total_mib']:,} MiB, {found['memory']['settled_mib']:,} MiB",
        ),
    ]


def record(found: dict[str, Any]) -> dict[str, str]:
    """The figures that every release is measured by."""
    start, p99 = found["start"], {name: each["p99_ms"] for name, each in found["latency"].items()}
    return {
        "six rules, tasks/s": f"{found['rules']['tasks_per_s']:,}",
        "all schedulers, tasks/s": f"{found['everybody']['tasks_per_s']:,}",
        "p99 at 100 tasks/s, ms": f"{p99['100_tasks_per_s_steady']:.0f}",
        "from a run's start on": f"{p99['100_tasks_per_s_from_the_start']:.0f}",
        "at 1,000 tasks/s": f"{p99['1000_tasks_per_s_steady']:.0f}",
        "20,000 tasks, s": f"{found['short_run_s']:.1f}",
        "cores at 20 tasks/s": f"{found['live_cores']:.2f}",
        "healthy, s": f"{start['healthy_s']:.1f}",
        "first result, s": f"{start['first_stored_result_s']:.1f}",
        "memory, MiB": f"{found['memory']['total_mib']:,}",
    }


def _rate(run: dict[str, Any]) -> str:
    return f"{run['tasks_per_s']:,} tasks/s, {run['decisions_per_s']:,} decisions/s"


def _parts(run: dict[str, Any]) -> str:
    parts: dict[str, float] = {}
    for name, spent in run["cpu_us_per_task"].items():
        part = "schedulers" if name.startswith("scheduler ") else name
        parts[part] = parts.get(part, 0.0) + spent
    largest = sorted(parts.items(), key=lambda part: -part[1])
    listed = ", ".join(f"{name} {spent:.1f}" for name, spent in largest)
    return f"{sum(parts.values()):.0f} µs: {listed}"


def _latency(measured: dict[str, Any]) -> str:
    decided = measured["decided"]["p50_ms"]
    return (
        f"p50 {measured['p50_ms']:.0f} ms ({decided:.0f} until decided), "
        f"p95 {measured['p95_ms']:.0f} ms, p99 {measured['p99_ms']:.0f} ms"
    )


def measure_start() -> dict[str, float]:
    report.progress("start: from `hybrid up` to the first result")
    began = time.monotonic()
    with running_arena() as arena:  # the default run, at the pace one can watch
        healthy = time.monotonic() - began
        arena.wait_for(arena.announced["run"], lambda status: status["tasks_processed"] > 0)
        first = time.monotonic() - began
    return {"healthy_s": round(healthy, 2), "first_stored_result_s": round(first, 2)}


def measure_runs(tasks: int, seconds: float, profile: Path | None = None) -> dict[str, Any]:
    with running_arena("--idle") as arena:
        # First: ClickHouse merges for a while after a run at full pace.
        latency = {
            "100_tasks_per_s_from_the_start": _latency_of(arena, 100, seconds, 0.0),
            "100_tasks_per_s_steady": _latency_of(arena, 100, seconds, WARM_UP_SECONDS),
            "1000_tasks_per_s_steady": _latency_of(arena, 1000, seconds, WARM_UP_SECONDS),
            "100_tasks_per_s_steady_eight_schedulers": _latency_of(
                arena, 100, seconds, WARM_UP_SECONDS, EIGHT
            ),
        }
        live = measure_live(arena, seconds)
        report.progress("warm-up")
        arena.complete(arena.start_run(tasks=20_000, pace="max", schedulers=SIX_RULES))
        report.progress(f"throughput: {tasks:,} tasks at full pace")
        with flame_graphs(arena, profile):
            rules = measure_throughput(arena, tasks, SIX_RULES)
        short = measure_short_run(arena)
        report.progress("the same with all schedulers, learning")
        everybody = measure_throughput(arena, tasks, BUILT_IN)
        memory = memory_in_use(arena)
        time.sleep(SETTLE_SECONDS)
        memory["settled_mib"] = memory_in_use(arena)["total_mib"]
    return {
        "rules": rules,
        "everybody": everybody,
        "latency": latency,
        "short_run_s": short,
        "live_cores": live,
        "memory": memory,
    }


def _latency_of(
    arena: ArenaProcess,
    pace: float,
    seconds: float,
    warm_up: float,
    schedulers: Sequence[str] = BUILT_IN,
) -> dict[str, Any]:
    report.progress(
        f"latency: {pace:g} tasks/s, {len(schedulers)} schedulers, {warm_up + seconds:.0f} s"
    )
    return asyncio.run(measure_latency(arena, pace, schedulers, seconds, warm_up=warm_up))


def measure_live(arena: ArenaProcess, seconds: float) -> float:
    """Cores in use at the pace that one can watch, with all schedulers."""
    report.progress(f"live: {LIVE_PACE:g} tasks/s for {seconds:.0f} s")
    run = arena.start_run(pace=LIVE_PACE, seed=3, schedulers=BUILT_IN)
    arena.wait_for(run, lambda status: status["tasks_processed"] > 100)
    before, began = cpu_seconds(arena), time.monotonic()
    time.sleep(seconds)
    used = {name: spent - before[name] for name, spent in cpu_seconds(arena).items()}
    cores = sum(used.values()) / (time.monotonic() - began)
    arena.http.post("/api/simulation/stop", params={"run": run})
    return round(cores, 3)


def measure_short_run(arena: ArenaProcess) -> float:
    """What an experiment waits for."""
    began = time.monotonic()
    run = arena.start_run(tasks=SHORT_RUN_TASKS, pace="max", seed=4, schedulers=SIX_RULES)
    arena.complete(run)
    return round(time.monotonic() - began, 2)


def measure_throughput(
    arena: ArenaProcess, tasks: int, schedulers: tuple[str, ...]
) -> dict[str, Any]:
    """From the first task published to everything stored."""
    run = arena.start_run(
        tasks=tasks,
        pace="max",
        seed=1,
        schedulers=schedulers,
        # The aim is for live runs; in lockstep the stream waits for its models.
        learning={"sync": "free"},
    )
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


@contextmanager
def flame_graphs(arena: ArenaProcess, folder: Path | None) -> Iterator[None]:
    """CPU by function of some processes, while the block runs."""
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    spy = str(Path(sys.executable).parent / "py-spy")
    options = ("--nonblocking", "--rate", "200", "--duration", "600", "--output")
    recording = [
        subprocess.Popen(
            [
                spy,
                "record",
                *options,
                f"{folder}/{name.replace(' ', '-')}.svg",
                "--pid",
                str(each.pid),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name, each in processes(arena).items()
        if name in PROFILED
    ]
    try:
        yield
    finally:
        for each in recording:
            each.send_signal(signal.SIGINT)  # it writes what it has
            each.wait(60)


if __name__ == "__main__":
    main()
