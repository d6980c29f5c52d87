"""The generator service: an emitter per running run, and the housekeeping of the streams."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from prometheus_client import Counter

from services.generator.emitter import Counters, Emitter
from services.generator.housekeeping import Housekeeping
from shared.backlog import Backlog
from shared.cancelling import cancel
from shared.errors import NotFound
from shared.logs import logger
from shared.runs import RunRecord, RunState
from shared.service import Service
from shared.settings import Settings

TRIM_SECONDS = 2.0
COMPLETE_SECONDS = 0.5

log = logger()


class Generator:
    """Follows the book of runs: running ones are emitted, the others are left alone.

    A run whose tasks are submitted is never emitted; it is finished here like any other.
    """

    def __init__(self, service: Service, counters: Counters) -> None:
        self._service = service
        self._counters = counters
        self._emitters: dict[str, tuple[Emitter, asyncio.Task[None]]] = {}

    async def follow(self) -> None:
        interval = self._service.settings.watch_interval.total_seconds()
        while True:
            records = {record.run: record for record in await self._service.runs.refresh()}
            for run in list(self._emitters):
                if run not in records or records[run].state != RunState.RUNNING:
                    await self._stop(run)
            for record in records.values():
                if record.state == RunState.RUNNING and not record.spec.submitted:
                    self._start(record)
            await asyncio.sleep(interval)

    def _start(self, record: RunRecord) -> None:
        if record.run in self._emitters:
            emitter, task = self._emitters[record.run]
            if not task.done() or emitter.emitted_all:
                return
            log.warning("emitter is restarted", run=record.run, error=repr(task.exception()))
        bus = self._service.bus
        backlog = Backlog(bus.stream, self._service.settings.lead_batches)
        emitter = Emitter(record, bus, backlog, self._counters)
        self._emitters[record.run] = (emitter, asyncio.create_task(emitter.emit()))

    async def _stop(self, run: str) -> None:
        _, task = self._emitters.pop(run)
        await cancel(task)

    async def keep_house(self) -> None:
        housekeeping = Housekeeping(self._service.bus, self._service.runs)
        trimmed_at = 0.0
        while True:
            records = await self._service.runs.refresh()
            for record in records:
                if record.state == RunState.RUNNING and self._has_all(record):
                    with suppress(NotFound):  # a record that was ruined holds up its run alone
                        await housekeeping.complete(record)
            if time.monotonic() - trimmed_at > TRIM_SECONDS:
                await housekeeping.trim()
                await housekeeping.trim_models()
                await housekeeping.reject_orphans()
                trimmed_at = time.monotonic()
            await asyncio.sleep(COMPLETE_SECONDS)

    def _has_all(self, record: RunRecord) -> bool:
        """Whether the run may be over. Of a submitted one only its stream knows."""
        emitter, _ = self._emitters.get(record.run, (None, None))
        return record.spec.submitted or (emitter is not None and emitter.emitted_all)

    async def close(self) -> None:
        for run in list(self._emitters):
            await self._stop(run)


def make(settings: Settings) -> Service:
    service = Service("generator", settings, keeps_streams=True)
    counters = Counters(
        tasks=Counter("hybrid_generated_tasks_total", "Tasks sent", registry=service.registry),
        seconds=Counter(
            "hybrid_generate_seconds_total", "Time in generation", registry=service.registry
        ),
    )
    generator = Generator(service, counters)
    service.background += [generator.follow, generator.keep_house]
    service.closing.append(generator.close)
    return service


def main() -> None:
    make(Settings()).run()
