"""One child process for each device of a real run: pinned to its cores, limited, one task at a
time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from shared.execution.settings import DeviceSetting, Limits

COMMAND = "command:"
START_SECONDS = 60  # importing torch from a cold disk
STOP_SECONDS = 2
THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Work:
    """The part of a task that one device runs."""

    kind: str  # a kernel, or `command:NAME` of an allowed command
    size: float
    memory_mb: float
    intensity: float
    share: float = 1.0  # 0..1 of the whole task


@dataclass(frozen=True, slots=True)
class Measured:
    """One work on one device. The times are those of `time.monotonic()`, from the request to the
    answer, so dispatching counts; preparing the inputs does not."""

    started: float  # before the transfer
    ended: float
    transfer_s: float = 0.0
    energy_j: float | None = None  # None: no counter
    failure: str | None = None  # None: ok
    dispatch_s: float = 0.0  # the part of that time that is neither transfer nor kernel


class DeviceProcess:
    """`run` never raises because work failed: the failure is part of its answer. A process that
    died is started again for the next work."""

    def __init__(
        self,
        device: DeviceSetting,
        limits: Limits,
        commands: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`commands`: the programs that a work may name, each with its arguments."""
        self.device, self.limits = device, limits
        self._commands = commands or {}
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Raises RuntimeError where the machine has no such device."""
        problem = self.device.problem()
        if problem is not None:
            raise RuntimeError(problem)
        threads = str(self.device.threads or len(self.device.cores))
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "shared.execution.child"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, threads)},
            start_new_session=True,
        )
        first = {
            "parent": os.getpid(),
            "device": asdict(self.device),
            "limits": asdict(self.limits),
        }
        answer = await self._ask(first, START_SECONDS)
        if failure := answer.get("failure"):
            await self._kill()
            raise RuntimeError(failure)

    async def run(self, work: Work) -> Measured:
        async with self._turn:
            return await self._run(work)

    async def stop(self) -> None:
        """Leaves no process behind."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        await self._kill()

    async def _run(self, work: Work) -> Measured:
        requested_at = time.monotonic()
        request: dict[str, Any] = asdict(work)
        if work.kind.startswith(COMMAND):
            name = work.kind.removeprefix(COMMAND)
            if name not in self._commands:
                return Measured(
                    requested_at, requested_at, failure=f"no command {name!r} is allowed"
                )
            request["argv"] = list(self._commands[name])
        if self._process is None:
            try:
                await self.start()
            except RuntimeError as error:
                return Measured(requested_at, time.monotonic(), failure=str(error))
        requested_at = time.monotonic()
        answer = await self._ask(request, self.limits.seconds)
        ended = time.monotonic()
        started = min(requested_at + answer.get("preparation_s", 0.0), ended)
        transfer = answer.get("transfer_s", 0.0)
        busy = transfer + answer.get("kernel_s", ended - started)
        return Measured(
            started,
            ended,
            transfer,
            answer.get("energy_j"),
            answer.get("failure"),
            max(ended - started - busy, 0.0),
        )

    async def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The answer of the process. If it gives none, it is killed and the answer says why."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                process.stdin.write(json.dumps(request).encode() + b"\n")
                await process.stdin.drain()
                line = await process.stdout.readline()
        except TimeoutError:
            await self._kill()
            return {"failure": f"over its time limit of {seconds:g} s"}
        except OSError:
            line = b""
        except asyncio.CancelledError:
            # Its answer would be taken for that of the next work.
            await self._kill()
            raise
        if line.endswith(b"\n"):
            answer: dict[str, Any] = json.loads(line)
            return answer
        with suppress(TimeoutError):  # its own exit status says more than that of the kill below
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        return {"failure": _how_it_ended(await self._kill())}

    async def _kill(self) -> int:
        """The process and the programs that it started; its exit status."""
        process, self._process = self._process, None
        assert process is not None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return await process.wait()


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"the device's process ended with exit status {status}"
    name = signal.Signals(-status).name
    return f"the device's process was killed by signal {-status} ({name})"
