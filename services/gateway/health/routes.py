"""Health of the arena and of this process, status, configuration."""

from __future__ import annotations

import asyncio
from importlib.metadata import PackageNotFoundError, version

from fastapi import APIRouter, Response

from services.gateway.health.refused_clients import RefusedClients
from services.gateway.health.schemas import Component, Config, Health, Status
from services.gateway.health.traffic import BusTraffic
from services.gateway.http.access import Access
from services.gateway.http.response_cache import ResponseCache
from services.gateway.runs.control import RunControl
from services.gateway.runs.detail import RunDetails, pretraining
from services.gateway.runs.schemas import RunQuery, suspended_schedulers
from shared.bus.publisher import TRANSIENT_ERRORS
from shared.bus.service import Service
from shared.errors import ArenaError
from shared.messages.events import ServiceReport
from shared.messages.runs import RunRecord, RunState
from shared.store.client import Store

REQUIRED = ("generator", "simulator", "recorder")


def make_router(
    service: Service,
    store: Store,
    control: RunControl,
    details: RunDetails,
    traffic: BusTraffic,
    refused: RefusedClients,
    access: Access,
    cache: ResponseCache,
) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/api/health", responses={503: {"model": Health}})
    async def health(response: Response) -> Health:
        """Whether NATS, ClickHouse and every service that is needed answer."""
        report = await cache.get("health", lambda: _health(service, store, refused))
        response.status_code = 200 if report.status == "ok" else 503
        return report

    @router.get("/api/status")
    @router.get("/api/simulation/status")
    async def status(run: RunQuery = None) -> Status:
        """A run's state, every scheduler's standing, and the lag of all consumers."""
        record = await control.resolve_if_any(run)
        now = await traffic.read()
        traffic_fields = {
            "lag": now.lag,
            "rejected": sum(now.dead_letters.values()),
            "rejected_by": now.dead_letters,
        }
        if record is None:
            return Status(**traffic_fields)
        key = ("progress", record.run, record.state, record.competing)
        tasks_sent, standings = await cache.get(key, lambda: details.progress(record))
        processed = [
            standings[name].results if name in standings else 0 for name in record.competing
        ]
        return Status(
            **traffic_fields,
            is_running=record.state == RunState.RUNNING,
            tasks_processed=min(processed, default=0),
            run=record.run,
            state=record.state,
            tasks_sent=tasks_sent,
            schedulers=standings,
            suspended=suspended_schedulers(record),
            competing=list(record.competing),
            pretraining=await pretraining(service.bus, record, tasks_sent),
            learners=len(record.learning_schedulers),
        )

    @router.get("/api/config")
    async def config() -> Config:
        """What the dashboard needs to know before its first request."""
        return Config(token_required=access.token_required, version=_version())

    @router.get("/alive", include_in_schema=False, status_code=204)
    async def alive() -> None:
        """The process answers, also without NATS and ClickHouse."""

    @router.get("/health", include_in_schema=False)
    async def process_health() -> Response:
        """The health of this process alone; /api/health is about the arena."""
        report = service.report()
        status = 200 if report.healthy else 503
        return Response(report.model_dump_json(), status, media_type="application/json")

    return router


async def _health(service: Service, store: Store, refused_clients: RefusedClients) -> Health:
    problem = await asyncio.to_thread(store.ping)
    reports: list[ServiceReport] = []
    active: list[RunRecord] = []
    nats = Component(ok=False, problem="not connected")
    if service.bus.connected:  # else each request would run into its timeout
        try:
            reports = await service.bus.roll_call()
            active = [record for record in await service.runs.refresh() if record.active]
            nats = Component(ok=True)
        except (*TRANSIENT_ERRORS, ArenaError) as error:
            nats = Component(ok=False, problem=str(error) or repr(error))
    present = {(report.service, report.scheduler) for report in reports}
    missing = sorted(" ".join(filter(None, pair)) for pair in _needed(active) - present)
    refused = refused_clients.recent()
    healthy = all(report.healthy for report in reports)
    ok = nats.ok and not missing and not refused and problem is None and healthy
    return Health(
        status="ok" if ok else "degraded",
        nats=nats,
        clickhouse=Component(ok=problem is None, problem=problem),
        services=reports,
        missing=missing,
        refused=refused,
    )


def _needed(active: list[RunRecord]) -> set[tuple[str, str]]:
    """What the active runs need: services, each with the name of its scheduler or none."""
    schedulers = {name for record in active for name in record.competing}
    learning = any(record.learning_schedulers for record in active)
    real = any(record.spec.real for record in active)
    required = {
        *REQUIRED,
        *(["trainer"] if learning else []),
        *(["executor"] if real else []),
    }
    return {(name, "") for name in required} | {("scheduler", name) for name in schedulers}


def _version() -> str:
    try:
        return version("hybrid-ml-scheduler")
    except PackageNotFoundError:
        return "unknown"
