"""The clients of the WebSocket: many, slow and foreign ones, and how a feed ends."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack

import httpx
import pytest
import websockets

from services.gateway.live import feeds, message
from services.gateway.live import socket as live_socket
from shared.events import Event
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
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(full_arena, "greedy")
    run = await completed(http, tasks=50)
    async with watching(http, run) as watcher:
        await watcher.next()
        await http.delete("/api/history")
        said = await watcher.until(lambda said: said["type"] == "error")
        assert run in said["message"]
        assert await watcher.closed() == 4404


async def test_many_clients_get_the_same(full_arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(full_arena, "greedy", "oracle")
    run = await started(http, pace=100)
    async with AsyncExitStack() as stack:
        watchers = [await stack.enter_async_context(watching(http, run)) for _ in range(CLIENTS)]
        firsts = await asyncio.gather(*(watcher.next() for watcher in watchers))
        assert all(first["snapshot"] for first in firsts)
        common = max(first["sequence"] for first in firsts) + 3

        async def at(watcher: Watcher) -> Message:
            return await watcher.until(lambda said: said.get("sequence") == common)

        said = await asyncio.gather(*(at(watcher) for watcher in watchers))
        assert all(each == said[0] for each in said)
        metrics = (await http.get("/metrics")).text
        assert f"hybrid_live_clients {CLIENTS}.0" in metrics
        assert max(watcher.largest for watcher in watchers) < message.MOST_BYTES

    async def all_left() -> bool:
        return "hybrid_live_clients 0.0" in (await http.get("/metrics")).text

    await eventually(all_left)


@pytest.mark.parametrize(("patience", "code"), [(20.0, 1013), (0.0, 1006)])
async def test_a_client_that_does_not_read_is_dropped_and_hurts_nobody(
    full_arena: Arena,
    http: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    patience: float,
    code: int,
) -> None:
    """Its buffers are small and the notes that fill them large, so that it takes no minutes.

    It learns why if it reads again in time; after that its connection is cut.
    """
    monkeypatch.setattr(live_socket, "FAREWELL_SECONDS", patience)
    run = (await full_arena.run(schedulers=["greedy"], pace=1)).run
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.connect((http.base_url.host, http.base_url.port))
    slow_options = {"sock": small, "max_queue": 1, "compression": None}
    async with watching(http, run) as reader, watching(http, run, **slow_options) as slow:
        slow.connection.transport.pause_reading()

        async def dropped() -> bool:
            for number in range(50):
                note = Event(kind="service", service="test", message="x" * 1900,
                             data={"filler": "y" * 15_000})  # fmt: skip
                await full_arena.bus.publish(
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
        reading.cancel()
        slow.connection.transport.resume_reading()
        assert await slow.closed() == code
        assert (await reader.until(lambda said: said["type"] != "notification"))["run"] == run


async def test_a_foreign_page_may_not_listen_nor_change_anything(
    full_arena: Arena,
) -> None:
    run = (await full_arena.run(schedulers=["greedy"], pace=1)).run
    allowed = full_arena.settings.model_copy(update={"gateway_origins": "https://lab.example"})
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
        assert (await full_arena.runs.get(run)).state == "running"
        assert (await http.post("/api/pause", headers={"origin": own})).status_code == 200


async def test_a_feed_ends_a_while_after_its_last_client(
    full_arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "LINGER_SECONDS", 0.2)
    monkeypatch.setattr(feeds, "SWEEP_SECONDS", 0.05)
    before = len(asyncio.all_tasks())
    run = (await full_arena.run(schedulers=["greedy"], pace=1)).run
    async with serving(full_arena.settings) as http:
        (await http.get("/api/runs")).raise_for_status()
        idle = len(asyncio.all_tasks())
        for _ in range(3):
            async with watching(http, run) as watcher:
                await watcher.next()
                assert len(asyncio.all_tasks()) > idle

        async def ended() -> bool:
            return len(asyncio.all_tasks()) <= idle

        await eventually(ended)
        # One that is watched when the gateway stops ends with it.
        async with watching(http, run) as watcher:
            await watcher.next()
            connection = watcher.connection
            connection.transport.abort()

    async def nothing_left() -> bool:
        return len(asyncio.all_tasks()) <= before

    await eventually(nothing_left)


async def test_clients_are_told_when_the_gateway_stops(full_arena: Arena) -> None:
    run = (await full_arena.run(schedulers=["greedy"], pace=1)).run
    before = len(asyncio.all_tasks())
    stack = AsyncExitStack()
    async with serving(full_arena.settings) as http:
        watcher = await stack.enter_async_context(watching(http, run))
        await watcher.next()
    assert await watcher.closed() == 1012
    await stack.aclose()

    async def nothing_left() -> bool:
        return len(asyncio.all_tasks()) <= before

    await eventually(nothing_left)
