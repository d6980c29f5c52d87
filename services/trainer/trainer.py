"""Follows the run book: one training loop for each learner of each active run."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from services.trainer.metrics import Metrics
from shared.bus.service import Service
from shared.domain.schedulers import TEACHERS
from shared.errors import NotAllowed, NotFound, Unreadable
from shared.messages import batches
from shared.messages.models import Manifest, Rollback
from shared.messages.runs import RunRecord
from shared.runtime.cancellation import cancel
from shared.runtime.logs import logger
from shared.store.client import Store

if TYPE_CHECKING:
    from services.trainer.training_loop import TrainingLoop

log = logger()


class Trainer:
    def __init__(self, service: Service, store: Store) -> None:
        self._service = service
        self._store = store
        self.metrics = Metrics.register(service.registry)
        self._imported = asyncio.Event()
        self._loops: dict[tuple[str, str], TrainingLoop] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def follow_runs(self) -> None:
        """Start and stop training loops as runs start and end."""
        # torch and scikit-learn take seconds to import: in a thread, while the arena starts.
        await asyncio.to_thread(import_module, "services.trainer.training_loop")
        self._imported.set()
        interval = self._service.settings.watch_interval.total_seconds()
        while True:
            active = {r.run: r for r in await self._service.runs.refresh() if r.active}
            for key in list(self._tasks):
                if key[0] not in active:
                    await cancel(self._tasks.pop(key))
                    self._loops.pop(key, None)
            for record in active.values():
                for name in TEACHERS.keys() & set(record.spec.schedulers):
                    self._start(record, name)
            await asyncio.sleep(interval)

    def _start(self, record: RunRecord, name: str) -> None:
        key = record.run, name
        if key not in self._tasks:
            self._loops[key] = self._new_loop(record, name)
            self._tasks[key] = asyncio.create_task(self._keep_training(record, name))

    def _new_loop(self, record: RunRecord, name: str) -> TrainingLoop:
        from services.trainer.training_loop import TRAINING_LOOPS  # see `follow_runs`

        return TRAINING_LOOPS[name](record, self._service.bus, self._store, self.metrics)

    async def _keep_training(self, record: RunRecord, name: str) -> None:
        """A loop that fails is replaced by a new one, restored from the bus and the store."""
        while True:
            loop = self._loops[record.run, name]
            try:
                await loop.prepare()
                await loop.train()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                log.warning("training is restarted", run=record.run, name=name, error=repr(error))
                new = self._loops[record.run, name] = self._new_loop(record, name)
                new.take_inbox_of(loop)
                await asyncio.sleep(1)

    async def add_results(self, name: str, batch: batches.Batch) -> None:
        run = batch.envelope.run
        await self._imported.wait()
        if (run, name) not in self._loops:
            try:
                record = await self._service.runs.get(run)
            except NotFound as error:
                raise Unreadable(str(error)) from None
            if not record.active or name not in record.spec.schedulers:
                return
            self._start(record, name)
        self._loops[run, name].add(batch.rows)

    async def roll_back(self, request: Rollback) -> Manifest:
        loop = self._loops.get((request.run, request.name))
        if loop is None:
            raise NotAllowed(f"run {request.run} has no active learner {request.name}")
        return await loop.roll_back(request.version)

    async def close(self) -> None:
        await cancel(*self._tasks.values())
