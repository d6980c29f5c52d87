"""Follows the run book: one training loop for each learner of each active run."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

from services.trainer.metrics import Metrics
from shared.bus import streams
from shared.bus.client import Message
from shared.bus.service import Service
from shared.bus.suspension import request_suspension, retried_at
from shared.errors import NotAllowed, NotFound, Unavailable, Unreadable
from shared.messages import batches, subjects
from shared.messages.events import Event
from shared.messages.models import Manifest, Rollback
from shared.messages.runs import RunRecord
from shared.runtime.cancellation import cancel
from shared.runtime.logs import logger
from shared.store.client import Store

if TYPE_CHECKING:
    from services.trainer.learner import Learner
    from services.trainer.learner_registry import LearnerRegistry
    from services.trainer.training_loop import TrainingLoop

RESTART_SECONDS = 1.0
# After this many failures within this many seconds the learner's scheduler is suspended.
MOST_FAILURES = 3
RECENT_SECONDS = 60.0

log = logger()


class Trainer:
    def __init__(self, service: Service, store: Store) -> None:
        self._service = service
        self._store = store
        self.metrics = Metrics.register(service.registry)
        self._registry: LearnerRegistry | None = None
        self._subscribed: set[str] = set()
        self._loops: dict[tuple[str, str], TrainingLoop] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Load the learners and follow the runs."""
        # torch and scikit-learn take seconds to import: in a thread, while the arena starts.
        self._registry = await asyncio.to_thread(self._load_learners)
        for name, learner in self._registry.learners.items():
            if name not in self._subscribed:  # this is tried again when NATS was cut off
                await self._subscribe(learner)
                self._subscribed.add(name)
        await self._follow_runs(frozenset(self._registry.learners))

    def _load_learners(self) -> LearnerRegistry:
        from services.trainer.learner_registry import LearnerRegistry

        return LearnerRegistry(self._service.settings.plugins)

    async def _subscribe(self, learner: type[Learner]) -> None:
        """To the results of its own scheduler and of the one that it learns from."""
        bus = self._service.bus
        consumer = streams.durable(
            subjects.trainer_durable(learner.name),
            [subjects.results("*", name) for name in {learner.name, learner.learns_from} - {""}],
            self._service.settings,
            pending=64,
        )
        await bus.ensure_consumer(subjects.RESULTS, consumer)
        subscriber = bus.subscriber(
            subjects.RESULTS, consumer, title=f"Results for {learner.name}", persistent=False
        )

        async def on_results(message: Message) -> None:
            batch = batches.decode(message.body, message.raw_message.subject)
            await self.add_results(learner.name, batch)
            self.metrics.results.labels(learner.name).inc(batch.rows.num_rows)

        subscriber(on_results)
        await subscriber.start()

    async def _follow_runs(self, learners: frozenset[str]) -> None:
        """Start and stop training loops as runs start and end."""
        interval = self._service.settings.watch_interval.total_seconds()
        while True:
            active = {r.run: r for r in await self._service.runs.refresh() if r.active}
            for key in list(self._tasks):
                if key[0] not in active:
                    await cancel(self._tasks.pop(key))
                    self._loops.pop(key, None)
            for record in active.values():
                for name in learners & set(record.spec.schedulers):
                    self._start(record, name)
                    if loop := self._loops.get((record.run, name)):
                        loop.suspended = frozenset(record.suspended)
                        loop.set_objective(record.spec)
            await asyncio.sleep(interval)

    def _start(self, record: RunRecord, name: str) -> None:
        if (record.run, name) in self._tasks:
            return
        try:
            self._new_loop(record, name)
        except Exception as error:  # of a plug-in; it is tried again
            log.warning("a learner cannot be made", run=record.run, name=name, error=repr(error))
        task = asyncio.create_task(self._keep_training(record, name))
        self._tasks[record.run, name] = task

    async def _keep_training(self, record: RunRecord, name: str) -> None:
        """Replace a loop that fails by a new one, restored from the bus and the store, with the
        learner as its file is then.

        In lockstep the learner's scheduler waits for its models, so it is suspended after some
        failures, and the run continues without it."""
        loop = self._loops.get((record.run, name))
        failed_at: deque[float] = deque(maxlen=MOST_FAILURES)
        while True:
            try:
                loop = loop or self._new_loop(record, name)
                await loop.prepare()
                await loop.train()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                log.warning("training is restarted", run=record.run, name=name, error=repr(error))
                await self._report_failure(record.run, name, error)
                failed_at.append(time.monotonic())
                recent = failed_at[-1] - failed_at[0] < RECENT_SECONDS
                if record.spec.lockstep and len(failed_at) == MOST_FAILURES and recent:
                    reason = f"it cannot learn: {error!r}"
                    retried = retried_at(await self._service.runs.local(record.run), name)
                    await request_suspension(
                        self._service.bus, record.run, name, reason, None, retried
                    )
                await asyncio.sleep(RESTART_SECONDS)
                loop = None

    def _new_loop(self, record: RunRecord, name: str) -> TrainingLoop:
        from services.trainer.lockstep_training import LockstepTraining
        from services.trainer.wall_clock_training import WallClockTraining

        kind = LockstepTraining if record.spec.lockstep else WallClockTraining
        assert self._registry is not None  # results and runs are read after it is there
        self._registry.load_changed()
        learner = self._registry.learners[name](record.spec)
        loop = kind(record, learner, self._service.bus, self._store, self.metrics)
        if failed := self._loops.get((record.run, name)):
            loop.take_results_of(failed)
        self._loops[record.run, name] = loop
        return loop

    async def _report_failure(self, run: str, name: str, error: Exception) -> None:
        """Once for each kind of failure: it may happen again and again."""
        note = f"{name} cannot learn and is started again: {error!r}"[:2000]
        await self._service.bus.publish_event(
            Event(kind="learner_failed", service="trainer", run=run, message=note),
            message_id=f"event.learner.{run}.{name}.{type(error).__name__}",
        )

    async def add_results(self, name: str, batch: batches.Batch) -> None:
        run = batch.envelope.run
        if (run, name) not in self._loops:
            try:
                record = await self._service.runs.get(run)
            except NotFound as error:
                raise Unreadable(str(error)) from None
            if not record.active or name not in record.spec.schedulers:
                return
            self._start(record, name)
        loop = self._loops.get((run, name))
        if loop is None:
            raise Unavailable(f"the learner {name} of run {run} cannot be made")
        loop.add(batch.envelope.scheduler, batch.rows)

    async def roll_back(self, request: Rollback) -> Manifest:
        loop = self._loops.get((request.run, request.name))
        if loop is None:
            raise NotAllowed(f"run {request.run} has no active learner {request.name}")
        return await loop.roll_back(request.version)

    async def close(self) -> None:
        await cancel(*self._tasks.values())
