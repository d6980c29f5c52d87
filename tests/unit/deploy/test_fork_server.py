"""Services as forks of one process that has imported what they share."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from deploy.local.launchers import Fork, ForkedProcess, ForkServer
from deploy.local.processes import Child
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="services are forks on Linux only")

WAITS = """
import os, signal, sys, threading
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print(os.environ["GREETING"], len(threading.enumerate()), "shared.bus.service" in sys.modules)
sys.stdout.flush()
signal.sigwait({signal.SIGTERM})
sys.exit(7)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that the fork server can import."""
    (tmp_path / "waits_for_a_signal.py").write_text(WAITS)
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", paths)
    return "waits_for_a_signal"


@pytest.fixture
async def server(tmp_path: Path, module: str) -> AsyncIterator[ForkServer]:
    server = ForkServer({"OPENBLAS_NUM_THREADS": "1"}, tmp_path / "server.log")
    yield server
    await server.stop()


async def eventually(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(until, condition, every=0.01)


async def forked(child: Child) -> ForkedProcess:
    """Its process, once it has greeted."""
    await eventually(lambda: child.pid is not None and "hello" in child.log_tail())
    assert isinstance(child.process, ForkedProcess)
    return child.process


def a_child(server: ForkServer, module: str, folder: Path) -> Child:
    launcher = Fork(server, module, "a title of its own")
    return Child("waiter", launcher, {"GREETING": "hello"}, folder / "waiter.log")


async def test_a_fork_has_its_environment_title_and_log_and_the_imports(
    server: ForkServer, module: str, tmp_path: Path
) -> None:
    child = a_child(server, module, tmp_path)
    await child.start()
    process = await forked(child)
    assert child.log_tail() == "hello 1 True"
    seen = psutil.Process(process.pid)
    assert seen.cmdline()[0] == "a title of its own"
    assert seen.num_threads() == 1
    assert os.getsid(process.pid) == process.pid
    await child.stop()
    assert process.returncode == 7
    assert not psutil.pid_exists(process.pid)


async def test_a_fork_that_is_killed_is_started_again(
    server: ForkServer, module: str, tmp_path: Path
) -> None:
    child = a_child(server, module, tmp_path)
    await child.start()
    first = await forked(child)
    os.kill(first.pid, signal.SIGKILL)
    assert await first.wait() == -signal.SIGKILL
    await eventually(lambda: child.pid not in (None, first.pid))
    assert child.restarts == 1
    await child.stop()


async def test_forks_end_with_their_server_and_are_started_by_a_new_one(
    server: ForkServer, module: str, tmp_path: Path
) -> None:
    child = a_child(server, module, tmp_path)
    await child.start()
    first = await forked(child)
    parent = psutil.Process(first.pid).parent()
    assert parent is not None
    parent.kill()
    await eventually(lambda: not psutil.pid_exists(first.pid))
    await eventually(lambda: child.pid not in (None, first.pid))
    assert child.restarts == 1
    await child.stop()


async def test_a_module_that_fails_leaves_its_traceback_in_the_log(
    server: ForkServer, tmp_path: Path
) -> None:
    process = await Fork(server, "no_such_module", "title").launch({}, tmp_path / "log")
    assert await process.wait() == 1
    assert "no_such_module" in (tmp_path / "log").read_text()
