"""Runs: start, check, list, look into, pause, resume, stop."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query

from services.gateway.desk import Desk, RunId, RunPath, brief
from services.gateway.shapes import Checked, Run, RunDetail
from shared.errors import NotFound
from shared.runs import RunState

SpecBody = Annotated[
    Any,
    Body(
        description="a RunSpec; every field has a default",
        examples=[{"tasks": 1000, "pace": "max", "seed": 7, "workload": {"preset": "hpc"}}],
    ),
]


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["runs"])
    guarded = APIRouter(tags=["runs"], dependencies=[Depends(desk.allow)])
    control, service = desk.control, desk.service

    @router.get("/api/runs")
    async def list_runs(
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        before: Annotated[
            str | None, Query(description="a run's id: those that are older", max_length=64)
        ] = None,
    ) -> list[Run]:
        """Newest first."""
        records = list(reversed(await service.runs.refresh()))
        if before is not None:
            places = [place for place, record in enumerate(records) if record.run == before]
            if not places:
                raise NotFound(f"no run {before!r}")
            records = records[places[0] + 1 :]
        return [brief(record) for record in records[:limit]]

    @guarded.post("/api/runs", status_code=201)
    @guarded.post("/api/simulation/start", status_code=201)
    async def start(spec: SpecBody = None) -> Run:
        """Start a run. An empty body starts the default one, endless, at a pace one can watch."""
        return brief(await control.start(spec))

    @router.post("/api/runs/check")
    async def check(spec: SpecBody = None) -> Checked:
        """What would be wrong with a spec, and what it would be with its defaults."""
        return await control.check(spec)

    @router.get("/api/runs/{run}")
    async def show_run(run: RunPath) -> RunDetail:
        """A run with where every scheduler stands, from what is stored."""
        return await desk.detail(await service.runs.get(run))

    @guarded.post("/api/pause")
    @guarded.post("/api/simulation/pause")
    async def pause(run: RunId = None) -> Run:
        """Hold the stream of tasks; what is on its way is finished. Survives a restart."""
        return brief(await control.move(run, RunState.PAUSED))

    @guarded.post("/api/resume")
    @guarded.post("/api/simulation/resume")
    async def resume(run: RunId = None) -> Run:
        """Let a paused run's tasks flow again."""
        return brief(await control.move(run, RunState.RUNNING))

    @guarded.post("/api/simulation/stop")
    async def stop(run: RunId = None) -> Run:
        """End a run for good."""
        return brief(await control.move(run, RunState.STOPPED))

    router.include_router(guarded)
    return router
