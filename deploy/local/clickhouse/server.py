"""The HTTP side: Starlette routes over the engine, and how it starts and stops."""

import asyncio
import logging
import signal
import socket
import uuid
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from .access import Users
from .connection import Answer
from .encoding import decode, encoder, negotiate
from .engine import Engine
from .errors import UNKNOWN_EXCEPTION, ClickHouseError, TooLarge
from .protocol import Query, parse_query

log = logging.getLogger("clickhouse")

# More than the cores, so that slow reports do not keep inserts waiting for a thread.
_THREADS = 16
# ClickHouse's own limit for a URL, which holds the query of a GET.
_MAX_URL_BYTES = 1 << 20
# A client that is still sending does not read an answer: take this much more, then refuse.
_DRAIN_BYTES = 64 << 20
# Below this an encoded answer is hardly smaller.
_ENCODE_FROM_BYTES = 512
_SHUTDOWN_SECONDS = 30


class Handler:
    """Answers `/`: authenticate, read, parse, run, reply."""

    def __init__(self, engine: Engine, users: Users, max_body_bytes: int) -> None:
        self._engine = engine
        self._users = users
        self._max_body_bytes = max_body_bytes
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="query")

    async def __call__(self, request: Request) -> Response:
        query_id = request.query_params.get("query_id") or str(uuid.uuid4())
        headers = {
            "X-ClickHouse-Server-Display-Name": "embedded",
            "X-ClickHouse-Query-Id": _header_text(query_id),
            "X-ClickHouse-Timezone": self._engine.timezone,
        }
        try:
            return await self._answer(request, headers)
        except ClickHouseError as error:
            return self._refusal(error, headers)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            log.error("query %s failed inside the server: %r", query_id, error)
            failure = ClickHouseError.named(
                UNKNOWN_EXCEPTION, "UNKNOWN_EXCEPTION", "The server failed: see its log."
            )
            return self._refusal(failure, headers)

    async def _answer(self, request: Request, headers: dict[str, str]) -> Response:
        params = request.query_params
        user = self._users.authenticate(request.headers, params)
        raw = await _read_body(request, self._max_body_bytes)
        loop = asyncio.get_running_loop()
        readonly = 1 if user.readonly else 2 if request.method in ("GET", "HEAD") else 0

        def run() -> tuple[Query, Answer] | None:
            encoding = request.headers.get("content-encoding", "").strip().lower()
            body = decode(raw, encoding, self._max_body_bytes)
            query = parse_query(params.multi_items(), request.headers, body)
            return (query, self._engine.execute(query, readonly=readonly)) if query else None

        outcome = await loop.run_in_executor(self._threads, run)
        if outcome is None:
            if request.method == "POST":
                raise ClickHouseError.named(62, "SYNTAX_ERROR", "Syntax error: Empty query.")
            return PlainTextResponse("Ok.\n")
        query, answer = outcome
        headers["X-ClickHouse-Format"] = _header_text(query.output_format)
        headers["X-ClickHouse-Summary"] = answer.summary.to_header()
        wanted = params.get("enable_http_compression", "0") in ("1", "true")
        name = negotiate(request.headers.get("accept-encoding", "")) if wanted else None
        return self._reply(query, answer, headers, name)

    def _reply(
        self, query: Query, answer: Answer, headers: dict[str, str], encoding: str | None
    ) -> Response:
        if not answer.complete:
            if encoding:
                headers["Content-Encoding"] = encoding
            chunks = self._chunks(answer, encoding)
            return StreamingResponse(chunks, headers=headers, media_type=query.content_type)
        body = answer.head
        if encoding and len(body) >= _ENCODE_FROM_BYTES:
            headers["Content-Encoding"] = encoding
            packer = encoder(encoding)
            body = packer.compress(body) + packer.flush()
        return Response(body, headers=headers, media_type=query.content_type)

    async def _chunks(self, answer: Answer, encoding: str | None) -> AsyncIterator[bytes]:
        """The rest of a long result. An error on the way breaks the connection off, since the
        status is already sent and a short body must not pass for a whole one."""
        loop = asyncio.get_running_loop()
        packer = encoder(encoding) if encoding else None
        try:
            chunk = answer.head
            while chunk:
                yield packer.compress(chunk) if packer else chunk
                chunk = await loop.run_in_executor(self._threads, answer.next_chunk)
            if packer:
                yield packer.flush()
        except ClickHouseError as error:
            log.warning("a result was cut short: %s", error.text.splitlines()[0])
            raise
        finally:
            # Not awaited: this may run in a cancelled task, and closing waits for the engine.
            self._threads.submit(answer.close)

    def _refusal(self, error: ClickHouseError, headers: dict[str, str]) -> Response:
        text = error.text
        if "(version " not in text:
            text += f" (version {self._engine.version} (official build))"
        headers["X-ClickHouse-Exception-Code"] = str(error.code)
        return PlainTextResponse(text + "\n", status_code=error.status, headers=headers)


async def _read_body(request: Request, limit: int) -> bytes:
    """The whole body; a client that goes away half way raises ClientDisconnect."""
    declared = request.headers.get("content-length", "")
    waits = request.headers.get("expect", "").lower() == "100-continue"
    if waits and declared.isdigit() and int(declared) > limit:
        raise TooLarge(limit)
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size <= limit:
            pieces.append(piece)
        elif size > limit + _DRAIN_BYTES:
            break
    if size > limit:
        raise TooLarge(limit)
    return b"".join(pieces)


def _header_text(value: str) -> str:
    """Client input goes back in a header, where a line break would start another one."""
    return "".join(c if " " <= c <= "~" else "?" for c in value)


async def _ok(request: Request) -> Response:
    return PlainTextResponse("Ok.\n")


async def _unknown_path(request: Request) -> Response:
    text = f"There is no handle {request.url.path}\n\nUse / or /ping for health checks.\n"
    return PlainTextResponse(text, status_code=404)


def create_app(engine: Engine, users: Users, *, max_body_bytes: int) -> Starlette:
    handler = Handler(engine, users, max_body_bytes)

    async def query(request: Request) -> Response:
        return await handler(request)

    return Starlette(
        routes=[
            Route("/", query, methods=["GET", "POST"]),
            Route("/ping", _ok, methods=["GET"]),
            Route("/replicas_status", _ok, methods=["GET"]),
            Route("/{path:path}", _unknown_path, methods=["GET", "POST"]),
        ]
    )


def serve(
    engine: Engine,
    users: Users,
    listener: socket.socket,
    *,
    max_body_bytes: int,
    tls: tuple[Path | None, Path | None] = (None, None),
) -> bool:
    """Serve until SIGTERM or SIGINT; true if every query was through when the engine closed."""
    certificate, key = tls
    config = uvicorn.Config(
        create_app(engine, users, max_body_bytes=max_body_bytes),
        access_log=False,
        log_config=None,
        lifespan="off",
        server_header=False,
        h11_max_incomplete_event_size=_MAX_URL_BYTES,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        timeout_keep_alive=60,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    server = uvicorn.Server(config)

    def stop(*_: object) -> None:
        server.should_exit = True

    # uvicorn takes these over while it runs and raises the signal again once it has stopped:
    # ours make that a clean exit, and cover the moment before.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    # A result that breaks off is logged in one line by the handler, not once more as a trace.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    server.run(sockets=[listener])
    return engine.close(timeout=_SHUTDOWN_SECONDS)
