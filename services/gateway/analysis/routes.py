"""Ranking, progress, timeline, queues, errors, analysis: computed once a second at most."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query
from pydantic import Field

from services.gateway.analysis import figures, queries
from services.gateway.analysis.device_work import work_between
from services.gateway.analysis.errors import error_tracks
from services.gateway.analysis.progress import ProgressTracks
from services.gateway.analysis.queues import queue_tracks
from services.gateway.analysis.ranking import DEFAULT_WEIGHTS, Averages, Weights, rank
from services.gateway.analysis.schemas import (
    Analysis,
    Comparison,
    Contest,
    Errors,
    Progress,
    Queues,
    Ranked,
    Ranking,
    RunFigures,
    Timeline,
    Utilization,
)
from services.gateway.analysis.task_window import analyse, frame
from services.gateway.analysis.timeline import choose_rows, timeline
from services.gateway.analysis.utilization import fitting_window, utilization
from services.gateway.http.response_cache import ResponseCache
from services.gateway.runs.control import RunControl, competing
from services.gateway.runs.detail import ClusterBounds
from services.gateway.runs.queries import newest_standings, standings
from services.gateway.runs.schemas import RunPath
from shared.domain.hardware.cluster_spec import MOST_DEVICES
from shared.domain.schedulers import ORACLE
from shared.domain.tasks import LARGEST
from shared.errors import NotFound, SpecError
from shared.messages.runs import RunRecord
from shared.store.client import Store

Result = TypeVar("Result")

Weight = Annotated[float | None, Query(ge=0, le=100, allow_inf_nan=False, description="none: 0")]
Moment = Annotated[float, Field(ge=0, le=LARGEST)]  # seconds of simulated time
TaskNumber = Annotated[int, Query(ge=0, lt=2**62, description="a task's number")]
OptionalTask = Annotated[int | None, Query(ge=0, lt=2**62, description="a task's number")]
SchedulerName = Annotated[
    str | None, Query(max_length=32, description="none: the Oracle if it competes, else the first")
]


def make_router(
    store: Store, control: RunControl, cache: ResponseCache, bounds: ClusterBounds
) -> APIRouter:
    router = APIRouter(tags=["analysis"])
    tracks = ProgressTracks(store)

    async def cached(key: Hashable, compute: Callable[..., Result], *arguments: Any) -> Result:
        return await cache.get(key, lambda: asyncio.to_thread(compute, store, *arguments))

    @router.get("/api/runs/{run}/figures")
    async def run_figures(
        run: RunPath, first: TaskNumber = 0, end: OptionalTask = None
    ) -> RunFigures:
        """What each scheduler achieved on the tasks from `first` to before `end`; none: to where
        every scheduler has results."""
        await control.run_book.get(run)
        return await cached(("figures", run, first, end), figures.figures, run, first, end)

    @router.get("/api/runs/{run}/comparison")
    async def comparison(
        run: RunPath,
        other: Annotated[str | None, Query(max_length=64, description="none: its parent")] = None,
        first: OptionalTask = None,
    ) -> Comparison:
        """This run beside another one, on the tasks from `first` on. A fork is compared with its
        parent, and from its first own task on, unless the request says otherwise."""
        record = await control.run_book.get(run)
        if other is None and record.fork is None:
            raise SpecError([f"other: run {run} is not a fork: name the run to compare it with"])
        beside = await control.run_book.get(other or (record.fork.run if record.fork else run))
        if first is None:
            begins = [each.fork.at for each in (record, beside) if each.fork]
            first = max(begins) if begins else 0
        key = ("comparison", run, beside.run, first)
        return await cached(key, figures.compare, run, beside.run, first)

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
        requested = (turnaround, time, energy, cost)
        weights = DEFAULT_WEIGHTS
        if any(weight is not None for weight in requested):
            weights = Weights(*(weight or 0.0 for weight in requested))
        if weights.total <= 0:
            raise SpecError(["turnaround, time, energy, cost: one weight must be above 0"])
        record = await control.run_book.get(run)
        return await cached(
            ("ranking", run, weights, record.competing), _ranking, record, weights, bounds
        )

    @router.get("/api/runs/{run}/progress")
    async def progress(run: RunPath, points: Annotated[int, Query(ge=2, le=500)] = 120) -> Progress:
        """Totals over the run so far, at evenly spaced numbers of tasks, oldest first: the same for
        any size of batches."""
        record = await control.run_book.get(run)
        key = ("progress", run, points, record.competing)
        return await cached(key, _progress, tracks, record, points)

    @router.get("/api/runs/{run}/utilization")
    async def device_utilization(
        run: RunPath,
        scheduler: SchedulerName = None,
        seconds: Annotated[
            float | None,
            Query(
                gt=0,
                le=LARGEST,
                description="of simulated time, up to the newest task; none: as long as some 600 "
                "tasks take to arrive",
            ),
        ] = None,
    ) -> Utilization:
        """How busy each device of a scheduler's virtual cluster was."""
        record = await control.run_book.get(run)
        name = _scheduler(record, scheduler)
        key = ("utilization", run, name, seconds)
        return await cached(key, _utilization, record, name, seconds)

    @router.get("/api/runs/{run}/timeline")
    async def device_timeline(
        run: RunPath,
        scheduler: SchedulerName = None,
        start: Annotated[Moment | None, Query(description="none: some seconds before end")] = None,
        end: Annotated[Moment | None, Query(description="none: the newest arrival")] = None,
        seconds: Annotated[
            float, Query(gt=0, le=LARGEST, description="of simulated time, without a start")
        ] = 60,
        type: Annotated[str | None, Query(max_length=64, description="none: all types")] = None,
        node: Annotated[str | None, Query(max_length=64, description="none: all nodes")] = None,
        offset: Annotated[int, Query(ge=0, le=MOST_DEVICES, description="devices to skip")] = 0,
        devices: Annotated[int, Query(ge=1, le=64, description="to show at most")] = 32,
    ) -> Timeline:
        """Which task ran on which device when. More than 5,000 parts of tasks are added up in
        steps instead."""
        record = await control.run_book.get(run)
        name = _scheduler(record, scheduler)
        stretch, page = (start, end, seconds), (type, node, offset, devices)
        key = ("timeline", run, name, stretch, page)
        return await cached(key, _timeline, record, name, stretch, page)

    @router.get("/api/runs/{run}/queues")
    async def queues(
        run: RunPath,
        seconds: Annotated[
            float | None,
            Query(gt=0, le=LARGEST, description="before the newest arrival; none: the whole run"),
        ] = None,
        points: Annotated[int, Query(ge=2, le=200)] = 60,
    ) -> Queues:
        """How many tasks of each scheduler had arrived and not finished, at evenly spaced moments
        of simulated time."""
        record = await control.run_book.get(run)
        return await cached(
            ("queues", run, seconds, points, record.competing), _queues, record, seconds, points
        )

    @router.get("/api/runs/{run}/errors")
    async def errors(
        run: RunPath,
        scheduler: Annotated[
            str | None, Query(max_length=32, description="none: all that expect times")
        ] = None,
    ) -> Errors:
        """How far the times that schedulers expected were from the real ones, by device type, in
        stretches of tasks from the beginning of the run to its end."""
        record = await control.run_book.get(run)
        names = record.competing if scheduler is None else (competing(record, scheduler),)
        return await cached(("errors", run, names), _errors, record, names)

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
        key = ("analysis", run, name, window, wins_by, record.competing)
        return await cached(key, _analysis, record, name, window, wins_by)

    return router


def _scheduler(record: RunRecord, scheduler: str | None) -> str:
    if scheduler is not None:
        return competing(record, scheduler)
    names = record.competing or record.spec.schedulers
    return ORACLE if ORACLE in names else names[0]


def _ranking(store: Store, record: RunRecord, weights: Weights, bounds: ClusterBounds) -> Ranking:
    bound = bounds.of(record)
    rows = standings(store, record.run, record.competing)
    averages = {name: Averages.of(standing) for name, standing in rows.items() if standing.tasks}
    ranking = [
        Ranked(**dict(rows[place.name].over(bound)), **asdict(place))
        for place in rank(averages, weights)
    ]
    return Ranking(run=record.run, weights=weights, bound=bound, ranking=ranking)


def _progress(_: Store, tracks: ProgressTracks, record: RunRecord, points: int) -> Progress:
    series = tracks.of(record.run, record.competing, points)
    return Progress(run=record.run, schedulers=series)


def _newest(store: Store, record: RunRecord, name: str) -> dict[str, Any]:
    standing = newest_standings(store, record.run, [name]).get(name)
    if standing is None:
        raise NotFound(f"no results of {name} in run {record.run} yet")
    return standing


def _utilization(store: Store, record: RunRecord, name: str, seconds: float | None) -> Utilization:
    newest, platform = _newest(store, record, name), record.spec.platform
    end = newest["clock"]
    start = max(end - (seconds or fitting_window(end, newest["tasks"])), 0.0)
    work = work_between(store, record.run, name, platform, start, end, newest["tasks"])
    return utilization(record.run, name, platform, start, end, work)


def _timeline(
    store: Store,
    record: RunRecord,
    name: str,
    stretch: tuple[float | None, float | None, float],
    page: tuple[str | None, str | None, int, int],
) -> Timeline:
    newest, platform = _newest(store, record, name), record.spec.platform
    start, end, seconds = stretch
    end = newest["clock"] if end is None else end
    start = max(end - seconds, 0.0) if start is None else start
    if start > end:
        raise SpecError([f"start: {start} is after the end, {end}"])
    rows = choose_rows(platform, *page)
    work = work_between(store, record.run, name, platform, start, end, newest["tasks"])
    moments = newest["clock"], newest["makespan"]
    return timeline(record.run, name, platform, rows, (start, end), *moments, work)


def _queues(store: Store, record: RunRecord, seconds: float | None, points: int) -> Queues:
    tracks = queue_tracks(store, record.run, record.competing, seconds, points)
    return Queues(run=record.run, schedulers=tracks)


def _errors(store: Store, record: RunRecord, names: Sequence[str]) -> Errors:
    tracks = error_tracks(store, record.run, names, record.spec.platform)
    return Errors(run=record.run, schedulers=tracks)


def _analysis(store: Store, record: RunRecord, name: str, tasks: int, wins_by: Contest) -> Analysis:
    names = record.competing
    first, last = queries.common_tasks(store, record.run, names, tasks)
    features = queries.features(store, record.run, first, last)
    results = queries.results(store, record.run, names, first, last)
    window = frame(features, results)
    return analyse(record.run, name, names, window, record.spec.platform, wins_by)
