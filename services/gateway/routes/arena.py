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
from shared.errors import NotFound
from shared.models import LEARNERS
from shared.presets import PRESETS
from shared.runs import RunState
from shared.spec import RunSpec

REQUIRED = ("generator", "simulator", "recorder")


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["arena"])
    service, control = desk.service, desk.control

    @router.get("/api/health")
    async def health(response: Response) -> Health:
        """Whether NATS, ClickHouse and every service that should be there answer."""
        reports = await service.bus.roll_call()
        problem = await asyncio.to_thread(desk.store.ping)
        active = [record for record in await service.runs.refresh() if record.active]
        wanted = {(name, "") for name in REQUIRED}
        if any(name in LEARNERS for record in active for name in record.spec.schedulers):
            wanted.add(("trainer", ""))
        wanted |= {("scheduler", name) for record in active for name in record.spec.schedulers}
        present = {(report.service, report.scheduler) for report in reports}
        missing = sorted(" ".join(filter(None, pair)) for pair in wanted - present)
        ok = not missing and problem is None and all(report.healthy for report in reports)
        response.status_code = 200 if ok else 503
        return Health(
            status="ok" if ok else "degraded",
            nats=Part(ok=service.bus.connected),
            clickhouse=Part(ok=problem is None, problem=problem),
            services=reports,
            missing=missing,
        )

    @router.get("/api/status")
    @router.get("/api/simulation/status")
    async def status(run: RunId = None) -> Status:
        """The run that is watched, how far each scheduler has come, and who lags behind."""
        lag, letters = await control.lag(), await control.dead_letters()
        around = {"lag": lag, "rejected": sum(letters.values()), "rejected_by": letters}
        try:
            record = await control.find(run)
        except NotFound:
            if run is not None:
                raise
            return Status(is_running=False, tasks_processed=0, **around)
        seen = await desk.detail(record)
        done = [
            seen.schedulers[name].results if name in seen.schedulers else 0
            for name in record.spec.schedulers
        ]
        return Status(
            is_running=record.state == RunState.RUNNING,
            tasks_processed=min(done, default=0),
            run=record.run,
            state=record.state,
            tasks_sent=seen.tasks,
            schedulers=seen.schedulers,
            **around,
        )

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


def _version() -> str:
    try:
        return version("hybrid-ml-scheduler")
    except PackageNotFoundError:
        return "unknown"
