"""Runs: start, check, list, show, pause, resume, stop; what a spec may name."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query

from services.gateway.http.access import Access
from services.gateway.http.response_cache import ResponseCache
from services.gateway.runs.control import RunControl
from services.gateway.runs.detail import RunDetails, searchable, summary
from services.gateway.runs.forks import Forks
from services.gateway.runs.presets import describe
from services.gateway.runs.schemas import (
    ForkRequest,
    Platform,
    Preset,
    Run,
    RunDetail,
    RunNotes,
    RunPath,
    RunQuery,
    Scheduler,
    SchedulerPath,
    SpecCheck,
)
from shared.bus.client import Bus
from shared.domain.spec import RunSpec
from shared.domain.spec_parts.learning_spec import Objective
from shared.domain.spec_parts.workload_presets import PRESETS
from shared.errors import NotFound
from shared.messages.runs import RunState
from shared.platforms.platform_file import shipped
from shared.store.client import Store

SpecBody = Annotated[
    Any,
    Body(
        description="a RunSpec; every field has a default",
        examples=[{"tasks": 1000, "pace": "max", "seed": 7, "workload": {"preset": "hpc"}}],
    ),
]


def make_router(
    bus: Bus,
    store: Store,
    control: RunControl,
    details: RunDetails,
    access: Access,
    cache: ResponseCache,
) -> APIRouter:
    forks = Forks(control, bus, store)
    router = APIRouter(tags=["runs"])
    guarded = APIRouter(tags=["runs"], dependencies=[Depends(access.check)])

    # Measured tables are large; GET /api/runs/{run} has them.
    without_tables = {"__all__": {"spec": {"physics": {"measured"}}}}

    @router.get("/api/runs", response_model_exclude=without_tables)
    async def list_runs(
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        before: Annotated[
            str | None, Query(description="a run's id: only older runs", max_length=64)
        ] = None,
        search: Annotated[
            str,
            Query(
                description="words that are all in its id, name, tags, notes, state, workload or "
                "device types",
                max_length=200,
            ),
        ] = "",
    ) -> list[Run]:
        """Newest first, without the measured tables of their specs."""
        words = search.lower().split()
        records = [
            record
            for record in reversed(await control.run_book.refresh())
            if not words or all(word in searchable(record) for word in words)
        ]
        if before is not None:
            ids = [record.run for record in records]
            if before not in ids:
                raise NotFound(f"no run {before!r}")
            records = records[ids.index(before) + 1 :]
        return [summary(record) for record in records[:limit]]

    @guarded.post("/api/runs", status_code=201)
    @guarded.post("/api/simulation/start", status_code=201)
    async def start(spec: SpecBody = None) -> Run:
        """Start a run. An empty body starts the default one: endless, 20 tasks per second."""
        return summary(await control.start(spec))

    @router.post("/api/runs/check")
    async def check(spec: SpecBody = None) -> SpecCheck:
        """Validate a spec without starting it; returns it with all defaults filled in."""
        return await control.check(spec)

    @router.get("/api/runs/{run}")
    async def show_run(run: RunPath) -> RunDetail:
        """A run with every scheduler's standing, from the store."""
        return await details.detail(await control.run_book.get(run))

    @guarded.post("/api/runs/{run}/fork", status_code=201)
    async def fork(run: RunPath, request: ForkRequest) -> Run:
        """Start a run that shares everything before a task with this one, and goes on from there
        with other settings. Tasks of a workflow, and submitted ones that arrive together, stay
        together: `fork.at` of the response says where it begins."""
        return summary(await forks.start(run, request))

    @guarded.post("/api/pause")
    @guarded.post("/api/simulation/pause")
    async def pause(run: RunQuery = None) -> Run:
        """Stop generating tasks; tasks already sent are finished. Survives a restart."""
        return summary(await control.change_state(run, RunState.PAUSED))

    @guarded.post("/api/resume")
    @guarded.post("/api/simulation/resume")
    async def resume(run: RunQuery = None) -> Run:
        """Continue a paused run."""
        return summary(await control.change_state(run, RunState.RUNNING))

    @guarded.post("/api/simulation/stop")
    async def stop(run: RunQuery = None) -> Run:
        """End a run for good."""
        return summary(await control.change_state(run, RunState.STOPPED))

    @guarded.put("/api/runs/{run}/notes")
    async def set_notes(run: RunPath, notes: RunNotes) -> Run:
        """Replace the tags and notes of a run, which may be finished."""
        tags = tuple(dict.fromkeys(notes.tags))
        return summary(await control.run_book.set_notes(run, tags, notes.notes))

    @guarded.put("/api/runs/{run}/objective")
    async def set_objective(run: RunPath, objective: Objective) -> Run:
        """Let the learners of an active run minimise something else from now on. Not in lockstep,
        where results follow from the spec."""
        return summary(await control.set_objective(run, objective))

    @guarded.post("/api/runs/{run}/schedulers/{scheduler}/retry")
    async def retry(run: RunPath, scheduler: SchedulerPath) -> Run:
        """Let a suspended scheduler take part again, from the first batch that it has not decided.
        A policy of a file is loaded again."""
        return summary(await control.retry(run, scheduler))

    @guarded.post("/api/runs/{run}/schedulers/{scheduler}/leave-out")
    async def leave_out(run: RunPath, scheduler: SchedulerPath) -> Run:
        """Finish a run without a suspended scheduler. It cannot be taken back."""
        return summary(await control.leave_out(run, scheduler))

    @router.get("/api/schedulers")
    async def schedulers() -> list[Scheduler]:
        """The schedulers that are deployed, with the number of workers that answer."""
        reports = await cache.get("roll call", bus.roll_call)
        workers = Counter(report.scheduler for report in reports if report.service == "scheduler")
        descriptions = {report.scheduler: report.description for report in reports}
        return [
            Scheduler(name=name, deployed=count, description=descriptions[name])
            for name, count in sorted(workers.items())
        ]

    @router.get("/api/presets")
    async def presets() -> list[Preset]:
        """The workloads that a spec may name."""
        return [Preset(name=name, description=describe(name)) for name in PRESETS]

    @router.get("/api/platforms")
    async def platforms() -> list[Platform]:
        """The machines that come with the arena; a run uses one by the fields in `spec`."""
        return [
            Platform(
                name=platform.name,
                description=platform.description,
                sources=list(platform.sources),
                assumed=list(platform.assumed),
                spec=platform.spec_fields(),
            )
            for platform in shipped().values()
        ]

    @router.get("/api/spec/schema")
    async def schema() -> dict[str, Any]:
        """The JSON schema of a run spec: every field with its default, limits and meaning."""
        return RunSpec.model_json_schema()

    router.include_router(guarded)
    return router
