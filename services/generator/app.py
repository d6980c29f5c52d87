"""The generator service: generates the tasks of running runs and trims the streams."""

from __future__ import annotations

from prometheus_client import Counter

from services.generator.emitter import Counters
from services.generator.generator import Generator
from shared.bus.service import Service
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
    service.background += [generator.follow_runs, generator.run_housekeeping]
    service.closing.append(generator.close)
    return service


def main() -> None:
    make(Settings()).run()
