"""Several schedulers in one process: each is a service of its own, as in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

from shared.messages.events import ServiceReport
from tests.integration.arena import Arena, eventually
from tests.integration.clickhouse_server import ROOT

PACKED = ("greedy", "eft", "round_robin")


async def reports(arena: Arena) -> dict[str, ServiceReport]:
    return {each.scheduler: each for each in await arena.bus.roll_call() if each.scheduler}


async def test_each_takes_part_under_its_own_name(arena: Arena) -> None:
    for name in ("recorder", "simulator", "generator"):
        await arena.start(name)
    process = arena.process("scheduler", policy=",".join(PACKED))
    found = await eventually(lambda: reports(arena), accept=lambda each: len(each) == len(PACKED))
    assert found.keys() == set(PACKED)
    assert {each.pid for each in found.values()} == {process.pid}
    assert len({each.http_port for each in found.values()}) == len(PACKED)
    assert all(each.healthy for each in found.values())

    run = await arena.run(schedulers=["greedy", "eft"], tasks=1000)
    await arena.completed(run)
    process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(process.wait, 60) == -signal.SIGTERM
    assert await reports(arena) == {}


async def test_killed_ones_continue_after_a_restart(arena: Arena) -> None:
    for name in ("recorder", "simulator", "generator"):
        await arena.start(name)
    first = arena.process("scheduler", policy="greedy,eft")
    await eventually(lambda: reports(arena), accept=lambda each: len(each) == 2)
    run = await arena.run(schedulers=["greedy", "eft"], tasks=400, pace=400)

    async def decided() -> bool:
        return await arena.count("RESULTS") > 4

    await eventually(decided)
    first.kill()
    arena.process("scheduler", policy="greedy,eft")
    await arena.completed(run)
    counts = arena.store.query(
        "SELECT scheduler, count() AS rows, uniqExact(task_id) AS tasks "
        "FROM scheduler_results FINAL WHERE run = {run:String} GROUP BY scheduler",
        {"run": run.run},
    )
    assert {row["scheduler"]: (row["rows"], row["tasks"]) for row in counts} == {
        "greedy": (400, 400),
        "eft": (400, 400),
    }


def test_one_that_cannot_be_loaded_ends_the_process_with_its_reason() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "services.scheduler"],
        cwd=ROOT,
        env={**os.environ, "HYBRID_POLICY": "greedy,missing.py"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 1
    assert "missing.py" in result.stderr
    assert "Traceback" not in result.stderr
