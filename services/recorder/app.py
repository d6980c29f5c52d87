"""The recorder service: consumes tasks, results, events and run records, and stores them.

A message is acknowledged only after ClickHouse has stored it.
"""

from __future__ import annotations

import asyncio

from faststream.nats import PullSub

from services.recorder import contents
from services.recorder.recorder import Recorder
from shared.bus import streams
from shared.bus.client import Messages, Subscriber
from shared.bus.service import Service
from shared.messages import subjects
from shared.runtime.logs import logger
from shared.runtime.settings import Settings
from shared.store.client import Store, StoreUnavailable

SOURCES = {
    subjects.TASKS: "tasks.*",
    subjects.RESULTS: "results.*.*",
    subjects.EVENTS: "events.*",
    subjects.RUNS_STREAM: subjects.RUNS_SUBJECTS,
}

log = logger()


async def migrate(store: Store, service: Service) -> None:
    while True:
        try:
            await asyncio.to_thread(store.migrate)
            return
        except StoreUnavailable as error:
            service.note_problem("clickhouse", str(error))
            log.warning("waiting for ClickHouse", error=str(error))
            await asyncio.sleep(1)


def make(settings: Settings) -> Service:
    service = Service("recorder", settings)
    store = Store(settings)
    recorder = Recorder(service, store)
    consumers = {
        stream: streams.durable(subjects.RECORDER_DURABLE, subject, settings, pending=1024)
        for stream, subject in SOURCES.items()
    }

    async def prepare() -> None:
        for stream, consumer in consumers.items():
            await service.bus.ensure_consumer(stream, consumer)
        await migrate(store, service)

    async def check_clickhouse() -> str | None:
        return await asyncio.to_thread(store.ping)

    service.prepare.append(prepare)
    service.checks["clickhouse"] = check_clickhouse

    def subscriber(stream: str, title: str) -> Subscriber:
        linger = settings.record_linger.total_seconds()
        pull = PullSub(batch_size=settings.record_messages, timeout=linger, batch=True)
        return service.bus.subscriber(stream, consumers[stream], pull=pull, title=title)

    @subscriber(subjects.TASKS, "Tasks, stored")
    async def on_tasks(messages: Messages) -> None:
        await recorder.store(messages.raw_message, contents.read_batch, contents.task_tables)

    async def on_results(messages: Messages) -> None:
        stored = await recorder.store(
            messages.raw_message, contents.read_batch, contents.result_tables
        )
        recorder.observe_latency(stored)

    # One group is read while ClickHouse stores the other.
    for title in ("Results, stored", "More results, stored"):
        subscriber(subjects.RESULTS, title)(on_results)

    @subscriber(subjects.EVENTS, "Events, stored")
    async def on_events(messages: Messages) -> None:
        await recorder.store(messages.raw_message, contents.read_event, contents.event_tables)

    @subscriber(subjects.RUNS_STREAM, "Runs, stored")
    async def on_runs(messages: Messages) -> None:
        stored = await recorder.store(messages.raw_message, contents.read_run, contents.run_tables)
        for _, record in stored:
            await recorder.copy_shared_rows(record)

    return service


def main() -> None:
    make(Settings()).run()
