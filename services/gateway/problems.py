"""Errors as problem details (RFC 9457): one place that maps ours to HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import nats.errors
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from services.gateway.shapes import MANY, ONE
from shared.errors import ArenaError, Conflict, NotAllowed, NotFound, SpecError, Unavailable

STATUS: dict[type[ArenaError], tuple[int, str]] = {
    SpecError: (422, "The run spec cannot be run"),
    NotFound: (404, "Not found"),
    NotAllowed: (409, "Not possible in this state"),
    Conflict: (409, "Somebody else was first"),
    Unavailable: (503, "A part of the arena does not answer"),
}

# For all of a request's body, at the largest size some 70 kB/s.
BODY_SECONDS = 30.0

# What a failed call answers, for the interface's description.
DESCRIBED: dict[str, Any] = {
    "description": "A problem (RFC 9457)",
    "content": {
        "application/problem+json": {
            "schema": {
                "type": "object",
                "required": ["type", "title", "status", "detail"],
                "properties": {
                    "type": {"type": "string"},
                    "title": {"type": "string"},
                    "status": {"type": "integer"},
                    "detail": {"type": "string"},
                    "problems": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "a line for each field that is wrong",
                    },
                },
            },
            "example": {
                "type": "about:blank",
                "title": "Not found",
                "status": 404,
                "detail": "no run 'none'",
            },
        }
    },
}


def problem(status: int, title: str, detail: str, problems: list[str] | None = None) -> Response:
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": status}
    body["detail"] = detail
    if problems:
        body["problems"] = problems
    return Response(json.dumps(body), status, media_type="application/problem+json")


def install(app: FastAPI) -> None:
    @app.exception_handler(ArenaError)
    async def ours(request: Request, error: ArenaError) -> Response:
        for kind, (status, title) in STATUS.items():
            if isinstance(error, kind):
                problems = error.problems if isinstance(error, SpecError) else None
                return problem(status, title, str(error), problems)
        return problem(500, "Something went wrong", str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        problems = [explain(entry) for entry in error.errors()]
        return problem(422, "The request is not valid", "; ".join(problems), problems)

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        answer = problem(error.status_code, str(error.detail), str(error.detail))
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(nats.errors.Error)
    async def bus_away(request: Request, error: nats.errors.Error) -> Response:
        return problem(503, STATUS[Unavailable][1], f"NATS: {error}")

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        return problem(500, "Something went wrong", "see the gateway's log")


def explain(entry: Any) -> str:
    """`tasks.0.size: Input should be greater than 0 (got -3)`, without echoing whole bodies."""
    where = ".".join(str(part) for part in entry["loc"] if part not in ("body", ONE, MANY))
    given = entry.get("input")
    shown = f" (got {given!r})" if isinstance(given, (int, float, str)) else ""
    return f"{where}: {entry['msg']}{shown}"[:300].removeprefix(": ")


class BodyLimit:
    """Refuses a request body over the limit, whether or not its length was announced."""

    def __init__(self, app: Any, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if not announced.isdigit() or int(announced) > self._max_bytes:
            await self._refuse(scope, receive, send)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await self._read(receive)
        except TimeoutError:
            refusal = problem(408, "Too slow", f"a body has {BODY_SECONDS:.0f} s to come")
            await refusal(scope, receive, send)
            return
        if body is not None and len(body) > self._max_bytes:
            await self._refuse(scope, receive, send)
        elif body is not None:
            await self._app(scope, _replay(body, receive), send)

    async def _read(self, receive: Any) -> bytes | None:
        """The body, no further than it goes beyond the limit; None: the client has gone."""
        body, more = bytearray(), True
        while more and len(body) <= self._max_bytes:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
        return bytes(body)

    async def _refuse(self, scope: Any, receive: Any, send: Any) -> None:
        detail = f"a request body may have {self._max_bytes} bytes at most"
        await problem(413, "Too large", detail)(scope, receive, send)


def _replay(body: bytes, receive: Any) -> Callable[[], Awaitable[Any]]:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Any:
        return messages.pop() if messages else await receive()

    return replayed
