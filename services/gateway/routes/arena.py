"""How the arena is: health, status, who is deployed, what a run may be made of."""

from __future__ import annotations

import asyncio
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import APIRouter, Response

from services.gateway.desk import Desk, RunId
from services.gateway.presets import describe
from services.gateway.shapes import Config, Health, Part, Preset, Scheduler, Status
from shared.bus import PASSING
from shared.errors import ArenaError
from shared.events import ServiceReport
from shared.models import LEARNERS
from shared.presets import PRESETS
from shared.runs import RunRecord, RunState
from shared.spec import RunSpec

REQUIRED = ("generator", "simulator", "recorder")


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["arena"])
    service = desk.service

    @router.get("/api/health")
    async def health(response: Response) -> Health:
        """Whether NATS, ClickHouse and every service that should be there answer."""
        found = await desk.recent.get("health", lambda: _health(desk))
        response.status_code = 200 if found.status == "ok" else 503
        return found

    @router.get("/api/status")
    @router.get("/api/simulation/status")
    async def status(run: RunId = None) -> Status:
        """The run that is watched, how far each scheduler has come, and who lags behind."""
        return await _status(desk, await desk.newest(run))

    @router.get("/api/schedulers")
    async def schedulers() -> list[Scheduler]:
        """Who is deployed and may compete, with the number of workers that answer."""
        reports = await desk.recent.get("roll call", service.bus.roll_call)
        workers = Counter(report.scheduler for report in reports if report.service == "scheduler")
        described = {report.scheduler: report.description for report in reports}
        return [
            Scheduler(name=name, deployed=count, description=described[name])
            for name, count in sorted(workers.items())
        ]

    @router.get("/api/presets")
    async def presets() -> list[Preset]:
        """The workloads that a spec may name."""
        return [Preset(name=name, description=describe(name)) for name in PRESETS]

    @router.get("/api/spec/schema")
    async def schema() -> dict[str, Any]:
        """The JSON schema of a run spec: every field with its default, limits and meaning."""
        return RunSpec.model_json_schema()

    @router.get("/api/config")
    async def config() -> Config:
        """What a page has to know before it does anything."""
        token = service.settings.gateway_token.get_secret_value()
        return Config(token_required=bool(token), version=_version())

    return router


async def _health(desk: Desk) -> Health:
    problem = await asyncio.to_thread(desk.store.ping)
    reports: list[ServiceReport] = []
    active: list[RunRecord] = []
    nats = Part(ok=False, problem="not connected")
    if desk.service.bus.connected:  # else each question would wait for its time to run out
        try:
            reports = await desk.service.bus.roll_call()
            active = [record for record in await desk.service.runs.refresh() if record.active]
            nats = Part(ok=True)
        except (*PASSING, ArenaError) as error:
            nats = Part(ok=False, problem=str(error) or repr(error))
    present = {(report.service, report.scheduler) for report in reports}
    missing = sorted(" ".join(filter(None, pair)) for pair in _wanted(active) - present)
    healthy = all(report.healthy for report in reports)
    ok = nats.ok and not missing and problem is None and healthy
    return Health(
        status="ok" if ok else "degraded",
        nats=nats,
        clickhouse=Part(ok=problem is None, problem=problem),
        services=reports,
        missing=missing,
    )


def _wanted(active: list[RunRecord]) -> set[tuple[str, str]]:
    """Services, and schedulers by name, that should be there."""
    competing = {name for record in active for name in record.spec.schedulers}
    required = {*REQUIRED, *(["trainer"] if competing.intersection(LEARNERS) else [])}
    return {(name, "") for name in required} | {("scheduler", name) for name in competing}


async def _status(desk: Desk, record: RunRecord | None) -> Status:
    traffic = await desk.traffic()
    said = {
        "lag": traffic.lag,
        "rejected": sum(traffic.letters.values()),
        "rejected_by": traffic.letters,
    }
    if record is None:
        return Status(is_running=False, tasks_processed=0, **said)
    key = ("advance", record.run, record.state)
    advance = await desk.recent.get(key, lambda: desk.advance(record))
    done = [
        advance.schedulers[name].results if name in advance.schedulers else 0
        for name in record.spec.schedulers
    ]
    return Status(
        is_running=record.state == RunState.RUNNING,
        tasks_processed=min(done, default=0),
        run=record.run,
        state=record.state,
        tasks_sent=advance.sent,
        schedulers=advance.schedulers,
        **said,
    )


def _version() -> str:
    try:
        return version("hybrid-ml-scheduler")
    except PackageNotFoundError:
        return "unknown"
