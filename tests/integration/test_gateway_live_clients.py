"""Clients of the WebSocket: many, slow ones, ones of other origins; and how a feed ends."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack

import httpx
import pytest
import websockets

from services.gateway.live import feed_registry, run_feed, size_limit
from services.gateway.live import routes as live_routes
from shared.messages.events import Event
from shared.runtime.cancellation import cancel
from tests.integration.arena import Arena, eventually
from tests.integration.gateway import completed, serving, started, whole
from tests.integration.watching import Message, Watcher, watching

CLIENTS = 50  # make bench-websocket has 200


async def test_an_unknown_run_is_an_error_and_4404(http: httpx.AsyncClient) -> None:
    for run, why in (("none", "no run 'none'"), (None, "no run yet")):
        async with watching(http, run) as watcher:
            assert await watcher.next() == {"type": "error", "message": why}
            assert await watcher.closed() == 4404


async def test_a_run_that_is_deleted_while_it_is_watched(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(arena, "greedy")
    run = await completed(http, tasks=50)
    async with watching(http, run) as watcher:
        await watcher.next()
        await http.delete("/api/history")
        message = await watcher.until(lambda message: message["type"] == "error")
        assert run in message["message"]
        assert await watcher.closed() == 4404


async def test_many_clients_get_the_same(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "greedy", "oracle")
    run = await started(http, pace=100)
    async with AsyncExitStack() as stack:
        watchers = [await stack.enter_async_context(watching(http, run)) for _ in range(CLIENTS)]
        firsts = await asyncio.gather(*(watcher.next() for watcher in watchers))
        assert all(first["snapshot"] for first in firsts)
        common = max(first["sequence"] for first in firsts) + 3

        async def at(watcher: Watcher) -> Message:
            return await watcher.until(lambda message: message.get("sequence") == common)

        message = await asyncio.gather(*(at(watcher) for watcher in watchers))
        assert all(each == message[0] for each in message)
        metrics = (await http.get("/metrics")).text
        assert f"hybrid_live_clients {CLIENTS}.0" in metrics
        assert max(watcher.largest for watcher in watchers) < size_limit.MOST_BYTES
    await eventually(
        lambda: http.get("/metrics"), accept=lambda answer: "hybrid_live_clients 0.0" in answer.text
    )


@pytest.mark.parametrize(("patience", "code"), [(20.0, 1013), (0.0, 1006)])
async def test_a_client_that_does_not_read_is_disconnected_without_affecting_others(
    arena: Arena,
    http: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    patience: float,
    code: int,
) -> None:
    """Small buffers and large events make this fast.

    It gets the close code if it reads again in time; else its connection is aborted.
    """
    monkeypatch.setattr(live_routes, "CLOSE_SECONDS", patience)
    monkeypatch.setattr(run_feed, "MOST_NOTIFICATIONS", 30)
    run = (await arena.run(schedulers=["greedy"], pace=1)).run
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.connect((http.base_url.host, http.base_url.port))
    slow_options = {"sock": small, "max_queue": 1, "compression": None}
    async with watching(http, run) as reader, watching(http, run, **slow_options) as slow:
        slow.connection.transport.pause_reading()

        async def dropped() -> bool:
            for number in range(50):
                note = Event(kind="service", service=f"test {number}", message="x" * 1900,
                             data={"filler": "y" * 15_000})  # fmt: skip
                await arena.bus.publish(
                    "events.service",
                    note.model_dump_json().encode(),
                    stream="EVENTS",
                    message_id=f"{dropped}.{number}.{asyncio.get_running_loop().time()}",
                )
            return "hybrid_live_clients_dropped_total 1.0" in (await http.get("/metrics")).text

        async def read() -> int:
            count = 0
            while True:
                count += (await reader.next())["type"] == "notification"

        reading = asyncio.create_task(read())
        await eventually(dropped)
        assert not reading.done()
        await cancel(reading)
        slow.connection.transport.resume_reading()
        assert await slow.closed() == code
        assert (await reader.until(lambda message: message["type"] != "notification"))["run"] == run


async def test_a_page_of_another_origin_may_neither_listen_nor_change(arena: Arena) -> None:
    run = (await arena.run(schedulers=["greedy"], pace=1)).run
    allowed = arena.settings.model_copy(update={"gateway_origins": "https://lab.example"})
    async with serving(allowed) as http:
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with watching(http, run, origin="http://evil.example"):
                pass
        assert refused.value.response.status_code == 403
        own = f"http://{http.base_url.host}:{http.base_url.port}"
        for origin in (own, "https://lab.example"):
            async with watching(http, run, origin=origin) as watcher:
                assert (await watcher.next())["run"] == run
        answer = await http.post("/api/pause", headers={"origin": "http://evil.example"})
        assert answer.status_code == 403
        assert (await arena.runs.get(run)).state == "running"
        assert (await http.post("/api/pause", headers={"origin": own})).status_code == 200


async def test_a_feed_ends_a_while_after_its_last_client(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_registry, "LINGER_SECONDS", 0.2)
    monkeypatch.setattr(feed_registry, "SWEEP_SECONDS", 0.05)
    before = len(asyncio.all_tasks())
    run = (await arena.run(schedulers=["greedy"], pace=1)).run
    async with serving(arena.settings) as http:
        (await http.get("/api/runs")).raise_for_status()
        idle = len(asyncio.all_tasks())
        for _ in range(3):
            async with watching(http, run) as watcher:
                await watcher.next()
                assert len(asyncio.all_tasks()) > idle
        await eventually(lambda: len(asyncio.all_tasks()) <= idle)
        # One that is watched when the gateway stops ends with it.
        async with watching(http, run) as watcher:
            await watcher.next()
            connection = watcher.connection
            connection.transport.abort()
    await eventually(lambda: len(asyncio.all_tasks()) <= before)


async def test_clients_are_disconnected_when_the_gateway_stops(arena: Arena) -> None:
    run = (await arena.run(schedulers=["greedy"], pace=1)).run
    before = len(asyncio.all_tasks())
    stack = AsyncExitStack()
    async with serving(arena.settings) as http:
        watcher = await stack.enter_async_context(watching(http, run))
        await watcher.next()
    assert await watcher.closed() == 1012
    await stack.aclose()
    await eventually(lambda: len(asyncio.all_tasks()) <= before)
