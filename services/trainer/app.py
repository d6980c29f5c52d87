"""The trainer service: results in, models out, for every run that has a learning scheduler."""

from __future__ import annotations

import asyncio
import json

from faststream.exceptions import NackMessage
from faststream.nats.annotations import NatsMessage
from prometheus_client import Counter
from pydantic import BaseModel, ValidationError

from services.trainer.learning import AgentLearning, ForestLearning
from shared import batches, subjects
from shared.bus import ONE_AT_A_TIME, existing
from shared.cancelling import cancel
from shared.errors import ArenaError, NotAllowed, NotFound, Unreadable
from shared.logs import logger
from shared.models import AGENT, FOREST, Manifest
from shared.runs import RunRecord
from shared.service import Service
from shared.settings import Settings
from shared.store.client import Store

LEARNINGS: dict[str, type[ForestLearning] | type[AgentLearning]] = {
    FOREST: ForestLearning,
    AGENT: AgentLearning,
}
# Whose results each learner learns from.
TEACHERS = {FOREST: "oracle", AGENT: AGENT}

# A learner that is being prepared gets its results again after this.
NOT_READY_SECONDS = 0.5

log = logger()


class Rollback(BaseModel):
    run: str
    name: str
    version: int


class Trainer:
    """Follows the book of runs: an active run's learners are prepared once, then kept learning."""

    def __init__(self, service: Service, store: Store) -> None:
        self._service = service
        self._store = store
        self._ready: dict[tuple[str, str], ForestLearning | AgentLearning] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def follow(self) -> None:
        interval = self._service.settings.watch_interval.total_seconds()
        while True:
            active = {r.run: r for r in await self._service.runs.refresh() if r.active}
            for key in list(self._tasks):
                if key[0] not in active:
                    await cancel(self._tasks.pop(key))
                    self._ready.pop(key, None)
            for record in active.values():
                for name in LEARNINGS.keys() & set(record.spec.schedulers):
                    if (record.run, name) not in self._tasks:
                        task = asyncio.create_task(self._keep_learning(record, name))
                        self._tasks[record.run, name] = task
            await asyncio.sleep(interval)

    async def _keep_learning(self, record: RunRecord, name: str) -> None:
        """A learner that fails is made anew, from what the bus and the store have."""
        while True:
            learning = LEARNINGS[name](record, self._service.bus, self._store)
            try:
                await learning.prepare()
                self._ready[record.run, name] = learning
                await learning.learn()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                log.warning("learner starts anew", run=record.run, name=name, error=repr(error))
                self._ready.pop((record.run, name), None)
                await asyncio.sleep(1)

    async def take(self, name: str, batch: batches.Batch) -> None:
        run = batch.envelope.run
        if (run, name) in self._ready:
            self._ready[run, name].add(batch.rows)
            return
        try:
            record = await self._service.runs.get(run)
        except NotFound as error:
            raise Unreadable(str(error)) from None
        if record.active and name in record.spec.schedulers:
            raise NackMessage(delay=NOT_READY_SECONDS)

    async def roll_back(self, asked: Rollback) -> Manifest:
        learning = self._ready.get((asked.run, asked.name))
        if learning is None:
            raise NotAllowed(f"nobody learns {asked.name} in run {asked.run} now")
        return await learning.roll_back(asked.version)

    async def close(self) -> None:
        await cancel(*self._tasks.values())


def make(settings: Settings) -> Service:
    service = Service("trainer", settings)
    trainer = Trainer(service, Store(settings))
    taken = Counter(
        "hybrid_learned_results_total", "Results taken in", ["learner"], registry=service.registry
    )
    durables = {
        name: subjects.durable(
            f"trainer-{name}", subjects.results("*", teacher), settings, pending=64
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
            title=f"Results for {name}",
        )
        async def on_results(body: bytes, message: NatsMessage) -> None:
            batch = batches.decode(body, message.raw_message.subject)
            await trainer.take(name, batch)
            taken.labels(name).inc(batch.rows.num_rows)

    for name in LEARNINGS:
        subscribe(name)

    @service.bus.broker.subscriber(subjects.ROLLBACK, title="Roll back")
    async def on_rollback(body: bytes) -> bytes:
        try:
            asked = Rollback.model_validate_json(body)
            manifest = await trainer.roll_back(asked)
        except (ArenaError, ValidationError) as error:
            return json.dumps({"error": str(error)}).encode()
        return manifest.model_dump_json().encode()

    return service


def main() -> None:
    make(Settings()).run()
