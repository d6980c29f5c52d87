"""Faults of real runs, with real device processes: each ends in a result that says what happened,
and leaves no process behind."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from services.executor import lease
from services.executor.jobs import RAN_AGAIN
from shared.bus.task_stream import Position
from shared.domain.tasks import Tasks
from shared.domain.workload import Cursor
from shared.messages.runs import RunRecord
from tests.integration.arena import Arena, eventually
from tests.integration.real_runs import results

PYTHON = sys.executable
COMMANDS = {
    "crash": [PYTHON, "-c", "import os; os.kill(os.getpid(), 11)"],
    "exit": [PYTHON, "-c", "raise SystemExit(3)"],
    "hang": ["sleep", "1000"],
    "nap": ["sleep", "0.4"],
}
SPEC: dict[str, Any] = {
    "schedulers": ["cpu_only"],
    "execution": {"mode": "real", "task_seconds": 5, "task_memory_mb": 300},
    "cluster": {
        "devices": [
            {"type": "cpu", "watts": 10, "real": {"cores": [0], "library": "blas"}},
        ]
    },
    "workload": {"source": "submitted"},
    "learning": {"pretrain_tasks": 0},
}


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    file = tmp_path / "commands.json"
    file.write_text(json.dumps(COMMANDS))
    return file


async def submit(arena: Arena, run: RunRecord, kinds: Sequence[str], size: float = 1.0) -> None:
    """Tasks of these kinds, all at once, in one batch each."""
    position = Position()
    for number, kind in enumerate(kinds):
        tasks = Tasks(
            np.array([number]), np.array([size if kind != "matmul" else 20_000.0]),
            np.array([0.5]), np.array([1.0]), np.array([0.0]), kind=[kind],
        )  # fmt: skip
        cursor = Cursor(0, number + 1, 0.0, ended=number + 1 == len(kinds))
        batch = position.next_message(run.run, tasks, cursor)
        sequence = await arena.bus.publish_batch(batch, after=position.sequence)
        position = position.after(batch, cursor, sequence)


async def start(arena: Arena) -> None:
    await arena.start("generator")
    await arena.start("recorder")
    await arena.schedulers("cpu_only")


def device_processes(parent: int | None = None) -> list[psutil.Process]:
    """The processes of this test's own executors, with what they have started."""
    try:
        children = psutil.Process(parent).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [each for each in children if "shared.execution.child" in " ".join(each.cmdline())]


async def test_each_fault_of_a_task_is_a_failed_result_with_its_reason(
    arena: Arena, commands: Path
) -> None:
    await start(arena)
    await arena.start("executor", commands=commands)
    run = await arena.run(**SPEC)
    expected = {
        "mix": ("ok", ""),
        "command:crash": ("failed", "signal 11"),
        "command:exit": ("failed", "exit status 3"),
        "command:hang": ("failed", "over its time limit of 5 s"),
        "matmul": ("failed", "memory"),
        "command:rm": ("failed", "no command 'rm' is allowed"),
        "virus": ("failed", "no kernel 'virus'"),
        "sort": ("ok", ""),
        "command:nap": ("ok", ""),
    }
    await submit(arena, run, list(expected))
    await arena.completed(run)
    rows = results(arena, run, "cpu_only")
    assert [row["kind"] for row in rows] == list(expected)
    for row, (status, reason) in zip(rows, expected.values(), strict=True):
        assert (row["status"], row["attempt"]) == (status, 1), row["kind"]
        assert reason in row["reason"] if reason else row["reason"] == ""
    hanging = rows[3]
    assert hanging["time"] == pytest.approx(5, abs=2)
    await eventually(lambda: not device_processes(), "no device process is left")


async def test_a_killed_device_process_is_a_failed_result_and_the_next_task_runs(
    arena: Arena, commands: Path
) -> None:
    await start(arena)
    await arena.start("executor", commands=commands)
    run = await arena.run(**SPEC)
    await submit(arena, run, ["command:hang", "mix"])

    def running() -> list[psutil.Process]:
        return [each for each in device_processes() if each.children()]

    (device,) = await eventually(running, "the command has begun")
    (command,) = device.children()
    device.kill()
    await arena.completed(run)
    killed, after = results(arena, run, "cpu_only")
    assert killed["status"] == "failed"
    assert "signal 9" in killed["reason"]
    assert (after["status"], after["reason"]) == ("ok", "")
    await eventually(lambda: not command.is_running() or command.status() == "zombie")


async def test_an_executor_that_is_killed_loses_and_doubles_nothing(
    arena: Arena, commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start(arena)
    first = arena.process("executor", commands=commands)
    run = await arena.run(**SPEC)
    await submit(arena, run, ["command:nap"] * 12)
    await eventually(lambda: len(results(arena, run, "cpu_only")) >= 3, "some tasks are done")
    devices = await eventually(lambda: device_processes(first.pid))
    begun = [child for device in devices for child in device.children()]
    before = results(arena, run, "cpu_only")
    first.kill()
    first.wait()
    for process in (*devices, *begun):
        await eventually(lambda p=process: not p.is_running() or p.status() == "zombie", "it ends")
    killed_at = time.monotonic()
    arena.process("executor", commands=commands)
    await arena.completed(run)
    assert time.monotonic() - killed_at > lease.LEASE_SECONDS / 2
    rows = results(arena, run, "cpu_only")
    assert [row["task_id"] for row in rows] == list(range(12))
    assert {row["status"] for row in rows} == {"ok"}
    again = [row["task_id"] for row in rows if row["attempt"] > 1]
    assert all(rows[task]["reason"] == RAN_AGAIN for task in again)
    assert again, "the task that was under way is marked"
    assert min(again) >= len(before) - 1
    assert rows[: len(before)] == before
