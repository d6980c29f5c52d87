"""The HTTP interface. Old and new paths that mean the same share one function."""

from __future__ import annotations

import asyncio
import hmac
import json
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, HTTPException, Path, Query, Request, Response

from services.gateway.control import Control
from services.gateway.queries import Queries
from services.gateway.shapes import (
    Accepted,
    Deleted,
    Health,
    OneOrMany,
    Part,
    Rollback,
    Run,
    RunDetail,
    Status,
    Submission,
    SubmittedTask,
)
from shared.errors import NotFound
from shared.models import LEARNERS, Manifest
from shared.runs import RunRecord, RunState
from shared.service import Service
from shared.store.client import Store
from shared.stream import load_position

REQUIRED = ("generator", "simulator", "recorder")
OCTETS = "application/octet-stream"
MANIFEST_HEADER = "X-Model-Manifest"

RunId = Annotated[
    str | None, Query(description="a run's id; none: the newest active run", max_length=64)
]
Version = Annotated[
    str, Path(description="a version's number, or newest", pattern="^(newest|[1-9][0-9]{0,8})$")
]
SpecBody = Annotated[
    Any,
    Body(
        description="a RunSpec; every field has a default",
        examples=[{"tasks": 1000, "pace": "max", "seed": 7, "workload": {"preset": "hpc"}}],
    ),
]


def make_router(service: Service, control: Control, store: Store) -> APIRouter:
    queries = Queries(store)
    token = service.settings.gateway_token.get_secret_value()

    def allowed(request: Request) -> None:
        """Calls that change something need the token, when one is set."""
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token and not hmac.compare_digest(given.encode(), token.encode()):
            raise HTTPException(
                401,
                "Authorization: Bearer <token> is missing or wrong",
                {"WWW-Authenticate": "Bearer"},
            )

    router = APIRouter()
    guarded = APIRouter(dependencies=[Depends(allowed)])

    async def detail(record: RunRecord) -> RunDetail:
        standings = await asyncio.to_thread(queries.standings, record.run, record.spec.schedulers)
        sent = max((standing.results for standing in standings.values()), default=0)
        if record.active:
            sent = (await load_position(service.bus, record.run)).cursor.next_task
        return RunDetail(**brief(record).model_dump(), tasks=sent, schedulers=standings)

    @router.get("/", include_in_schema=False)
    async def root() -> dict[str, str]:
        return {
            "status": "online",
            "message": "Hybrid ML Scheduler gateway",
            "docs": "/docs",
            "state": "/api/status",
        }

    @router.get("/api/health", tags=["arena"])
    async def health(response: Response) -> Health:
        """Whether NATS, ClickHouse and every service that should be there answer."""
        reports = await service.bus.roll_call()
        problem = await asyncio.to_thread(store.ping)
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

    @router.get("/api/status", tags=["arena"])
    @router.get("/api/simulation/status", tags=["arena"])
    async def status(run: RunId = None) -> Status:
        """The run that is watched, how far each scheduler has come, and who lags behind."""
        lag, rejected = await control.lag(), await control.dead_letters()
        try:
            record = await control.find(run)
        except NotFound:
            if run is not None:
                raise
            return Status(is_running=False, tasks_processed=0, lag=lag, rejected=rejected)
        seen = await detail(record)
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
            lag=lag,
            rejected=rejected,
        )

    @router.get("/api/runs", tags=["runs"])
    async def list_runs(limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[Run]:
        """Newest first."""
        records = await service.runs.refresh()
        return [brief(record) for record in reversed(records)][:limit]

    @guarded.post("/api/runs", status_code=201, tags=["runs"])
    @guarded.post("/api/simulation/start", status_code=201, tags=["runs"])
    async def start(spec: SpecBody = None) -> Run:
        """Start a run. An empty body starts the default one, endless, at a pace one can watch."""
        return brief(await control.start(spec))

    @router.get("/api/runs/{run}", tags=["runs"])
    async def show_run(run: str) -> RunDetail:
        return await detail(await service.runs.get(run))

    @guarded.post("/api/pause", tags=["runs"])
    @guarded.post("/api/simulation/pause", tags=["runs"])
    async def pause(run: RunId = None) -> Run:
        """Hold the stream of tasks; what is on its way is finished. Survives a restart."""
        return brief(await control.move(run, RunState.PAUSED))

    @guarded.post("/api/resume", tags=["runs"])
    @guarded.post("/api/simulation/resume", tags=["runs"])
    async def resume(run: RunId = None) -> Run:
        return brief(await control.move(run, RunState.RUNNING))

    @guarded.post("/api/simulation/stop", tags=["runs"])
    async def stop(run: RunId = None) -> Run:
        """End a run for good."""
        return brief(await control.move(run, RunState.STOPPED))

    @guarded.post("/api/tasks", status_code=202, tags=["tasks"])
    async def submit(body: OneOrMany) -> Accepted:
        """Put tasks of your own into a run: one task, or `{"run": ..., "tasks": [...]}`."""
        submission = Submission(tasks=[body]) if isinstance(body, SubmittedTask) else body
        return await control.submit(submission)

    @router.get("/api/full_history", tags=["history"])
    async def full_history(
        run: RunId = None, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000
    ) -> list[dict[str, Any]]:
        """The newest training rows: task features with the Oracle's share and time."""
        record = await newest(run)
        if record is None:
            return []
        return await asyncio.to_thread(queries.training_data, record.run, limit)

    @router.get("/api/history/comparative", tags=["history"])
    async def comparative(
        run: RunId = None, limit: Annotated[int, Query(ge=1, le=1000)] = 50
    ) -> list[dict[str, Any]]:
        """What every scheduler decided for the newest `limit` tasks, and what it cost."""
        record = await newest(run)
        if record is None:
            return []
        return await asyncio.to_thread(
            queries.comparative, record.run, record.spec.schedulers, limit
        )

    @guarded.delete("/api/history", tags=["history"])
    async def forget() -> Deleted:
        """Delete finished runs with everything they left. Active runs stay."""
        finished = [r.run for r in await service.runs.refresh() if not r.active]
        await asyncio.to_thread(queries.forget, finished)
        for run in finished:
            await control.forget(run)
        return Deleted(runs=len(finished))

    @router.get("/api/models", tags=["models"])
    async def models(
        run: Annotated[str | None, Query(description="none: all runs", max_length=64)] = None,
        name: Annotated[str | None, Query(description="a learner", max_length=64)] = None,
        version: Annotated[int | None, Query(ge=1, le=2**32 - 1)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
    ) -> list[dict[str, Any]]:
        """Every model that was made, shipped or kept back, newest first."""
        return await asyncio.to_thread(queries.models, run, name, version, limit)

    @router.get(
        "/api/models/{run}/{name}/{version}",
        tags=["models"],
        response_class=Response,
        responses={200: {"content": {OCTETS: {}}}},
    )
    async def artefact(run: str, name: str, version: Version) -> Response:
        """A model itself, ONNX or safetensors; `X-Model-Manifest` says which, and its hash."""
        number = None if version == "newest" else int(version)
        model = await control.model(run, name, number)
        # Headers are plain text; JSON has a way to write anything else.
        manifest = json.dumps(model.manifest.model_dump())
        return Response(model.body, media_type=OCTETS, headers={MANIFEST_HEADER: manifest})

    @guarded.post("/api/models/{run}/{name}/rollback", tags=["models"])
    async def roll_back(run: str, name: str, body: Rollback) -> Manifest:
        """Put an older version into service again, as a new version."""
        return await control.roll_back(run, name, body.version)

    async def newest(run: str | None) -> RunRecord | None:
        try:
            return await control.find(run)
        except NotFound:
            if run is not None:
                raise
            return None

    router.include_router(guarded)
    return router


def brief(record: RunRecord) -> Run:
    return Run(
        run=record.run,
        name=record.spec.name,
        state=record.state,
        created_at=record.created_at,
        updated_at=record.updated_at,
        spec=record.spec.model_dump(mode="json"),
    )
