"""The trainer service: consumes results and publishes models for the learning schedulers."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from pydantic import ValidationError

from services.trainer.trainer import Trainer
from shared.bus.client import Message
from shared.bus.service import Service
from shared.errors import ArenaError
from shared.messages import subjects
from shared.messages.models import Rollback
from shared.runtime.extras import NotInstalled, require
from shared.runtime.settings import Settings
from shared.store.client import Store


def make(settings: Settings) -> Service:
    service, store = Service("trainer", settings), Store(settings)
    trainer = Trainer(service, store)

    async def check_clickhouse() -> str | None:
        return await asyncio.to_thread(store.ping)

    service.checks["clickhouse"] = check_clickhouse
    service.background.append(trainer.start)
    service.closing.append(trainer.close)

    @service.bus.broker.subscriber(subjects.ROLLBACK, "trainer", title="Roll back")
    async def on_rollback(message: Message) -> bytes:
        try:
            manifest = await trainer.roll_back(Rollback.model_validate_json(message.body))
        except (ArenaError, ValidationError) as error:
            return json.dumps({"error": str(error)}).encode()
        return manifest.model_dump_json().encode()

    return service


def main() -> None:
    try:
        require("torch")
    except NotInstalled as error:
        sys.exit(str(error))
    settings = Settings()
    # At least: the supervisor of an embedded arena may have set more.
    os.nice(max(settings.trainer_nice - os.nice(0), 0))
    make(settings).run()
