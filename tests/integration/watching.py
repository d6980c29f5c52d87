"""A client of the WebSocket, and what it was told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import websockets
from websockets.asyncio.client import ClientConnection

from tests.waiting import PATIENCE

Message = dict[str, Any]


class Watcher:
    """A client, and what it was told."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.largest = 0

    async def next(self) -> Message:
        text = await asyncio.wait_for(self.connection.recv(), PATIENCE)
        self.largest = max(self.largest, len(text.encode() if isinstance(text, str) else text))
        said: Message = json.loads(text)
        return said

    async def until(self, wanted: Callable[[Message], Any]) -> Message:
        for _ in range(1000):
            said = await self.next()
            if wanted(said):
                return said
        raise AssertionError("never said")

    async def update(self) -> Message:
        return await self.until(lambda said: said["type"] == "simulation_update")

    async def closed(self) -> int:
        """With which code the gateway closes it; reads what comes before."""
        try:
            while True:
                await self.next()
        except websockets.ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 1006

    async def weigh(self, **weights: float) -> None:
        await self.connection.send(json.dumps({"type": "weights", **weights}))


@asynccontextmanager
async def watching(
    http: httpx.AsyncClient, run: str | None = None, **options: Any
) -> AsyncIterator[Watcher]:
    address = str(http.base_url).replace("http", "ws").rstrip("/") + "/ws"
    if run is not None:
        address += f"?run={run}"
    async with websockets.connect(address, max_size=10**6, **options) as connection:
        yield Watcher(connection)


def by_name(said: Message) -> dict[str, Message]:
    return {row["name"]: row for row in said["comparison"]}
