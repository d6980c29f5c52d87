"""The gateway service: the arena over HTTP, on port 8000."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, generate_latest

from services.gateway import asyncapi, pages, problems
from services.gateway.bounds import Bounds
from services.gateway.control import Control
from services.gateway.desk import Desk, Traffic
from services.gateway.guard import Guard
from services.gateway.live import socket
from services.gateway.live.feeds import Feeds
from services.gateway.live.surroundings import Surroundings
from services.gateway.origins import Origins
from services.gateway.queries import Queries
from services.gateway.routes import make_router
from services.gateway.serving import OPTIONS
from services.gateway.windows import Windows
from shared import logs
from shared.bus import PASSING
from shared.deadletters import LetterBox
from shared.errors import ArenaError
from shared.gateway import MODEL_MANIFEST, NEXT_TASK
from shared.service import Service
from shared.settings import Settings
from shared.store.client import Store

log = logs.logger()

METHODS = {"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}


def make(settings: Settings) -> tuple[Service, FastAPI]:
    service = Service("gateway", settings)
    store = Store(settings)
    queries = Queries(store)
    control = Control(service, queries)
    origins = Origins(settings.gateway_origins)
    windows, bounds = Windows(store, queries), Bounds(store)
    letters = LetterBox(service.bus)
    desk = Desk(service, control, store, queries, windows, bounds, origins, letters)
    feeds = Feeds(Surroundings(service, control, queries), service.registry)
    service.background.append(feeds.run)
    service.closing.append(feeds.close)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        await service.bus.broker.start()
        await service.after_start()
        yield
        await service.stop()
        await service.bus.broker.stop()

    # Its /docs and /redoc work without the internet.
    app = FastAPIOffline(
        title="Hybrid ML Scheduler",
        description="An arena for CPU/GPU schedulers: start runs, submit tasks, read the results.",
        lifespan=lifespan,
    )
    app.include_router(make_router(desk))
    app.include_router(socket.make_router(control, feeds, origins))
    app.include_router(asyncapi.make_router())
    app.add_middleware(problems.BodyLimit, max_bytes=settings.gateway_max_body_bytes)
    problems.install(app)
    if origins.named:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=sorted(origins.named),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=[MODEL_MANIFEST, NEXT_TASK, "Retry-After"],
        )
    app.add_middleware(Guard, settings=settings)
    _add_metrics(app, desk)
    pages.install(app, settings)
    app.add_middleware(socket.Transports)
    return service, app


def _add_metrics(app: FastAPI, desk: Desk) -> None:
    service = desk.service
    requests = Counter(
        "hybrid_http_requests_total", "Requests", ["method", "status"], registry=service.registry
    )
    seconds = Counter(
        "hybrid_http_seconds_total", "Time spent on requests", registry=service.registry
    )
    lag = Gauge(
        "hybrid_lag_messages",
        "Messages a reader of the bus has still to deal with",
        ["reader"],
        registry=service.registry,
    )
    rejected = Gauge(
        "hybrid_dead_letters",
        "Messages in REJECTED, by the service that put them aside",
        ["service"],
        registry=service.registry,
    )

    @app.middleware("http")
    async def count(
        request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        started = time.perf_counter()
        response = await call_next(request)
        # A client may make up methods; each would be a series for ever.
        method = request.method if request.method in METHODS else "other"
        requests.labels(method, response.status_code).inc()
        seconds.inc(time.perf_counter() - started)
        return response

    @app.get("/api/metrics", include_in_schema=False)
    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        traffic = Traffic()
        if service.bus.connected:  # what the process itself counts is told in any case
            with suppress(*PASSING, ArenaError):
                traffic = await desk.traffic()
        # What is not there any more must not stay as it was.
        lag.clear()
        rejected.clear()
        for reader, messages in traffic.lag.items():
            lag.labels(reader).set(messages)
        for name, count in traffic.letters.items():
            rejected.labels(name).set(count)
        return Response(generate_latest(service.registry), media_type=CONTENT_TYPE_LATEST)

    @app.get("/alive", include_in_schema=False, status_code=204)
    async def alive() -> None:
        """The process answers, whatever NATS and ClickHouse do."""

    @app.get("/health", include_in_schema=False)
    async def health() -> Response:
        """Of this process alone; /api/health is about the arena."""
        report = service.report()
        return Response(
            report.model_dump_json(),
            200 if report.healthy else 503,
            media_type="application/json",
        )


def warn_if_open(settings: Settings) -> None:
    """In a container it cannot know where its port is published, so it says so there too."""
    local = settings.http_host == "localhost" or settings.http_host.startswith(("127.", "::1"))
    if not local and not settings.gateway_token.get_secret_value():
        log.warning(
            "whoever reaches the gateway may change runs: beyond this machine set "
            "HYBRID_GATEWAY_TOKEN",
            http_host=settings.http_host,
        )


def main() -> None:
    settings = Settings()
    service, app = make(settings)
    warn_if_open(settings)
    service.run(app, **OPTIONS, forwarded_allow_ips=settings.gateway_trusted_proxies)
