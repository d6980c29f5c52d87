"""A supervised child process, restarted when it dies."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.launchers import Launcher, Process
from deploy.local.priority import lower_priority
from shared.runtime.logs import logger

STOP_SECONDS = 15.0
FIRST_DELAY, LONGEST_DELAY = 0.2, 5.0
# A log of this size is rotated.
LOG_BYTES = 16 * 2**20
ROTATE_CHECK_SECONDS = 10.0
# After this long without a restart the delay starts at its first value again.
STABLE_SECONDS = 30.0

log = logger()


@dataclass(slots=True)
class Child:
    name: str
    launcher: Launcher
    environment: dict[str, str]
    log_file: Path
    service: str = ""  # which of ours; empty: NATS or ClickHouse
    workers: int = 1  # of the service, in this process
    niceness: int = 0
    restarts: int = 0
    process: Process | None = None
    _stopping: bool = False
    _watcher: asyncio.Task[None] | None = field(default=None, repr=False)
    _lowering: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int | None:
        running = self.process is not None and self.process.returncode is None
        return self.process.pid if running and self.process else None

    async def start(self) -> None:
        await self._spawn()
        self._watcher = asyncio.create_task(self._watch())

    async def _spawn(self) -> None:
        self.process = await self.launcher.launch(self.environment, self.log_file)
        if self.niceness:
            self._lowering = asyncio.create_task(lower_priority(self.process.pid, self.niceness))

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        delay = FIRST_DELAY
        while True:
            assert self.process is not None
            started = loop.time()
            code = await self._exit_code(self.process)
            if self._stopping:
                return
            if loop.time() - started > STABLE_SECONDS:
                delay = FIRST_DELAY
            self.restarts += 1
            log.warning(
                "process died, restarting it",
                process=self.name,
                exit_code=code,
                log=str(self.log_file),
            )
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY)
            await self._spawn()

    async def _exit_code(self, process: Process) -> int:
        while True:
            try:
                return await asyncio.wait_for(process.wait(), ROTATE_CHECK_SECONDS)
            except TimeoutError:
                _rotate(self.log_file)

    async def stop(self) -> None:
        self._stopping = True
        if self.pid is not None and self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self.process.wait(), STOP_SECONDS)
            except TimeoutError:
                log.warning("process did not stop in time, killing it", process=self.name)
                self.process.send_signal(signal.SIGKILL)
                await self.process.wait()
        for task in (self._watcher, self._lowering):
            if task is not None:
                task.cancel()

    def log_tail(self, lines: int = 15) -> str:
        try:
            return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""


def _rotate(log_file: Path) -> None:
    """Copy and truncate, because the process keeps the file open.

    Lines written between copy and truncation are lost; on a full disk nothing is rotated.
    """
    with suppress(OSError):
        if log_file.stat().st_size > LOG_BYTES:
            shutil.copyfile(log_file, log_file.with_suffix(".old.log"))
            os.truncate(log_file, 0)
