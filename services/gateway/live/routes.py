"""The WebSocket: a client joins the live feed of a run."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query, WebSocket
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from services.gateway.http.access import Origins
from services.gateway.live.client import Client
from services.gateway.live.feed_registry import FeedRegistry
from services.gateway.live.run_feed import RunFeed
from services.gateway.live.schemas import ErrorMessage
from services.gateway.runs.control import RunControl
from shared.bus.publisher import TRANSIENT_ERRORS
from shared.errors import ArenaError, NotFound
from shared.runtime.cancellation import cancel

UNKNOWN_RUN, TRY_AGAIN_LATER = 4404, 1013
# How long the close frame to a client that does not read may take.
CLOSE_SECONDS = 5.0
TRANSPORT = "hybrid.transport"


def make_router(control: RunControl, feeds: FeedRegistry, origins: Origins) -> APIRouter:
    router = APIRouter()

    @router.websocket("/ws")
    async def connect(
        websocket: WebSocket, run: Annotated[str | None, Query(max_length=64)] = None
    ) -> None:
        if not origins.allow(websocket.headers):
            await websocket.close()  # before it was accepted: a 403
            return
        await websocket.accept()
        client = Client()
        with suppress(WebSocketDisconnect):
            try:
                feed = await feeds.join(await control.resolve(run), client)
            except (*TRANSIENT_ERRORS, ArenaError) as error:
                code = UNKNOWN_RUN if isinstance(error, NotFound) else TRY_AGAIN_LATER
                await _refuse(websocket, str(error) or repr(error), code)
                return
            try:
                await _serve(websocket, client, feed)
            finally:
                feeds.leave(feed, client)
            if client.too_slow.is_set():
                feeds.dropped.inc()
                await _drop(websocket)
            elif feed.deleted.is_set():
                await _refuse(websocket, f"run {feed.run} was deleted", UNKNOWN_RUN)

    return router


async def _serve(websocket: WebSocket, client: Client, feed: RunFeed) -> None:
    """Send and receive until the client leaves or is too slow, or its run is deleted."""
    tasks: list[asyncio.Task[Any]] = [
        asyncio.create_task(_send(websocket, client)),
        asyncio.create_task(_receive(websocket, client)),
        asyncio.create_task(client.too_slow.wait()),
        asyncio.create_task(feed.deleted.wait()),
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
        except (WebSocketDisconnect, RuntimeError):  # the latter: the server has closed it
            return


async def _receive(websocket: WebSocket, client: Client) -> None:
    with suppress(WebSocketDisconnect):
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            client.receive(message.get("text") or "")


async def _refuse(websocket: WebSocket, reason: str, code: int) -> None:
    await websocket.send_text(ErrorMessage(message=reason).model_dump_json())
    await websocket.close(code, reason[:100])


async def _drop(websocket: WebSocket) -> None:
    """A client that does not read may not read the close frame either: then abort."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await websocket.close(TRY_AGAIN_LATER, "too slow")
    except TimeoutError:
        transport = websocket.scope.get(TRANSPORT)
        if transport is not None:
            transport.abort()


class Transports:
    """Gives a WebSocket its transport: ASGI cannot abort a connection."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            protocol = getattr(send, "__self__", None)
            scope[TRANSPORT] = getattr(protocol, "transport", None)
        await self._app(scope, receive, send)
