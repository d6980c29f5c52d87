"""The generator service: generates the tasks of running runs and trims the streams."""

from __future__ import annotations

from prometheus_client import Counter
from pydantic import ValidationError

from services.generator.emitter import Counters
from services.generator.generator import Generator
from shared.bus.client import Message
from shared.bus.service import Service
from shared.bus.suspension import suspend
from shared.errors import ArenaError
from shared.messages import subjects
from shared.messages.runs import SuspensionRequest
from shared.runtime.settings import Settings


def make(settings: Settings) -> Service:
    service = Service("generator", settings, creates_streams=True)
    counters = Counters(
        tasks=Counter("hybrid_generated_tasks_total", "Tasks sent", registry=service.registry),
        seconds=Counter(
            "hybrid_generate_seconds_total", "Time in generation", registry=service.registry
        ),
    )
    generator = Generator(service, counters)
    service.background += [
        generator.follow_runs,
        generator.complete_runs,
        generator.trim_streams,
        generator.watch_for_stuck_runs,
    ]
    service.closing.append(generator.close)

    @service.bus.broker.subscriber(subjects.SUSPEND, "generator", title="Suspend a scheduler")
    async def on_suspend(message: Message) -> bytes:
        try:
            request = SuspensionRequest.model_validate_json(message.body)
            await suspend(service.bus, service.runs, request)
        except (ArenaError, ValidationError) as error:
            return str(error).encode()
        return b""

    return service


def main() -> None:
    make(Settings()).run()
