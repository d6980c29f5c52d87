"""Limits of a request's body: how large it may be and how long it may take to arrive."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway.http.problems import problem

# For the complete body; at the largest size some 70 kB/s.
BODY_SECONDS = 30.0


class BodyLimit:
    """Refuses a body over the limit, whether or not its length is announced."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or int(announced) > self._max_bytes:
            await self._refuse(scope, receive, send)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await self._read(receive)
        except TimeoutError:
            detail = f"the body did not arrive within {BODY_SECONDS:.0f} s"
            await problem(408, "Too slow", detail)(scope, receive, send)
            return
        if body is not None and len(body) > self._max_bytes:
            await self._refuse(scope, receive, send)
        elif body is not None:
            await self._app(scope, _replay(body, receive), send)

    async def _read(self, receive: Receive) -> bytes | None:
        """The body, read until it exceeds the limit; None: the client has disconnected."""
        body, more = bytearray(), True
        while more and len(body) <= self._max_bytes:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
        return bytes(body)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        detail = f"a request body may have {self._max_bytes} bytes at most"
        await problem(413, "Too large", detail)(scope, receive, send)


def _replay(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed
