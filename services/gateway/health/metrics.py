"""The gateway's Prometheus metrics: requests, lag and dead letters."""

from __future__ import annotations

import time
from contextlib import suppress

from fastapi import APIRouter, FastAPI, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway.health.traffic import BusTraffic, Traffic
from shared.bus.client import Bus
from shared.bus.publisher import TRANSIENT_ERRORS
from shared.errors import ArenaError

METHODS = {"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}


def count_requests(app: FastAPI, registry: CollectorRegistry) -> None:
    requests = Counter(
        "hybrid_http_requests_total", "Requests", ["method", "status"], registry=registry
    )
    seconds = Counter("hybrid_http_seconds_total", "Time spent on requests", registry=registry)
    app.add_middleware(RequestMetrics, requests=requests, seconds=seconds)


class RequestMetrics:
    def __init__(self, app: ASGIApp, requests: Counter, seconds: Counter) -> None:
        self._app = app
        self._requests = requests
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                # A client may invent methods; each would be a new time series.
                method = scope["method"] if scope["method"] in METHODS else "other"
                self._requests.labels(method, message["status"]).inc()
                self._seconds.inc(time.perf_counter() - started)
            await send(message)

        await self._app(scope, receive, count)


def make_router(registry: CollectorRegistry, bus: Bus, traffic: BusTraffic) -> APIRouter:
    router = APIRouter()
    lag = Gauge(
        "hybrid_lag_messages",
        "Messages that a consumer has not processed yet",
        ["reader"],
        registry=registry,
    )
    rejected = Gauge(
        "hybrid_dead_letters",
        "Messages in REJECTED, by the service that rejected them",
        ["service"],
        registry=registry,
    )

    @router.get("/api/metrics", include_in_schema=False)
    @router.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        now = Traffic()
        if bus.connected:  # without NATS the process's own metrics are still served
            with suppress(*TRANSIENT_ERRORS, ArenaError):
                now = await traffic.read()
        # Consumers that are gone must not keep their last value.
        lag.clear()
        rejected.clear()
        for reader, messages in now.lag.items():
            lag.labels(reader).set(messages)
        for service, letters in now.dead_letters.items():
            rejected.labels(service).set(letters)
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router
