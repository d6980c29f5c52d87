"""Follows the run book: one emitter per running run, and housekeeping for all runs."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from services.generator.emitter import Counters, Emitter
from services.generator.housekeeping import Housekeeping
from services.generator.stuck_runs import StuckRuns
from shared.bus.back_pressure import BackPressure
from shared.bus.run_changes import RunChanges
from shared.bus.service import Service
from shared.errors import NotFound, Unavailable
from shared.messages.runs import RunRecord, RunState
from shared.runtime.cancellation import cancel
from shared.runtime.logs import logger

# How often the streams are trimmed: while one of them fills, and else. Each time the last messages
# of all subjects are read, and every consumer of the stream is looked at.
TRIM_SECONDS = 2.0
SLOW_TRIM_SECONDS = 10.0
# How often a run whose tasks are all sent is checked at first, and how often such runs are looked
# for. Schedulers that are far behind are waited for with fewer checks: each reads whole results.
COMPLETE_SECONDS = 0.1
COMPLETE_SHARE = 0.02  # of the time since all tasks were sent
IDLE_SECONDS = 0.5

log = logger()


class Generator:
    """A run with submitted tasks has no emitter, but is completed here like any other."""

    def __init__(self, service: Service, counters: Counters) -> None:
        self._service = service
        self._counters = counters
        self._emitters: dict[str, tuple[Emitter, asyncio.Task[None]]] = {}
        self._emitter_ended = asyncio.Event()

    async def follow_runs(self) -> None:
        """Start and stop emitters as runs are started, paused, resumed and stopped."""
        interval = self._service.settings.watch_interval.total_seconds()
        changes = RunChanges(self._service.bus)
        await changes.listen()
        while True:
            records = {record.run: record for record in await self._service.runs.refresh()}
            for run in list(self._emitters):
                if run not in records or records[run].state != RunState.RUNNING:
                    await self._stop(run)
            for record in records.values():
                if record.state == RunState.RUNNING and not record.spec.submitted:
                    self._start(record)
            await changes.wait(interval)

    def _start(self, record: RunRecord) -> None:
        if record.run in self._emitters:
            emitter, task = self._emitters[record.run]
            if not task.done() or emitter.emitted_all:
                emitter.record = record
                return
            log.warning("emitter is restarted", run=record.run, error=repr(task.exception()))
        bus = self._service.bus
        back_pressure = BackPressure(bus.jetstream, self._service.settings.lead_batches)
        emitter = Emitter(record, bus, back_pressure, self._counters)
        task = asyncio.create_task(emitter.emit())
        task.add_done_callback(lambda _: self._emitter_ended.set())
        self._emitters[record.run] = (emitter, task)

    async def _stop(self, run: str) -> None:
        _, task = self._emitters.pop(run)
        await cancel(task)

    async def complete_runs(self) -> None:
        """The end of a run is looked for as soon as all of its tasks are sent."""
        housekeeping = Housekeeping(self._service.bus, self._service.runs)
        ending_since = 0.0
        while True:
            pause = IDLE_SECONDS
            for record in await self._service.runs.refresh():
                if record.state == RunState.RUNNING and self._may_be_complete(record):
                    if not record.spec.submitted:
                        waited = time.monotonic() - ending_since
                        pause = min(max(COMPLETE_SECONDS, COMPLETE_SHARE * waited), IDLE_SECONDS)
                    # An unreadable record, or a newer version's messages, must not block others.
                    with suppress(NotFound, Unavailable):
                        await housekeeping.complete(record)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._emitter_ended.wait(), pause)
                ending_since = time.monotonic()
            self._emitter_ended.clear()

    async def trim_streams(self) -> None:
        housekeeping = Housekeeping(self._service.bus, self._service.runs)
        while True:
            await housekeeping.trim()
            await housekeeping.trim_models()
            await housekeeping.reject_orphans()
            trimmed_at = time.monotonic()
            await asyncio.sleep(TRIM_SECONDS)
            while time.monotonic() - trimmed_at < SLOW_TRIM_SECONDS:
                if await housekeeping.streams_fill():
                    break
                await asyncio.sleep(TRIM_SECONDS)

    async def watch_for_stuck_runs(self) -> None:
        stuck_runs = StuckRuns(self._service.bus, self._service.runs)
        interval = self._service.settings.stuck_after.total_seconds() / 4
        while True:
            await stuck_runs.check()
            await asyncio.sleep(interval)

    def _may_be_complete(self, record: RunRecord) -> bool:
        """The end of a submitted run is known from its stream only."""
        emitter, _ = self._emitters.get(record.run, (None, None))
        return record.spec.submitted or (emitter is not None and emitter.emitted_all)

    async def close(self) -> None:
        for run in list(self._emitters):
            await self._stop(run)
