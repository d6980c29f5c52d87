"""The start of a service: it is done when the subscribers consume, or the process ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from nats.js.manager import JetStreamManager

import services.scheduler.app
from deploy.local.arena import Ports
from shared.bus.client import Bus
from shared.messages import subjects
from shared.runtime.settings import Settings
from tests.chaos.proxy import PIECE, Proxy
from tests.integration.arena import as_user, eventually
from tests.integration.nats_server import NatsServer

DURABLE = subjects.scheduler_durable("greedy")


class CutsAt(Proxy):
    """Breaks every connection when one of them passes these bytes on, once."""

    def __init__(self, port: int, target: int, where: bytes) -> None:
        super().__init__(port, target)
        self.where: bytes | None = where

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE):
            if self.where is not None and self.where in piece:
                self.where = None
                self.cut()
                return
            writer.write(piece)
            await writer.drain()


@asynccontextmanager
async def lifespan(settings: Settings) -> AsyncIterator[list[str]]:
    """What a worker of greedy tells uvicorn while it starts; it is stopped in the end."""
    service = services.scheduler.app.make(
        as_user("scheduler", settings).model_copy(update={"policy": "greedy"})
    )
    received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    told: list[str] = []

    async def send(message: Any) -> None:
        told.append(message["type"].removeprefix("lifespan."))

    received.put_nowait({"type": "lifespan.startup"})
    work = asyncio.create_task(service.app()({"type": "lifespan"}, received.get, send))
    await eventually(lambda: told)
    try:
        yield told
    finally:
        received.put_nowait({"type": "lifespan.shutdown"})
        await asyncio.gather(work, return_exceptions=True)


async def waiting_fetches(bus: Bus) -> int:
    return (await bus.jetstream.consumer_info(subjects.TASKS, DURABLE)).num_waiting or 0


async def test_a_connection_cut_while_the_subscribers_start_delays_the_start(
    bus: Bus, settings: Settings, nats_process: NatsServer
) -> None:
    proxy = CutsAt(Ports.free().nats, nats_process.port, b"$JS.API.CONSUMER.INFO.")
    await proxy.listen()
    url = f"nats://127.0.0.1:{proxy.port}"
    async with lifespan(settings.model_copy(update={"nats_url": url})) as told:
        assert proxy.where is None
        assert told == ["startup.complete"]
        await eventually(lambda: waiting_fetches(bus))
    assert told == ["startup.complete", "shutdown.complete"]
    await proxy.close()


async def test_a_start_fails_if_a_subscriber_cannot_start(
    bus: Bus, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise ValueError("no such consumer")

    monkeypatch.setattr(JetStreamManager, "consumer_info", refuse)
    async with lifespan(settings) as told:
        assert told == ["startup.failed"]
