"""Stores messages in ClickHouse, in groups that share one insert.

A message that cannot be read, or that ClickHouse will never accept, becomes a dead letter with the
reason, without blocking the others of its group.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TypeVar

import pyarrow as pa
from nats.aio.msg import Msg
from prometheus_client import Counter, Histogram

from services.recorder.fork_rows import copy_rows
from shared.bus.forks import parent_of
from shared.bus.service import Service
from shared.errors import NotFound, Unreadable
from shared.messages.batches import Batch
from shared.messages.runs import RunRecord
from shared.runtime.logs import logger
from shared.runtime.metrics import LATENCY_BUCKETS
from shared.store.client import StatementRefused, Store

Content = TypeVar("Content")
Tables = dict[str, pa.Table | None]

log = logger()


class Recorder:
    def __init__(self, service: Service, store: Store) -> None:
        self._service = service
        self._clickhouse = store
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
        read: Callable[[Msg], Content | None],
        make_tables: Callable[[Sequence[Content]], Tables],
    ) -> list[Content]:
        """Store the messages and return their contents, without those that were rejected."""
        # A run that was deleted meanwhile must not be stored again.
        began = time.time_ns()
        await self._service.runs.refresh()
        readable = []
        for message in messages:
            try:
                content = read(message)
                if isinstance(content, Batch):
                    await self._check_run_exists(content.envelope.run)
            except Unreadable as error:
                await self._reject(message, str(error))
                continue
            if content is not None:
                readable.append((message, content))
        stored = await self._store(readable, make_tables)
        if tracing := self._service.bus.tracing:
            for content in stored:
                if isinstance(content, Batch):
                    tracing.stored(content.envelope, content.rows.num_rows, began)
        return stored

    async def _store(
        self,
        readable: list[tuple[Msg, Content]],
        make_tables: Callable[[Sequence[Content]], Tables],
    ) -> list[Content]:
        if not readable:
            return []
        try:
            await self._insert(readable, make_tables)
        except (Unreadable, StatementRefused) as error:
            if len(readable) == 1:
                await self._reject(readable[0][0], str(error))
                return []
            one_by_one = [await self._store([each], make_tables) for each in readable]
            return [content for stored in one_by_one for content in stored]
        return [content for _, content in readable]

    async def _insert(
        self,
        readable: list[tuple[Msg, Content]],
        make_tables: Callable[[Sequence[Content]], Tables],
    ) -> None:
        try:
            tables = make_tables([content for _, content in readable])
        except Exception as error:
            raise Unreadable(f"a value fits no column: {error!r}") from error
        token = _deduplication_token([message for message, _ in readable])
        for name, table in tables.items():
            if table is not None and table.num_rows:
                started = time.perf_counter()
                await asyncio.to_thread(self._clickhouse.insert, name, table, token=token)
                self._inserts.labels(name).observe(time.perf_counter() - started)
                self._rows.labels(name).inc(table.num_rows)

    async def copy_shared_rows(self, record: RunRecord) -> None:
        """Of a fork: what it shares with its parent."""
        if record.fork is None or not record.active:
            return
        try:
            parent = await parent_of(self._service.runs, record)
        except NotFound as error:  # the fork was deleted, too, or will never start
            log.warning("a fork has no rows", run=record.run, error=str(error))
            return
        assert parent is not None
        await asyncio.to_thread(copy_rows, self._clickhouse, record, record.fork, parent)

    async def _check_run_exists(self, run: str) -> None:
        try:
            await self._service.runs.spec(run)
        except NotFound as error:
            raise Unreadable(str(error)) from None

    async def _reject(self, message: Msg, reason: str) -> None:
        metadata = message.metadata
        await self._service.bus.reject(
            message.subject, metadata.stream, metadata.sequence.stream, message.data, reason
        )

    def observe_latency(self, results: Sequence[Batch]) -> None:
        now = time.time()
        for batch in results:
            self._latency.observe(max(now - batch.envelope.published_at, 0.0))


def _deduplication_token(messages: Sequence[Msg]) -> str:
    """The same for the same group of messages; rows of another grouping replace each other."""
    # The timestamp is part of it because a NATS server that was wiped counts from 1 again.
    first = messages[0].metadata
    sequences = ",".join(str(message.metadata.sequence.stream) for message in messages)
    text = f"{first.stream}:{first.timestamp.timestamp()}:{sequences}"
    return blake2b(text.encode()).hexdigest()[:32]
