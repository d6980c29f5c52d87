"""The trainer service: consumes results and publishes models for the learning schedulers."""

from __future__ import annotations

import json
import os

from faststream.nats.annotations import NatsMessage
from pydantic import ValidationError

from services.trainer.trainer import Trainer
from shared.bus import streams
from shared.bus.service import Service
from shared.domain.schedulers import TEACHERS
from shared.errors import ArenaError
from shared.messages import batches, subjects
from shared.messages.models import Rollback
from shared.runtime.settings import Settings
from shared.store.client import Store


def make(settings: Settings) -> Service:
    service = Service("trainer", settings)
    trainer = Trainer(service, Store(settings))
    consumers = {
        learner: streams.durable(
            subjects.trainer_durable(learner), subjects.results("*", teacher), settings, pending=64
        )
        for learner, teacher in TEACHERS.items()
    }

    async def prepare() -> None:
        for consumer in consumers.values():
            await service.bus.ensure_consumer(subjects.RESULTS, consumer)

    service.prepare.append(prepare)
    service.background.append(trainer.follow_runs)
    service.closing.append(trainer.close)

    def subscribe(learner: str) -> None:
        @service.bus.subscriber(
            subjects.RESULTS, consumers[learner], title=f"Results for {learner}"
        )
        async def on_results(body: bytes, message: NatsMessage) -> None:
            batch = batches.decode(body, message.raw_message.subject)
            await trainer.add_results(learner, batch)
            trainer.metrics.results.labels(learner).inc(batch.rows.num_rows)

    for learner in TEACHERS:
        subscribe(learner)

    @service.bus.broker.subscriber(subjects.ROLLBACK, "trainer", title="Roll back")
    async def on_rollback(body: bytes) -> bytes:
        try:
            manifest = await trainer.roll_back(Rollback.model_validate_json(body))
        except (ArenaError, ValidationError) as error:
            return json.dumps({"error": str(error)}).encode()
        return manifest.model_dump_json().encode()

    return service


def main() -> None:
    settings = Settings()
    os.nice(settings.trainer_nice)
    make(settings).run()
