"""Injects faults into a running arena and measures the recovery from each."""

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
from tests.chaos.arena import ChaosArena
from tests.chaos.faults import Fault
from tests.chaos.proxy import FAST_NETWORK, MEMORY_LIMIT, Network, Proxy
from tests.waiting import PATIENCE

SLOW_NETWORK = Network(latency=0.05, bytes_per_s=2e6)
POLL_SECONDS = 0.25
STOP_SECONDS = 60.0  # a process that takes longer to stop is a problem of the product


@dataclass(slots=True)
class Injected:
    fault: Fault
    measured: bool  # False before the first result: there is nothing to recover yet
    alone: bool = True  # no other fault until the arena had recovered
    ended_at: float | None = None
    before: dict[str, int] | None = None  # tasks stored at the first poll after its end
    recovery: float | None = None  # seconds until every scheduler had new results stored


class FaultInjector:
    """The faults of one round, that is of one run."""

    def __init__(self, arena: ChaosArena, run: str, say: Callable[[str], None]) -> None:
        self._arena = arena
        self._run = run
        self._say = say
        self._busy: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._has_results = False
        self.faults: list[Injected] = []
        self.problems: list[str] = []

    async def inject(self, schedule: Iterator[Fault], seconds: float) -> None:
        """Inject the faults of that many seconds; returns when the last of them is over."""
        began = time.monotonic()
        watch = asyncio.create_task(self._watch())
        faults_under_way = []
        try:
            for fault in schedule:
                if fault.at > seconds:
                    break
                await asyncio.sleep(max(began + fault.at - time.monotonic(), 0))
                faults_under_way.append(asyncio.create_task(self._inject_one(fault)))
            await asyncio.gather(*faults_under_way)
        finally:
            for task in faults_under_way:
                task.cancel()
            await asyncio.gather(*faults_under_way, return_exceptions=True)
            watch.cancel()

    async def await_recovery(self, seconds: float) -> None:
        """Go on measuring until the arena has recovered from the last faults."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._watch(until_recovered=True)

    async def _watch(self, *, until_recovered: bool = False) -> None:
        while not (until_recovered and not any(map(_pending, self.faults))):
            polled_at = time.monotonic()
            stored = await self._arena.progress(self._run)
            if stored:
                self._has_results = True
                self._measure_recovery(stored, polled_at)
            await asyncio.sleep(POLL_SECONDS)

    def _measure_recovery(self, stored: dict[str, int], polled_at: float) -> None:
        for injected in filter(_pending, self.faults):
            if injected.ended_at is None or polled_at < injected.ended_at:
                continue
            if injected.before is None:
                injected.before = stored
            elif all(stored.get(name, 0) > count for name, count in injected.before.items()):
                injected.recovery = polled_at - injected.ended_at

    async def _inject_one(self, fault: Fault) -> None:
        async with self._busy[f"{fault.kind} {fault.target}"], self._one_at_a_time(fault):
            self._say(f"{fault.at:7.1f} s  {fault}")
            injected = self._begin(fault)
            if fault.kind in faults.PROCESS_FAULTS:
                await self._inject_into_process(fault)
            else:
                await self._inject_around(fault)
            injected.ended_at = time.monotonic()

    def _begin(self, fault: Fault) -> Injected:
        injected = Injected(fault, measured=self._has_results)
        for other in self.faults:
            if other.ended_at is None or _pending(other):
                other.alone = injected.alone = False
        self.faults.append(injected)
        return injected

    def _one_at_a_time(self, fault: Fault) -> asyncio.Lock:
        """A frozen process is not killed meanwhile: that would be another fault."""
        kind = "process" if fault.kind in faults.PROCESS_FAULTS else "surroundings"
        return self._busy[f"{kind} {fault.target}"]

    async def _inject_into_process(self, fault: Fault) -> None:
        pid = await self._wait_for_pid(fault.target)
        if fault.kind == faults.FREEZE:
            _signal(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(fault.seconds)
            finally:
                _signal(pid, signal.SIGCONT)
            return
        _signal(pid, signal.SIGKILL if fault.kind == faults.KILL else signal.SIGTERM)
        if not await self._has_stopped(fault.target, pid):
            self.problems.append(f"{fault.target} does not stop within {STOP_SECONDS:.0f} s")
            _signal(pid, signal.SIGKILL)

    async def _wait_for_pid(self, name: str) -> int:
        child = self._arena.children[name]
        deadline = time.monotonic() + PATIENCE
        while (pid := child.pid) is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"{name} was not restarted")
            await asyncio.sleep(0.05)
        return pid

    async def _has_stopped(self, name: str, pid: int) -> bool:
        child = self._arena.children[name]
        deadline = time.monotonic() + STOP_SECONDS
        while child.pid == pid:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.02)
        return True

    async def _inject_around(self, fault: Fault) -> None:
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

        def set_weather(network: Network) -> None:
            proxy.network = network

        return {
            faults.ERRORS: (lambda: set_error(MEMORY_LIMIT), lambda: set_error(None)),
            faults.SLOW: (lambda: set_weather(SLOW_NETWORK), lambda: set_weather(FAST_NETWORK)),
            faults.REFUSED: (proxy.refuse, nothing),
            faults.CUT: (proxy.cut, nothing),
        }[kind]


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):  # it has just ended by itself
        os.kill(pid, number)


def _pending(injected: Injected) -> bool:
    return injected.measured and injected.recovery is None
