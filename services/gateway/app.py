"""The gateway service: the arena over HTTP and WebSocket, on port 8000."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi_offline import FastAPIOffline

from services.gateway.advice import routes as advice
from services.gateway.analysis import routes as analysis
from services.gateway.health import metrics
from services.gateway.health import routes as health
from services.gateway.health.refused_clients import RefusedClients
from services.gateway.health.traffic import BusTraffic
from services.gateway.history import routes as history
from services.gateway.http import asyncapi, dashboard_files, problems, server
from services.gateway.http.access import Access
from services.gateway.http.body_limit import BodyLimit
from services.gateway.http.guard import Guard
from services.gateway.http.response_cache import ResponseCache
from services.gateway.http.security_headers import SecurityHeaders
from services.gateway.live import routes as live
from services.gateway.live.feed_registry import FeedRegistry
from services.gateway.live.sources import FeedSources
from services.gateway.models import routes as models
from services.gateway.rejected import routes as rejected
from services.gateway.reports import routes as reports
from services.gateway.runs import routes as runs
from services.gateway.runs.control import RunControl
from services.gateway.runs.detail import RunDetails
from services.gateway.tasks import routes as tasks
from shared.bus.service import Service
from shared.runtime import logs
from shared.runtime.gateway_client import MODEL_MANIFEST, NEXT_TASK
from shared.runtime.settings import Settings
from shared.store.client import Store

log = logs.logger()


def make(settings: Settings) -> tuple[Service, FastAPI]:
    service = Service("gateway", settings)
    bus, store = service.bus, Store(settings)
    access, cache = Access(settings), ResponseCache()
    control, details = RunControl(service), RunDetails(bus, store)
    traffic = BusTraffic(bus)
    feeds = FeedRegistry(FeedSources(service, store), service.registry)
    refused = RefusedClients(settings)
    service.background += [feeds.run, refused.run]
    service.closing.append(feeds.close)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    # Its /docs and /redoc work without the internet.
    app = FastAPIOffline(
        title="Hybrid ML Scheduler",
        description="An arena for CPU/GPU schedulers: start runs, submit tasks, read the results.",
        lifespan=lifespan,
    )
    api = APIRouter(responses={"default": problems.described("A problem (RFC 9457)")})
    for router in (
        health.make_router(service, store, control, details, traffic, refused, access, cache),
        runs.make_router(bus, store, control, details, access, cache),
        tasks.make_router(service, store, control, access),
        analysis.make_router(store, control, cache, details.bounds),
        history.make_router(service, store, control, access),
        models.make_router(bus, store, access, lambda: service.runs),
        rejected.make_router(service, access),
        reports.make_router(settings.reports_dir),
        advice.make_router(settings.reports_dir, access),
    ):
        api.include_router(router)
    app.include_router(api)
    app.include_router(live.make_router(control, feeds, access.origins))
    app.include_router(metrics.make_router(service.registry, bus, traffic))
    app.include_router(asyncapi.router)
    dashboard_files.install(app, settings)
    problems.install(app)
    _add_middleware(app, settings, service, access)
    return service, app


def _add_middleware(app: FastAPI, settings: Settings, service: Service, access: Access) -> None:
    """A request passes the last one first."""
    app.add_middleware(BodyLimit, max_bytes=settings.gateway_max_body_bytes)
    if access.origins.named:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=sorted(access.origins.named),
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=[MODEL_MANIFEST, NEXT_TASK, "Retry-After"],
        )
    app.add_middleware(Guard, settings=settings)
    metrics.count_requests(app, service.registry)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(live.Transports)


def check_openness(settings: Settings) -> None:
    """Refuses to serve a network without a token; warns if it cannot know who can reach it, such as
    in a container without a setting for its published address."""
    if settings.gateway_token.get_secret_value():
        return
    published = settings.gateway_published
    if published and not _is_local(published) and not settings.gateway_allow_open:
        sys.exit(
            f"HYBRID_PUBLISH={published} lets everybody on the network change runs: run "
            "deploy/make-env, which adds a HYBRID_GATEWAY_TOKEN to .env, or, to allow it, set "
            "HYBRID_GATEWAY_ALLOW_OPEN=true"
        )
    if not _is_local(settings.http_host) and not (published and _is_local(published)):
        log.warning(
            "anyone who can reach the gateway may change runs: set HYBRID_GATEWAY_TOKEN unless "
            "only this machine can",
            http_host=settings.http_host,
        )


def _is_local(address: str) -> bool:
    return address.startswith(("localhost", "127.", "::1", "[::1]"))


def main() -> None:
    settings = Settings()
    service, app = make(settings)
    check_openness(settings)
    service.run(app, **server.OPTIONS, forwarded_allow_ips=settings.gateway_trusted_proxies)
