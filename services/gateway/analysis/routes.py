"""Ranking, progress, utilisation and analysis of a run; each is computed once a second at most."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query

from services.gateway.analysis import queries
from services.gateway.analysis.ranking import DEFAULT_WEIGHTS, Averages, Weights, rank
from services.gateway.analysis.schemas import (
    Analysis,
    Contest,
    Progress,
    Ranked,
    Ranking,
    Track,
    Utilization,
)
from services.gateway.analysis.task_window import analyse, frame
from services.gateway.analysis.utilization import utilization
from services.gateway.http.response_cache import ResponseCache
from services.gateway.runs.control import RunControl, competing
from services.gateway.runs.detail import ClusterBounds
from services.gateway.runs.queries import newest_standings, standings
from services.gateway.runs.schemas import RunPath
from shared.domain.schedulers import ORACLE
from shared.errors import NotFound, SpecError
from shared.messages.runs import RunRecord
from shared.store.client import Store

Result = TypeVar("Result")

Weight = Annotated[float | None, Query(ge=0, le=100, allow_inf_nan=False, description="none: 0")]
SchedulerName = Annotated[
    str | None, Query(max_length=32, description="none: the Oracle if it competes, else the first")
]


def make_router(
    store: Store, control: RunControl, cache: ResponseCache, bounds: ClusterBounds
) -> APIRouter:
    router = APIRouter(tags=["analysis"])

    async def cached(key: Hashable, compute: Callable[..., Result], *arguments: Any) -> Result:
        return await cache.get(key, lambda: asyncio.to_thread(compute, store, *arguments))

    @router.get("/api/runs/{run}/ranking")
    async def ranking(
        run: RunPath,
        turnaround: Weight = None,
        time: Weight = None,
        energy: Weight = None,
        cost: Weight = None,
    ) -> Ranking:
        """Schedulers by a weighted score: their ratios to the best mean turnaround, execution time,
        energy and cost per task; without weights, by turnaround. The other measures, and how many
        tasks failed, are beside it."""
        given = (turnaround, time, energy, cost)
        weights = DEFAULT_WEIGHTS
        if any(weight is not None for weight in given):
            weights = Weights(*(weight or 0.0 for weight in given))
        if weights.total <= 0:
            raise SpecError(["turnaround, time, energy, cost: one weight must be above 0"])
        record = await control.run_book.get(run)
        return await cached(("ranking", run, weights), _ranking, record, weights, bounds)

    @router.get("/api/runs/{run}/progress")
    async def progress(run: RunPath, points: Annotated[int, Query(ge=2, le=500)] = 120) -> Progress:
        """Totals over the run so far, at evenly spaced batches, oldest first."""
        record = await control.run_book.get(run)
        return await cached(("progress", run, points), _progress, record, points)

    @router.get("/api/runs/{run}/utilization")
    async def device_utilization(
        run: RunPath,
        scheduler: SchedulerName = None,
        seconds: Annotated[
            float, Query(gt=0, le=3600, description="of simulated time, up to the newest task")
        ] = 60,
    ) -> Utilization:
        """How busy each device of a scheduler's virtual cluster was."""
        record = await control.run_book.get(run)
        name = _scheduler(record, scheduler)
        key = ("utilization", run, name, seconds)
        return await cached(key, _utilization, record, name, seconds)

    @router.get("/api/runs/{run}/analysis")
    async def analysis(
        run: RunPath,
        window: Annotated[int, Query(ge=1, le=10_000, description="newest common tasks")] = 1000,
        scheduler: SchedulerName = None,
        wins_by: Contest = "turnaround",
    ) -> Analysis:
        """Figures over the newest tasks that every scheduler has a result for."""
        record = await control.run_book.get(run)
        name = _scheduler(record, scheduler)
        key = ("analysis", run, name, window, wins_by)
        return await cached(key, _analysis, record, name, window, wins_by)

    return router


def _scheduler(record: RunRecord, scheduler: str | None) -> str:
    if scheduler is not None:
        return competing(record, scheduler)
    names = record.spec.schedulers
    return ORACLE if ORACLE in names else names[0]


def _ranking(store: Store, record: RunRecord, weights: Weights, bounds: ClusterBounds) -> Ranking:
    bound = bounds.of(record)
    rows = standings(store, record.run, record.spec.schedulers)
    averages = {name: Averages.of(standing) for name, standing in rows.items() if standing.tasks}
    ranking = [
        Ranked(**dict(rows[place.name].over(bound)), **asdict(place))
        for place in rank(averages, weights)
    ]
    return Ranking(run=record.run, weights=weights, bound=bound, ranking=ranking)


def _progress(store: Store, record: RunRecord, points: int) -> Progress:
    series = queries.progress(store, record.run, record.spec.schedulers, points)
    tracks = {
        name: Track(**{field: [row[field] for row in rows] for field in Track.model_fields})
        for name, rows in series.items()
    }
    return Progress(run=record.run, schedulers=tracks)


def _utilization(store: Store, record: RunRecord, name: str, seconds: float) -> Utilization:
    standing = newest_standings(store, record.run, [name]).get(name)
    if standing is None:
        raise NotFound(f"no results of {name} in run {record.run} yet")
    end = standing["clock"]
    start = max(end - seconds, 0.0)
    parts = queries.device_parts(store, record.run, name, start, end)
    return utilization(record.run, name, record.spec, start, end, parts)


def _analysis(store: Store, record: RunRecord, name: str, tasks: int, wins_by: Contest) -> Analysis:
    names = record.spec.schedulers
    first, last = queries.common_tasks(store, record.run, names, tasks)
    features = queries.features(store, record.run, first, last)
    results = queries.results(store, record.run, names, first, last)
    window = frame(features, results)
    return analyse(record.run, name, names, window, record.spec.platform, wins_by)
