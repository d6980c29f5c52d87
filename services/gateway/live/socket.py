"""The WebSocket: a client joins the feed of a run and is sent what happens there."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query, WebSocket
from starlette.websockets import WebSocketDisconnect

from services.gateway.control import Control
from services.gateway.live.client import Client
from services.gateway.live.feed import Feed
from services.gateway.live.feeds import Feeds
from services.gateway.live.message import text_of
from services.gateway.origins import Origins
from shared.bus import PASSING
from shared.cancelling import cancel
from shared.errors import ArenaError, NotFound

UNKNOWN_RUN, TRY_AGAIN_LATER = 4404, 1013
# How long a client that did not read may take to read that it is dropped.
FAREWELL_SECONDS = 5.0
TRANSPORT = "hybrid.transport"


def make_router(control: Control, feeds: Feeds, origins: Origins) -> APIRouter:
    router = APIRouter()

    @router.websocket("/ws")
    async def watch(
        websocket: WebSocket, run: Annotated[str | None, Query(max_length=64)] = None
    ) -> None:
        if not origins.allow(websocket.headers):
            await websocket.close()  # before it was accepted: a 403
            return
        await websocket.accept()
        client = Client()
        with suppress(WebSocketDisconnect):
            try:
                feed = await feeds.join(await control.find(run), client)
            except NotFound as error:
                await _refuse(websocket, str(error), UNKNOWN_RUN)
                return
            except (*PASSING, ArenaError) as error:
                await _refuse(websocket, str(error) or repr(error), TRY_AGAIN_LATER)
                return
            try:
                await _serve(websocket, client, feed)
            finally:
                feeds.leave(feed, client)
            if client.overrun.is_set():
                feeds.dropped.inc()
                await _drop(websocket)
            elif feed.gone.is_set():
                await _refuse(websocket, f"run {feed.run} was deleted", UNKNOWN_RUN)

    return router


async def _serve(websocket: WebSocket, client: Client, feed: Feed) -> None:
    """Until the client goes, does not read, or its run is deleted."""
    tasks = [
        asyncio.create_task(_send(websocket, client)),
        asyncio.create_task(_receive(websocket, client)),
        asyncio.create_task(_wait(client.overrun)),
        asyncio.create_task(_wait(feed.gone)),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel(*tasks)
    for task in tasks:
        with suppress(asyncio.CancelledError):
            task.result()


async def _send(websocket: WebSocket, client: Client) -> None:
    while True:
        text = await client.next()
        try:
            await websocket.send_text(text)
        except (WebSocketDisconnect, RuntimeError):  # the latter: the server itself has hung up
            return


async def _receive(websocket: WebSocket, client: Client) -> None:
    with suppress(WebSocketDisconnect):
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            client.hear(message.get("text") or "")


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def _refuse(websocket: WebSocket, why: str, code: int) -> None:
    await websocket.send_text(text_of({"type": "error", "message": why}))
    await websocket.close(code, why[:100])


async def _drop(websocket: WebSocket) -> None:
    """A client that does not read cannot be told so either; then its connection is cut."""
    try:
        async with asyncio.timeout(FAREWELL_SECONDS):
            await websocket.close(TRY_AGAIN_LATER, "too slow")
    except TimeoutError:
        transport = websocket.scope.get(TRANSPORT)
        if transport is not None:
            transport.abort()


class Transports:
    """Hands a WebSocket its transport: ASGI cannot cut a connection whose peer does not read."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            protocol = getattr(send, "__self__", None)
            scope[TRANSPORT] = getattr(protocol, "transport", None)
        await self._app(scope, receive, send)
