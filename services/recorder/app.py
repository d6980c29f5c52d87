"""The recorder service: everything on the bus into ClickHouse, then acknowledged.

Messages that arrive together share one insert. A message is acknowledged only after ClickHouse
has stored it; one that cannot be read goes to the dead letters without holding up the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Annotated, TypeVar

import pyarrow as pa
from faststream import Context
from faststream.nats import PullSub
from faststream.nats.message import NatsBatchMessage
from faststream.nats.subscriber.usecases import BatchPullStreamSubscriber
from nats.aio.msg import Msg
from nats.js.kv import KV_OP
from prometheus_client import Counter, Histogram
from pydantic import ValidationError

from services.recorder import rows
from shared import batches, subjects
from shared.batches import Batch
from shared.bus import existing
from shared.errors import NotFound, Unreadable
from shared.events import Event
from shared.formats import problem
from shared.logs import logger
from shared.metrics import LATENCY_BUCKETS
from shared.runs import RunRecord, read_record
from shared.service import Service
from shared.settings import Settings
from shared.standing import standing_of
from shared.store.client import SchemaTooNew, Store

Messages = Annotated[NatsBatchMessage, Context("message")]
Read = TypeVar("Read")
Tables = dict[str, pa.Table | None]

log = logger()


class Recorder:
    def __init__(self, service: Service, store: Store) -> None:
        self._service = service
        self._store = store
        self._rows = Counter(
            "hybrid_stored_rows_total", "Rows stored", ["table"], registry=service.registry
        )
        self._inserts = Histogram(
            "hybrid_insert_seconds",
            "Inserts into ClickHouse",
            ["table"],
            buckets=LATENCY_BUCKETS,
            registry=service.registry,
        )
        self._latency = Histogram(
            "hybrid_stored_latency_seconds",
            "From a batch of tasks on the bus to its results in ClickHouse",
            buckets=LATENCY_BUCKETS,
            registry=service.registry,
        )

    async def store(
        self,
        messages: Sequence[Msg],
        reader: Callable[[Msg], Read | None],
        tables: Callable[[Sequence[Read]], Tables],
    ) -> list[Read]:
        """What the messages say, stored; those that say nothing readable become dead letters."""
        understood = await self._read(messages, reader)
        try:
            made = tables([said for _, said in understood])
        except Exception:
            # A value that no column takes. It must not hold up those beside it, again and again.
            understood = [each for each in understood if await self._fits(*each, tables)]
            made = tables([said for _, said in understood])
        await self._insert(messages, made)
        return [said for _, said in understood]

    async def _read(
        self, messages: Sequence[Msg], reader: Callable[[Msg], Read | None]
    ) -> list[tuple[Msg, Read]]:
        # A run that was deleted meanwhile must not come back.
        await self._service.runs.refresh()
        understood = []
        for message in messages:
            try:
                said = reader(message)
                if isinstance(said, Batch):
                    await self._must_be_known(said.envelope.run)
            except Unreadable as error:
                await self._reject(message, str(error))
                continue
            if said is not None:
                understood.append((message, said))
        return understood

    async def _fits(
        self, message: Msg, said: Read, tables: Callable[[Sequence[Read]], Tables]
    ) -> bool:
        try:
            tables([said])
        except Exception as error:
            await self._reject(message, f"it fits no column: {error!r}")
            return False
        return True

    async def _reject(self, message: Msg, reason: str) -> None:
        place = message.metadata
        await self._service.bus.reject(
            message.subject, place.stream, place.sequence.stream, message.data, reason
        )

    async def _must_be_known(self, run: str) -> None:
        try:
            await self._service.runs.spec(run)
        except NotFound as error:
            raise Unreadable(str(error)) from None

    async def _insert(self, messages: Sequence[Msg], tables: Tables) -> None:
        """The same messages together give the same token; other groupings replace row by row."""
        # With the time: a bus that was wiped counts its messages from 1 again.
        first = messages[0].metadata
        places = ",".join(str(message.metadata.sequence.stream) for message in messages)
        said = f"{first.stream}:{first.timestamp.timestamp()}:{places}"
        token = blake2b(said.encode()).hexdigest()[:32]
        for name, table in tables.items():
            if table is not None and table.num_rows:
                started = time.perf_counter()
                await asyncio.to_thread(self._store.insert, name, table, token=token)
                self._inserts.labels(name).observe(time.perf_counter() - started)
                self._rows.labels(name).inc(table.num_rows)

    def note_latency(self, results: Sequence[Batch]) -> None:
        now = time.time()
        for batch in results:
            self._latency.observe(max(now - batch.envelope.published_at, 0.0))


def read_batch(message: Msg) -> Batch:
    batch = batches.decode(message.data, message.subject)
    if batch.envelope.kind == "results":
        standing_of(batch.envelope)
    rows.moment(batch.envelope.published_at)
    return batch


def read_run(message: Msg) -> tuple[int, RunRecord] | None:
    if KV_OP in (message.headers or {}):
        return None
    record = read_record(message.data, message.subject.rpartition(".")[2])
    rows.moment(record.created_at)
    rows.moment(record.updated_at)
    return message.metadata.sequence.stream, record


def read_event(message: Msg) -> tuple[int, Event]:
    try:
        event = Event.model_validate_json(message.data)
        rows.moment(event.at)
    except ValidationError as error:
        raise Unreadable(f"no readable event: {problem(error)}") from None
    return message.metadata.sequence.stream, event


def task_tables(batches: Sequence[Batch]) -> Tables:
    return {"tasks": rows.task_table(batches)}


def result_tables(batches: Sequence[Batch]) -> Tables:
    return {
        "scheduler_results": rows.result_table(batches),
        "training_data": rows.training_table(batches),
        # Last: a standing in the store means that its results are there.
        "standings": rows.standing_table(batches),
    }


def event_tables(events: Sequence[tuple[int, Event]]) -> Tables:
    return {"events": rows.event_table(events), "models": rows.model_table(events)}


def run_tables(records: Sequence[tuple[int, RunRecord]]) -> Tables:
    return {"runs": rows.run_table(records)}


async def migrate(store: Store) -> None:
    while True:
        try:
            await asyncio.to_thread(store.migrate)
            return
        except SchemaTooNew:
            raise  # waiting will not make it older
        except Exception as error:
            log.warning("waiting for ClickHouse", error=str(error))
            await asyncio.sleep(1)


def make(settings: Settings) -> Service:
    service = Service("recorder", settings)
    store = Store(settings)
    recorder = Recorder(service, store)
    sources = {
        subjects.TASKS: "tasks.*",
        subjects.RESULTS: "results.*.*",
        subjects.EVENTS: "events.*",
        subjects.RUNS_STREAM: subjects.RUNS_SUBJECTS,
    }
    durables = {
        stream: subjects.durable(subjects.RECORDER_DURABLE, subject, settings, pending=1024)
        for stream, subject in sources.items()
    }

    async def prepare() -> None:
        for stream, durable in durables.items():
            await service.bus.make_durable(stream, durable)
        await migrate(store)

    async def check_clickhouse() -> str | None:
        return await asyncio.to_thread(store.ping)

    service.prepare.append(prepare)
    service.checks["clickhouse"] = check_clickhouse

    def subscriber(stream: str, title: str) -> BatchPullStreamSubscriber:
        return service.bus.broker.subscriber(
            sources[stream],
            stream=existing(stream),
            durable=subjects.RECORDER_DURABLE,
            config=durables[stream],
            pull_sub=PullSub(
                batch_size=settings.record_messages,
                timeout=settings.record_linger.total_seconds(),
                batch=True,
            ),
            inbox_prefix=service.bus.inbox_prefix,
            title=title,
        )

    @subscriber(subjects.TASKS, "Tasks, stored")
    async def on_tasks(body: list[bytes], message: Messages) -> None:
        await recorder.store(message.raw_message, read_batch, task_tables)

    @subscriber(subjects.RESULTS, "Results, stored")
    async def on_results(body: list[bytes], message: Messages) -> None:
        stored = await recorder.store(message.raw_message, read_batch, result_tables)
        recorder.note_latency(stored)

    @subscriber(subjects.EVENTS, "Events, stored")
    async def on_events(body: list[bytes], message: Messages) -> None:
        await recorder.store(message.raw_message, read_event, event_tables)

    @subscriber(subjects.RUNS_STREAM, "Runs, stored")
    async def on_runs(body: list[bytes], message: Messages) -> None:
        await recorder.store(message.raw_message, read_run, run_tables)

    return service


def main() -> None:
    make(Settings()).run()
