"""A device's process: pinned, limited, and a failure is an answer."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from shared.errors import SpecError
from shared.execution.device_process import DeviceProcess, Work
from shared.execution.settings import DeviceSetting, Limits, settings_of

CORE = min(os.sched_getaffinity(0))
SMALL = Work("matmul", 1, 4, 0.5)
ENDLESS = Work("triad", 1e9, 0, 0)


@asynccontextmanager
async def device(
    setting: DeviceSetting | None = None,
    limits: Limits | None = None,
    commands: Mapping[str, Sequence[str]] | None = None,
) -> AsyncIterator[DeviceProcess]:
    process = DeviceProcess(
        setting or DeviceSetting(cores=(CORE,)), limits or Limits(seconds=30), commands
    )
    try:
        yield process
    finally:
        await process.stop()


async def until(condition: object) -> None:
    end = time.monotonic() + 20
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


async def test_a_device_runs_work_on_its_core_and_copies_the_memory() -> None:
    setting = DeviceSetting(cores=(CORE,), copy=True)
    async with device(setting, Limits(nice=7)) as process:
        before = time.monotonic()
        measured = await process.run(SMALL)
        after = time.monotonic()
        assert measured.failure is None
        assert before < measured.started < measured.ended < after
        assert 0 < measured.transfer_s < measured.ended - measured.started
        assert 0 < measured.dispatch_s < measured.ended - measured.started
        assert process.pid is not None
        child = psutil.Process(process.pid)
        assert child.cpu_affinity() == [CORE]
        assert child.nice() == max(7, os.nice(0))
    assert not running(child.pid)


async def test_a_device_without_copy_has_no_transfer() -> None:
    async with device() as process:
        measured = await process.run(Work("matmul", 1, 400, 0.5))
        assert measured.failure is None
        assert measured.transfer_s == 0


async def test_works_are_run_one_after_the_other() -> None:
    async with device() as process:
        first, second = await asyncio.gather(process.run(SMALL), process.run(SMALL))
    assert first.ended <= second.started


async def test_a_hanging_work_is_ended_and_the_next_one_runs() -> None:
    async with device(limits=Limits(seconds=0.5)) as process:
        await process.start()
        old = process.pid
        measured = await process.run(ENDLESS)
        assert measured.failure == "over its time limit of 0.5 s"
        assert 0.5 <= measured.ended - measured.started < 5
        assert old is not None
        assert not running(old)
        assert (await process.run(SMALL)).failure is None


async def test_a_work_over_the_memory_limit_fails_and_the_process_goes_on() -> None:
    async with device(limits=Limits(memory_mb=200)) as process:
        measured = await process.run(Work("matmul", 10_000, 0, 1))
        assert measured.failure == "out of memory"
        pid = process.pid
        assert (await process.run(SMALL)).failure is None
        assert process.pid == pid


async def test_a_killed_process_is_a_failure_and_is_started_again() -> None:
    async with device() as process:
        await process.start()
        task = asyncio.create_task(process.run(ENDLESS))
        await asyncio.sleep(0)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        measured = await task
        assert measured.failure == "the device's process was killed by signal 9 (SIGKILL)"
        assert (await process.run(SMALL)).failure is None


async def test_a_cancelled_work_leaves_no_answer_behind() -> None:
    async with device() as process:
        await process.start()
        task = asyncio.create_task(process.run(ENDLESS))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await process.run(SMALL)).failure is None


async def test_an_unknown_kernel_is_a_failure() -> None:
    async with device() as process:
        failure = (await process.run(Work("nap", 1, 0, 0))).failure
        assert failure == "no kernel 'nap'; there are matmul, triad, fft, sort, mix"


async def test_only_allowed_commands_run(tmp_path: Path) -> None:
    made = tmp_path / "made"
    commands = {
        "touch": ["sh", "-c", f"echo $HYBRID_TASK_SIZE > {made}"],
        "fail": ["sh", "-c", "echo no luck >&2; exit 3"],
    }
    async with device(commands=commands) as process:
        assert (await process.run(Work("command:touch", 7, 0, 0))).failure is None
        assert made.read_text() == "7\n"
        assert (await process.run(Work("command:fail", 7, 0, 0))).failure == (
            "exit status 3: no luck"
        )
        assert (await process.run(Work("command:rm", 7, 0, 0))).failure == (
            "no command 'rm' is allowed"
        )


async def test_a_command_past_its_limit_is_ended_too(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    commands = {"sleep": ["sh", "-c", f"echo $$ > {pid_file}; exec sleep 600"]}
    async with device(limits=Limits(seconds=1), commands=commands) as process:
        measured = await process.run(Work("command:sleep", 1, 0, 0))
        assert measured.failure == "over its time limit of 1 s"
        pid = int(pid_file.read_text())
        await until(lambda: not running(pid))


PARENT = """
import asyncio
from shared.execution.device_process import DeviceProcess, Work
from shared.execution.settings import DeviceSetting, Limits

async def main():
    commands = {"sleep": ["sh", "-c", "echo $$ > PID; exec sleep 600"]}
    device = DeviceProcess(DeviceSetting(cores=(CORE,)), Limits(), commands)
    await device.start()
    print(device.pid, flush=True)
    await device.run(Work("command:sleep", 1, 0, 0))

asyncio.run(main())
"""


async def test_nothing_outlives_a_killed_parent(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = PARENT.replace("PID", str(pid_file)).replace("CORE", str(CORE))
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=subprocess.PIPE
    )
    try:
        assert parent.stdout is not None
        child = int(await parent.stdout.readline())
        await until(lambda: pid_file.exists() and pid_file.read_text().strip())
        program = int(pid_file.read_text())
        assert running(child)
        assert running(program)
    finally:
        parent.kill()
        await parent.wait()
    await until(lambda: not running(child) and not running(program))


async def test_a_device_that_the_machine_lacks_is_a_clear_failure() -> None:
    async with device(DeviceSetting(cores=(4000,))) as process:
        failure = (await process.run(SMALL)).failure
        assert failure is not None
        assert failure.startswith("no core 4000 on this machine")
    async with device(DeviceSetting(cores=(CORE,), library="torch:nonsense")) as process:
        failure = (await process.run(SMALL)).failure
        assert failure is not None
        assert failure.startswith("the device cannot start: ")


def test_equal_devices_share_out_the_cores_of_their_type() -> None:
    settings = settings_of({"cores": [0, 1, 2, 3], "library": "torch:cuda"}, 2)
    assert [each.cores for each in settings] == [(0, 1), (2, 3)]
    assert [each.torch_device for each in settings] == ["cuda:0", "cuda:1"]
    with pytest.raises(SpecError, match=r"real\.cores: 3 cores cannot be shared equally"):
        settings_of({"cores": [0, 1, 2]}, 2)
    with pytest.raises(SpecError, match=r"real\.library: .*one of plain, blas"):
        settings_of({"library": "fast"})
    with pytest.raises(SpecError, match=r"real\.speed"):
        settings_of({"speed": 3})
