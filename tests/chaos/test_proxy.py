"""The proxy forwards bytes, and injects the faults it is asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest

from deploy.local.arena import Ports
from tests.chaos.proxy import FAST_NETWORK, MEMORY_LIMIT, Network, Proxy
from tests.waiting import PATIENCE

LONG = b"x" * 300_000


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """In front of a server that echoes."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65536):
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            pass
        await close(writer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        echoing.append(asyncio.create_task(echo(reader, writer)))

    echoing: list[asyncio.Task[None]] = []
    ports = Ports.free()
    server = await asyncio.start_server(accept, "127.0.0.1", ports.nats)
    proxy = Proxy(ports.gateway, ports.nats)
    await proxy.listen()
    yield proxy
    await proxy.close()
    server.close()
    await asyncio.gather(*echoing)


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def echoed(proxy: Proxy, body: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        writer.write(body)
        return await asyncio.wait_for(reader.readexactly(len(body)), PATIENCE)
    finally:
        await close(writer)


async def test_bytes_pass_unchanged(proxy: Proxy) -> None:
    body = bytes(range(256)) * 2000
    assert await echoed(proxy, body) == body
    assert proxy.accepted == 1


async def test_a_slow_network_delays_bytes_until_it_is_fast_again(proxy: Proxy) -> None:
    proxy.network = Network(latency=0.02, bytes_per_s=1e6)
    began = time.monotonic()
    assert await echoed(proxy, LONG) == LONG
    assert time.monotonic() - began >= 0.3  # 300 kB at 1 MB/s
    proxy.network = FAST_NETWORK
    assert await echoed(proxy, LONG) == LONG


async def test_a_cut_ends_open_connections_and_takes_new_ones(proxy: Proxy) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"hello")
    assert await reader.readexactly(5) == b"hello"
    proxy.cut()
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(reader.readexactly(1), PATIENCE)
    await close(writer)
    assert await echoed(proxy, b"again") == b"again"


async def test_connections_are_refused_until_it_listens_again(proxy: Proxy) -> None:
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        await echoed(proxy, b"hello")
    await proxy.listen()
    assert await echoed(proxy, b"hello") == b"hello"


async def test_every_request_is_answered_with_the_error(proxy: Proxy) -> None:
    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield LONG

    proxy.error = MEMORY_LIMIT
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{proxy.port}") as client:
        for answer in (
            await client.get("/"),
            await client.post("/", content=LONG),
            await client.post("/", content=in_pieces()),
        ):
            assert answer.status_code == 500
            assert answer.headers["X-ClickHouse-Exception-Code"] == "241"
            assert "MEMORY_LIMIT_EXCEEDED" in answer.text
