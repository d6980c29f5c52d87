"""The services of an arena inside the test's own process, on the real NATS and ClickHouse."""

from __future__ import annotations

import asyncio
import inspect
import operator
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from prometheus_client import CollectorRegistry
from pydantic import SecretStr

import services.executor.app
import services.generator.app
import services.recorder.app
import services.scheduler.app
import services.simulator.app
import services.trainer.app
from shared.bus.client import Bus
from shared.bus.run_book import RunBook
from shared.bus.service import Service
from shared.domain.spec import RunSpec
from shared.messages import batches, subjects
from shared.messages.batches import Batch
from shared.messages.runs import RunRecord, RunState
from shared.runtime.settings import Settings
from shared.store.client import Store
from tests.integration.clickhouse_server import ROOT
from tests.integration.nats_server import password_of
from tests.waiting import PATIENCE

MAKERS: dict[str, Callable[[Settings], Service]] = {
    "generator": services.generator.app.make,
    "scheduler": services.scheduler.app.make,
    "simulator": services.simulator.app.make,
    "executor": services.executor.app.make,
    "recorder": services.recorder.app.make,
    "trainer": services.trainer.app.make,
}


async def eventually(
    read: Callable[[], Any],
    what: str = "",
    *,
    equals: Any = None,
    accept: Callable[[Any], Any] = bool,
    seconds: float = PATIENCE,
) -> Any:
    """The first value that is true, or equal to the one given, or accepted."""
    if equals is not None:
        accept = partial(operator.eq, equals)
    deadline = time.monotonic() + seconds
    while True:
        value = read()
        if inspect.isawaitable(value):
            value = await value
        if accept(value):
            return value
        assert time.monotonic() < deadline, (
            f"{what or read.__qualname__}: not in {seconds:.0f} s: {value!r}"
        )
        await asyncio.sleep(0.02)


async def unchanged(read: Callable[[], Awaitable[Any]], *, seconds: float = 0.5) -> Any:
    """The value, once it has stayed the same for that long and for thirty reads.

    On a busy machine the services are slow, and so are the reads.
    """
    start = time.monotonic()
    since, reads, value = start, 0, await read()
    while reads < 30 or time.monotonic() - since < seconds:
        assert time.monotonic() - start < PATIENCE, f"it goes on changing: {value!r}"
        await asyncio.sleep(0.02)
        reads += 1
        if (newest := await read()) != value:
            since, reads, value = time.monotonic(), 0, newest
    return value


class Arena:
    def __init__(self, settings: Settings, bus: Bus) -> None:
        self.settings = settings
        self.bus = bus
        self.runs = RunBook(bus.jetstream)
        self._services: list[Service] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._store: Store | None = None

    @property
    def jetstream(self) -> JetStreamContext:
        return self.bus.jetstream

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = Store(self.settings)
        return self._store

    async def start(self, name: str, **settings: Any) -> Service:
        service = MAKERS[name](as_user(name, self.settings).model_copy(update=settings))
        self._services.append(service)
        await service.start()
        await service.bus.broker.start()
        await service.after_start()
        return service

    async def schedulers(self, *policies: str) -> list[Service]:
        return [await self.start("scheduler", policy=policy) for policy in policies]

    async def stop(self, *services: Service) -> None:
        for service in services or tuple(reversed(self._services)):
            self._services.remove(service)
            await service.stop()
            await service.bus.broker.stop()

    def process(self, name: str, **settings: Any) -> subprocess.Popen[bytes]:
        """A service as a process of its own, for a test that kills it."""
        values = as_user(name, self.settings).model_copy(update=settings)
        environment = {
            "HYBRID_" + key.upper(): _plain(getattr(values, key))
            for key in type(values).model_fields
            if getattr(values, key) is not None
        }
        process = subprocess.Popen(
            [sys.executable, "-m", f"services.{name}"], cwd=ROOT, env={**os.environ, **environment}
        )
        self._processes.append(process)
        return process

    async def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait(PATIENCE)
        if self._services:
            await self.stop()
        if self._store is not None:
            self._store.close()

    async def run(self, **spec: Any) -> RunRecord:
        return await self.runs.create(RunSpec.parse({"pace": "max", **spec}))

    async def state(self, run: RunRecord) -> RunState:
        return (await self.runs.get(run.run)).state

    async def completed(self, run: RunRecord, *, seconds: float = PATIENCE) -> None:
        what = f"run {run.run} completed"
        await eventually(lambda: self.state(run), what, equals=RunState.COMPLETED, seconds=seconds)

    async def count(self, stream: str) -> int:
        return int((await self.jetstream.stream_info(stream)).state.messages)

    async def count_of(self, stream: str, subject: str) -> int:
        info = await self.jetstream.stream_info(stream, subjects_filter=subject)
        return sum((info.state.subjects or {}).values())

    async def messages(self, stream: str, subject: str = ">") -> list[Any]:
        """All messages of a subject that the stream holds, in order."""
        found, sequence = [], 1
        while True:
            try:
                message = await self.jetstream.get_msg(
                    stream, seq=sequence, subject=subject, next=True
                )
            except NotFoundError:
                return found
            message.data = message.data or b""
            found.append(message)
            sequence = message.seq + 1

    async def batches(self, stream: str, subject: str) -> list[Batch]:
        """The messages of a subject, with all columns."""
        return [
            complete(batches.decode(message.data, message.subject))
            for message in await self.messages(stream, subject)
        ]

    async def tasks_sent(self, run: RunRecord) -> int:
        """How many tasks the stream's last message says were generated."""
        try:
            last = await self.jetstream.get_last_msg(subjects.TASKS, subjects.tasks(run.run))
        except NotFoundError:
            return 0
        state = batches.decode(last.data or b"", subjects.tasks(run.run)).envelope.state
        return int(state["cursor"]["generated"])

    async def events(self, kind: str) -> list[str]:
        found = await self.messages(subjects.EVENTS, subjects.event(kind))
        return [message.data.decode() for message in found]

    async def dead_letters(self) -> list[dict[str, str]]:
        """The headers of all dead letters."""
        return [message.headers for message in await self.messages(subjects.REJECTED)]

    async def publish_raw(self, subject: str, body: bytes) -> int:
        """As a client would that knows only the address of NATS."""
        return int((await self.jetstream.publish(subject, body)).seq)


def as_user(user: str, settings: Settings) -> Settings:
    """With the rights that this service has in an arena."""
    return settings.model_copy(
        update={"nats_user": user, "nats_password": SecretStr(password_of(user))}
    )


def rows_of(found: list[Batch]) -> pa.Table:
    """All columns, also those that batches leave out."""
    return pa.Table.from_batches([complete(batch).rows for batch in found])


async def connect(settings: Settings, name: str = "test") -> Bus:
    """To a NATS whose streams may not exist yet."""
    bus = Bus(settings, name, CollectorRegistry(), creates_streams=True)
    await bus.connect()
    return bus


async def wipe(client: Client) -> None:
    """An empty NATS: no streams, so no buckets and no consumers either."""
    stream = client.jetstream()
    for info in await stream.streams_info():
        await stream.delete_stream(info.config.name)


def _plain(value: Any) -> str:
    if hasattr(value, "get_secret_value"):
        return str(value.get_secret_value())
    if hasattr(value, "total_seconds"):
        return str(value.total_seconds())
    return str(value)


def policy_file(folder: Path, name: str, body: str) -> str:
    """A policy file as a user would write it; returns the value for HYBRID_POLICY."""
    path = folder / f"{name}.py"
    path.write_text(
        "import numpy as np\n"
        "from services.scheduler.policy import Policy\n"
        "from shared.domain.tasks import Decisions\n\n\n"
        f"class Own(Policy):\n    name = {name!r}\n\n"
        f"    def decide(self, tasks, spec):\n        {body}\n"
    )
    return str(path)


def complete(batch: Batch) -> Batch:
    return Batch(batch.envelope, batches.complete(batch.rows, batch.envelope.kind))
