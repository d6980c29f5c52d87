"""The trainer service: results in, models out, for every run that has a learning scheduler."""

from __future__ import annotations

import asyncio
import json
import os
from importlib import import_module
from typing import TYPE_CHECKING

from faststream.nats.annotations import NatsMessage
from pydantic import ValidationError

from services.trainer.metrics import Metrics
from shared import batches, subjects
from shared.bus import ONE_AT_A_TIME, existing
from shared.cancelling import cancel
from shared.errors import ArenaError, NotAllowed, NotFound, Unreadable
from shared.logs import logger
from shared.models import TEACHERS, Manifest, Rollback
from shared.runs import RunRecord
from shared.service import Service
from shared.settings import Settings
from shared.store.client import Store

if TYPE_CHECKING:
    from services.trainer.learning import Learning

log = logger()


class Trainer:
    """Follows the book of runs: an active run's learners are prepared once, then kept learning."""

    def __init__(self, service: Service, store: Store) -> None:
        self._service = service
        self._store = store
        self.metrics = Metrics.register(service.registry)
        self._loaded = asyncio.Event()
        self._learnings: dict[tuple[str, str], Learning] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def follow(self) -> None:
        # These libraries are large: they are loaded while the rest of the arena starts.
        await asyncio.to_thread(import_module, "services.trainer.learning")
        self._loaded.set()
        interval = self._service.settings.watch_interval.total_seconds()
        while True:
            active = {r.run: r for r in await self._service.runs.refresh() if r.active}
            for key in list(self._tasks):
                if key[0] not in active:
                    await cancel(self._tasks.pop(key))
                    self._learnings.pop(key, None)
            for record in active.values():
                for name in TEACHERS.keys() & set(record.spec.schedulers):
                    self._begin(record, name)
            await asyncio.sleep(interval)

    def _begin(self, record: RunRecord, name: str) -> None:
        key = record.run, name
        if key not in self._tasks:
            self._learnings[key] = self._make(record, name)
            self._tasks[key] = asyncio.create_task(self._keep_learning(record, name))

    def _make(self, record: RunRecord, name: str) -> Learning:
        from services.trainer.learning import LEARNINGS  # see `follow`

        return LEARNINGS[name](record, self._service.bus, self._store, self.metrics)

    async def _keep_learning(self, record: RunRecord, name: str) -> None:
        """A learner that fails is made anew, from what the bus and the store have."""
        while True:
            learning = self._learnings[record.run, name]
            try:
                await learning.prepare()
                await learning.learn()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                log.warning("learner starts anew", run=record.run, name=name, error=repr(error))
                anew = self._learnings[record.run, name] = self._make(record, name)
                anew.take_over(learning)
                await asyncio.sleep(1)

    async def take(self, name: str, batch: batches.Batch) -> None:
        run = batch.envelope.run
        await self._loaded.wait()
        if (run, name) not in self._learnings:
            try:
                record = await self._service.runs.get(run)
            except NotFound as error:
                raise Unreadable(str(error)) from None
            if not record.active or name not in record.spec.schedulers:
                return
            self._begin(record, name)
        self._learnings[run, name].add(batch.rows)

    async def roll_back(self, asked: Rollback) -> Manifest:
        learning = self._learnings.get((asked.run, asked.name))
        if learning is None:
            raise NotAllowed(f"nobody learns {asked.name} in run {asked.run} now")
        return await learning.roll_back(asked.version)

    async def close(self) -> None:
        await cancel(*self._tasks.values())


def make(settings: Settings) -> Service:
    service = Service("trainer", settings)
    trainer = Trainer(service, Store(settings))
    durables = {
        name: subjects.durable(
            subjects.trainer_durable(name), subjects.results("*", teacher), settings, pending=64
        )
        for name, teacher in TEACHERS.items()
    }

    async def prepare() -> None:
        for durable in durables.values():
            await service.bus.make_durable(subjects.RESULTS, durable)

    service.prepare.append(prepare)
    service.background.append(trainer.follow)
    service.closing.append(trainer.close)

    def subscribe(name: str) -> None:
        @service.bus.broker.subscriber(
            subjects.results("*", TEACHERS[name]),
            stream=existing(subjects.RESULTS),
            durable=durables[name].durable_name,
            config=durables[name],
            pull_sub=ONE_AT_A_TIME,
            inbox_prefix=service.bus.inbox_prefix,
            title=f"Results for {name}",
        )
        async def on_results(body: bytes, message: NatsMessage) -> None:
            batch = batches.decode(body, message.raw_message.subject)
            await trainer.take(name, batch)
            trainer.metrics.taken.labels(name).inc(batch.rows.num_rows)

    for name in TEACHERS:
        subscribe(name)

    @service.bus.broker.subscriber(subjects.ROLLBACK, "trainer", title="Roll back")
    async def on_rollback(body: bytes) -> bytes:
        try:
            asked = Rollback.model_validate_json(body)
            manifest = await trainer.roll_back(asked)
        except (ArenaError, ValidationError) as error:
            return json.dumps({"error": str(error)}).encode()
        return manifest.model_dump_json().encode()

    return service


def main() -> None:
    settings = Settings()
    os.nice(settings.trainer_nice)
    make(settings).run()
