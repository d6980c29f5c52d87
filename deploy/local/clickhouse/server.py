"""The HTTP server: Starlette routes, start and graceful stop."""

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
from .connection import QueryResult
from .encoding import decode, encoder, negotiate
from .engine import Engine
from .errors import UNKNOWN_EXCEPTION, ClickHouseError, TooLarge
from .protocol import Query, parse_query

log = logging.getLogger("clickhouse")

# More than cores, so that inserts find a thread beside slow queries.
_THREADS = 16
# ClickHouse's own limit for a URL, which holds the query of a GET.
_MAX_URL_BYTES = 1 << 20
# A client reads the response only after sending its body, so up to this much more is read first.
_DRAIN_BYTES = 64 << 20
# A smaller response is not worth encoding.
_ENCODE_FROM_BYTES = 512
_SHUTDOWN_SECONDS = 30


class Handler:
    """Handles `/`: authenticate, read, parse, run, respond."""

    def __init__(self, engine: Engine, users: Users, max_body_bytes: int) -> None:
        self._engine = engine
        self._users = users
        self._max_body_bytes = max_body_bytes
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="query")

    async def handle(self, request: Request) -> Response:
        query_id = request.query_params.get("query_id") or str(uuid.uuid4())
        headers = {
            "X-ClickHouse-Server-Display-Name": "embedded",
            "X-ClickHouse-Query-Id": _header_text(query_id),
            "X-ClickHouse-Timezone": self._engine.timezone,
        }
        try:
            return await self._respond(request, headers)
        except ClickHouseError as error:
            return self._refusal(error, headers)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            log.error("query %s failed in the server: %r", query_id, error)
            failure = ClickHouseError.named(
                UNKNOWN_EXCEPTION, "UNKNOWN_EXCEPTION", "The server failed: see its log."
            )
            return self._refusal(failure, headers)

    async def _respond(self, request: Request, headers: dict[str, str]) -> Response:
        params = request.query_params
        user = self._users.authenticate(request.headers, params)
        raw = await _read_body(request, self._max_body_bytes)
        loop = asyncio.get_running_loop()
        readonly = 1 if user.readonly else 2 if request.method in ("GET", "HEAD") else 0

        def run() -> tuple[Query, QueryResult] | None:
            encoding = request.headers.get("content-encoding", "").strip().lower()
            body = decode(raw, encoding, self._max_body_bytes)
            query = parse_query(params.multi_items(), request.headers, body)
            return (query, self._engine.execute(query, readonly=readonly)) if query else None

        outcome = await loop.run_in_executor(self._threads, run)
        if outcome is None:
            if request.method == "POST":
                raise ClickHouseError.named(62, "SYNTAX_ERROR", "Syntax error: Empty query.")
            return PlainTextResponse("Ok.\n")
        query, result = outcome
        headers["X-ClickHouse-Format"] = _header_text(query.output_format)
        headers["X-ClickHouse-Summary"] = result.summary.to_header()
        compress = params.get("enable_http_compression", "0") in ("1", "true")
        name = negotiate(request.headers.get("accept-encoding", "")) if compress else None
        return self._reply(query, result, headers, name)

    def _reply(
        self, query: Query, result: QueryResult, headers: dict[str, str], encoding: str | None
    ) -> Response:
        if not result.complete:
            if encoding:
                headers["Content-Encoding"] = encoding
            chunks = self._chunks(result, encoding)
            return StreamingResponse(chunks, headers=headers, media_type=query.content_type)
        body = result.head
        if encoding and len(body) >= _ENCODE_FROM_BYTES:
            headers["Content-Encoding"] = encoding
            compressor = encoder(encoding)
            body = compressor.compress(body) + compressor.flush()
        return Response(body, headers=headers, media_type=query.content_type)

    async def _chunks(self, result: QueryResult, encoding: str | None) -> AsyncIterator[bytes]:
        """The rest of a long result. The status is already sent, so an error closes the connection
        early: the client must not take the body for complete."""
        loop = asyncio.get_running_loop()
        compressor = encoder(encoding) if encoding else None
        try:
            chunk = result.head
            while chunk:
                yield compressor.compress(chunk) if compressor else chunk
                chunk = await loop.run_in_executor(self._threads, result.next_chunk)
            if compressor:
                yield compressor.flush()
        except ClickHouseError as error:
            log.warning(
                "a query failed after part of its result was sent: %s", error.text.splitlines()[0]
            )
            raise
        finally:
            # Not awaited: this may run in a cancelled task, and closing waits for the engine.
            self._threads.submit(result.close)

    def _refusal(self, error: ClickHouseError, headers: dict[str, str]) -> Response:
        text = error.text
        if "(version " not in text:
            text += f" (version {self._engine.version} (official build))"
        headers["X-ClickHouse-Exception-Code"] = str(error.code)
        return PlainTextResponse(text + "\n", status_code=error.status, headers=headers)


async def _read_body(request: Request, limit: int) -> bytes:
    """The complete body; raises ClientDisconnect if the client disconnects before its end."""
    declared = request.headers.get("content-length", "")
    expects_continue = request.headers.get("expect", "").lower() == "100-continue"
    if expects_continue and declared.isdigit() and int(declared) > limit:
        raise TooLarge(limit)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
        elif size > limit + _DRAIN_BYTES:
            break
    if size > limit:
        raise TooLarge(limit)
    return b"".join(chunks)


def _header_text(value: str) -> str:
    """Without line breaks, with which a client could add headers to the response."""
    return "".join(c if " " <= c <= "~" else "?" for c in value)


async def _ok(request: Request) -> Response:
    return PlainTextResponse("Ok.\n")


async def _unknown_path(request: Request) -> Response:
    text = f"There is no handle {request.url.path}\n\nUse / or /ping for health checks.\n"
    return PlainTextResponse(text, status_code=404)


def create_app(engine: Engine, users: Users, *, max_body_bytes: int) -> Starlette:
    handler = Handler(engine, users, max_body_bytes)
    return Starlette(
        routes=[
            Route("/", handler.handle, methods=["GET", "POST"]),
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
    """Serve until SIGTERM or SIGINT; true if every query had finished when the engine closed."""
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

    # uvicorn handles these while it runs and raises the signal again once it has stopped: our
    # handlers make that a clean exit, and cover the time before.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    # The handler logs an interrupted result in one line; uvicorn would add a traceback.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    server.run(sockets=[listener])
    return engine.close(timeout=_SHUTDOWN_SECONDS)
