"""Makes faults happen, and measures how long the arena takes to get over each."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from tests.chaos import faults
from tests.chaos.arena import StormyArena
from tests.chaos.faults import Fault
from tests.chaos.proxy import FAIR, MEMORY_LIMIT, Proxy, Weather

BAD = Weather(latency=0.05, bytes_per_s=2e6)
LOOK_SECONDS = 0.25
ALIVE_SECONDS = 60.0  # until a process that died is there again
STOP_SECONDS = 60.0  # until one has stopped that was asked to


@dataclass(slots=True)
class Struck:
    fault: Fault
    measured: bool  # not so before the first result, when there is nothing to recover yet
    alone: bool = True  # no other fault until the arena was over it
    ended_at: float | None = None
    before: dict[str, int] | None = None  # what was stored at the first look after its end
    recovery: float | None = None  # seconds until every scheduler had new results stored


class Striker:
    """One storm over one run."""

    def __init__(self, arena: StormyArena, run: str, say: Callable[[str], None]) -> None:
        self._arena = arena
        self._run = run
        self._say = say
        self._busy: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._flowing = False
        self.struck: list[Struck] = []
        self.problems: list[str] = []

    async def storm(self, schedule: Iterator[Fault], seconds: float) -> None:
        """Let faults happen for so long; returns when the last of them is over."""
        began = time.monotonic()
        watch = asyncio.create_task(self._watch())
        strikes = []
        try:
            for fault in schedule:
                if fault.at > seconds:
                    break
                await asyncio.sleep(max(began + fault.at - time.monotonic(), 0))
                strikes.append(asyncio.create_task(self._strike(fault)))
            await asyncio.gather(*strikes)
        finally:
            for strike in strikes:
                strike.cancel()
            await asyncio.gather(*strikes, return_exceptions=True)
            watch.cancel()

    async def settle(self, seconds: float) -> None:
        """Look on until the arena is over the last faults, or the run over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._watch(until_recovered=True)

    async def _watch(self, *, until_recovered: bool = False) -> None:
        while not (until_recovered and not any(map(_pending, self.struck))):
            asked_at = time.monotonic()
            stored = await self._arena.progress(self._run)
            if stored:
                self._flowing = True
                self._note(stored, asked_at)
            await asyncio.sleep(LOOK_SECONDS)

    def _note(self, stored: dict[str, int], asked_at: float) -> None:
        for struck in filter(_pending, self.struck):
            if struck.ended_at is None or asked_at < struck.ended_at:
                continue
            if struck.before is None:
                struck.before = stored
            elif all(stored.get(name, 0) > count for name, count in struck.before.items()):
                struck.recovery = asked_at - struck.ended_at

    async def _strike(self, fault: Fault) -> None:
        async with self._busy[f"{fault.kind} {fault.target}"], self._one_at_a_time(fault):
            self._say(f"{fault.at:7.1f} s  {fault}")
            struck = self._begin(fault)
            if fault.kind in faults.PROCESS_FAULTS:
                await self._disturb_process(fault)
            else:
                await self._disturb_surroundings(fault)
            struck.ended_at = time.monotonic()

    def _begin(self, fault: Fault) -> Struck:
        struck = Struck(fault, measured=self._flowing)
        for other in self.struck:
            if other.ended_at is None or _pending(other):
                other.alone = struck.alone = False
        self.struck.append(struck)
        return struck

    def _one_at_a_time(self, fault: Fault) -> asyncio.Lock:
        """A process that is frozen is not killed: it would be another fault than the one named."""
        kind = "process" if fault.kind in faults.PROCESS_FAULTS else "surroundings"
        return self._busy[f"{kind} {fault.target}"]

    async def _disturb_process(self, fault: Fault) -> None:
        pid = await self._alive(fault.target)
        if fault.kind == faults.FREEZE:
            _signal(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(fault.seconds)
            finally:
                _signal(pid, signal.SIGCONT)
            return
        _signal(pid, signal.SIGKILL if fault.kind == faults.KILL else signal.SIGTERM)
        if not await self._gone(fault.target, pid):
            self.problems.append(f"{fault.target} does not stop within {STOP_SECONDS:.0f} s")
            _signal(pid, signal.SIGKILL)

    async def _alive(self, name: str) -> int:
        child = self._arena.children[name]
        deadline = time.monotonic() + ALIVE_SECONDS
        while (pid := child.pid) is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"{name} is not started again")
            await asyncio.sleep(0.05)
        return pid

    async def _gone(self, name: str, pid: int) -> bool:
        child = self._arena.children[name]
        deadline = time.monotonic() + STOP_SECONDS
        while child.pid == pid:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.02)
        return True

    async def _disturb_surroundings(self, fault: Fault) -> None:
        if fault.kind == faults.FULL_DISK:
            await self._fill_disk(fault.seconds)
            return
        proxy = self._arena.nats if fault.target == "nats" else self._arena.clickhouse
        begin, end = self._switches(fault.kind, proxy)
        begin()
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            end()
            if fault.kind == faults.REFUSED:
                await proxy.listen()

    async def _fill_disk(self, seconds: float) -> None:
        disk = self._arena.disk
        assert disk is not None
        await asyncio.to_thread(disk.fill)
        try:
            await asyncio.sleep(seconds)
        finally:
            disk.empty()

    def _switches(self, kind: str, proxy: Proxy) -> tuple[Callable[[], None], Callable[[], None]]:
        def nothing() -> None: ...

        def set_error(error: str | None) -> None:
            proxy.error = error
            proxy.cut()  # connections that are open pass their requests on

        def set_weather(weather: Weather) -> None:
            proxy.weather = weather

        return {
            faults.ERRORS: (lambda: set_error(MEMORY_LIMIT), lambda: set_error(None)),
            faults.SLOW: (lambda: set_weather(BAD), lambda: set_weather(FAIR)),
            faults.REFUSED: (proxy.refuse, nothing),
            faults.CUT: (proxy.cut, nothing),
        }[kind]


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):  # it has just died by itself
        os.kill(pid, number)


def _pending(struck: Struck) -> bool:
    return struck.measured and struck.recovery is None
