"""The race in figures: ranking, progress, utilisation, analysis. Each computed once a second."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query

from services.gateway.analysis import Analysis, analyse, frame
from services.gateway.desk import Desk, RunPath
from services.gateway.figures import Progress, Ranked, Ranking, Track, WeightsShape
from services.gateway.ranking import Averages, Weights, rank
from services.gateway.shapes import SchedulerStanding
from services.gateway.utilization import Utilization, utilization
from shared.errors import NotFound, SpecError
from shared.runs import RunRecord

Weight = Annotated[float, Query(ge=0, le=100, allow_inf_nan=False)]
SchedulerName = Annotated[
    str | None,
    Query(max_length=32, description="none: the Oracle if it competes, else the first"),
]


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["analysis"])
    queries, windows, recent = desk.queries, desk.windows, desk.recent

    @router.get("/api/runs/{run}/ranking")
    async def ranking(
        run: RunPath, time: Weight = 1, energy: Weight = 0, cost: Weight = 0
    ) -> Ranking:
        """Schedulers by a weighted score: how many times the best of each measure they take."""
        if time + energy + cost <= 0:
            raise SpecError(["time, energy, cost: one weight must be above 0"])
        record = await desk.service.runs.get(run)
        weights = Weights(time, energy, cost)

        async def make() -> Ranking:
            standings = await asyncio.to_thread(queries.standings, run, record.spec.schedulers)
            return _ranking(run, weights, standings)

        return await recent.get(("ranking", run, weights), make)

    @router.get("/api/runs/{run}/progress")
    async def progress(run: RunPath, points: Annotated[int, Query(ge=2, le=500)] = 120) -> Progress:
        """Totals over the run so far, at evenly spaced moments; the last is the newest."""
        record = await desk.service.runs.get(run)

        async def make() -> Progress:
            found = await asyncio.to_thread(windows.progress, run, record.spec.schedulers, points)
            return Progress(run=run, schedulers={n: _track(rows) for n, rows in found.items()})

        return await recent.get(("progress", run, points), make)

    @router.get("/api/runs/{run}/utilization")
    async def used(
        run: RunPath,
        scheduler: SchedulerName = None,
        seconds: Annotated[
            float, Query(gt=0, le=3600, description="of simulated time, up to the newest task")
        ] = 60,
    ) -> Utilization:
        """How busy each device of a scheduler's virtual cluster was lately."""
        record = await desk.service.runs.get(run)
        name = await _chosen(desk, record, scheduler)

        async def make() -> Utilization:
            return await asyncio.to_thread(_measure, desk, record, name, seconds)

        return await recent.get(("utilization", run, name, seconds), make)

    @router.get("/api/runs/{run}/analysis")
    async def analysis(
        run: RunPath,
        window: Annotated[int, Query(ge=1, le=10_000, description="newest common tasks")] = 1000,
        scheduler: SchedulerName = None,
    ) -> Analysis:
        """What the newest tasks show that every scheduler has a result for."""
        record = await desk.service.runs.get(run)
        name = await _chosen(desk, record, scheduler)

        async def make() -> Analysis:
            return await asyncio.to_thread(_look, desk, record, name, window)

        return await recent.get(("analysis", run, name, window), make)

    return router


async def _chosen(desk: Desk, record: RunRecord, scheduler: str | None) -> str:
    names = record.spec.schedulers
    if scheduler is not None:
        return await desk.competitor(record, scheduler)
    return "oracle" if "oracle" in names else names[0]


def _ranking(run: str, weights: Weights, standings: dict[str, SchedulerStanding]) -> Ranking:
    averages = {
        name: Averages(standing.avg_time, standing.avg_energy, standing.avg_cost)
        for name, standing in standings.items()
        if standing.results
    }
    return Ranking(
        run=run,
        weights=WeightsShape(time=weights.time, energy=weights.energy, cost=weights.cost),
        ranking=[
            Ranked(
                rank=place.rank,
                name=place.name,
                score=place.score,
                pareto=place.pareto,
                avg_time=averages[place.name].time,
                avg_energy=averages[place.name].energy,
                avg_cost=averages[place.name].cost,
            )
            for place in rank(averages, weights)
        ],
    )


def _track(rows: list[dict[str, Any]]) -> Track:
    return Track(
        tasks=[row["tasks"] for row in rows],
        total_time=[row["total_time"] for row in rows],
        total_energy=[row["total_energy"] for row in rows],
        total_cost=[row["total_cost"] for row in rows],
    )


def _measure(desk: Desk, record: RunRecord, name: str, seconds: float) -> Utilization:
    known = desk.queries.newest_standings(record.run, [name])
    if not known:
        raise NotFound(f"no results of {name} in run {record.run} yet")
    end = known[name]["clock"]
    start = max(end - seconds, 0.0)
    parts = desk.windows.parts(record.run, name, start, end)
    return utilization(record.run, name, record.spec, start, end, parts)


def _look(desk: Desk, record: RunRecord, name: str, tasks: int) -> Analysis:
    names = record.spec.schedulers
    first, last = desk.windows.common(record.run, names, tasks)
    features = desk.windows.features(record.run, first, last)
    results = desk.windows.results(record.run, names, first, last)
    return analyse(record.run, name, names, frame(features, results))
