"""Two ways to start a process: as a program of its own, or as a fork of the fork server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from deploy.local.fork_server import die_with_parent

# What a process that ended with its fork server is reported to have exited with.
UNKNOWN_CODE = -1


class Process(Protocol):
    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    async def wait(self) -> int: ...
    def send_signal(self, number: int, /) -> None: ...


class Launcher(Protocol):
    async def launch(self, environment: Mapping[str, str], log_file: Path) -> Process: ...


class Program:
    """Any program, with a process group of its own: Ctrl-C goes to the supervisor alone."""

    def __init__(self, *command: str, pass_fds: Sequence[int] = ()) -> None:
        self._command, self._pass_fds = command, pass_fds

    async def launch(self, environment: Mapping[str, str], log_file: Path) -> Process:
        with log_file.open("ab") as output:
            return await asyncio.create_subprocess_exec(
                *self._command,
                env={**os.environ, **environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_parent if sys.platform == "linux" else None,
                pass_fds=self._pass_fds,
            )


class Fork:
    """A module that is run by a fork of the fork server."""

    def __init__(self, server: ForkServer, module: str, title: str) -> None:
        self._server, self._module, self._title = server, module, title

    async def launch(self, environment: Mapping[str, str], log_file: Path) -> Process:
        request = {
            "module": self._module,
            "title": self._title,
            "environment": {**os.environ, **environment},
            "log_file": str(log_file),
        }
        return await self._server.fork(request)


class ForkedProcess:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = asyncio.Event()

    def end(self, code: int) -> None:
        if self.returncode is None:
            self.returncode = code
            self._ended.set()

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class ForkServer:
    """Started when it is first needed, and again if it has died: its forks have died with it."""

    def __init__(self, environment: Mapping[str, str], log_file: Path) -> None:
        self._environment, self._log_file = environment, log_file
        self._process: Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._requested: dict[int, asyncio.Future[ForkedProcess]] = {}
        self._running: dict[int, ForkedProcess] = {}
        self._requests = 0

    async def fork(self, request: dict[str, Any]) -> Process:
        async with self._starting:
            if self._writer is None:
                await self._start()
        assert self._writer is not None
        self._requests += 1
        forked: asyncio.Future[ForkedProcess] = asyncio.get_running_loop().create_future()
        self._requested[self._requests] = forked
        self._writer.write(json.dumps({"request": self._requests, **request}).encode() + b"\n")
        return await forked

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            descriptor = theirs.fileno()
            command = (sys.executable, "-m", "deploy.local.fork_server", str(descriptor))
            program = Program(*command, pass_fds=[descriptor])
            self._process = await program.launch(self._environment, self._log_file)
        reader, self._writer = await asyncio.open_connection(sock=ours)
        self._reading = asyncio.create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                self._take(json.loads(line))
        await self._lost()

    def _take(self, message: dict[str, Any]) -> None:
        pid = message["pid"]
        if "request" in message:
            process = self._running[pid] = ForkedProcess(pid)
            self._requested.pop(message["request"]).set_result(process)
        else:
            self._running.pop(pid).end(message["code"])

    async def _lost(self) -> None:
        """It has ended: its forks get a signal from the kernel, and what was asked for is not
        started."""
        assert self._writer is not None
        writer, self._writer = self._writer, None
        writer.close()
        for forked in self._requested.values():
            if not forked.done():
                forked.set_result(_never_started())
        for process in self._running.values():
            process.end(UNKNOWN_CODE)
        self._requested, self._running = {}, {}
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def stop(self) -> None:
        """After its forks have been stopped."""
        if self._process is None or self._reading is None:
            return
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        await self._process.wait()
        await self._reading


def _never_started() -> ForkedProcess:
    process = ForkedProcess(0)
    process.end(UNKNOWN_CODE)
    return process
