"""Tasks: submit some, page through their results, show one in detail."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, HTTPException, Path, Query, Request
from fastapi.responses import StreamingResponse

from services.gateway.http.access import Access
from services.gateway.http.problems import described
from services.gateway.runs.control import RunControl, competing
from services.gateway.runs.schemas import RunPath
from services.gateway.tasks import queries
from services.gateway.tasks.arrival_queues import arrival_queues
from services.gateway.tasks.arrow_body import read_columns
from services.gateway.tasks.bulk import BulkSubmission
from services.gateway.tasks.choices import choices
from services.gateway.tasks.csv_body import CSV, read_csv
from services.gateway.tasks.detail import detail_of
from services.gateway.tasks.device_names import device_names
from services.gateway.tasks.device_trace import device_trace
from services.gateway.tasks.forked_tasks import ForkedTasks
from services.gateway.tasks.ledger import ledger_csv
from services.gateway.tasks.schemas import (
    Accepted,
    ArrivalQueues,
    BulkAccepted,
    Choices,
    OneOrMany,
    ResultRow,
    Submission,
    SubmittedTask,
    TaskDetail,
    TaskPage,
)
from services.gateway.tasks.submission import TaskSubmission
from shared.bus.service import Service
from shared.runtime.gateway_client import ARROW_STREAM, NEXT_TASK
from shared.store.client import Store

TaskId = Annotated[int, Path(ge=0, le=2**63 - 1, description="a task's number in its run")]

# FastAPI does not parse the body of the bulk endpoint, so its description is written here.
BULK_BODY = {
    "requestBody": {
        "required": True,
        "description": "columns size, compute_intensity, memory_required (MB), arrival_time (s), "
        "and if wanted dependencies (a list of task ids), kind, divisible, width, home, and "
        "last_child (the last task that may depend on it: no later one may); not compressed. In "
        "CSV, dependencies are `1;2;3`",
        "content": {
            ARROW_STREAM: {"schema": {"type": "string", "format": "binary"}},
            CSV: {"schema": {"type": "string"}},
        },
    }
}
BULK_ERRORS: dict[int | str, dict[str, Any]] = {
    409: described(
        f"`first` is not the run's next task, which the header {NEXT_TASK} has; or the run takes "
        "no more tasks"
    ),
    423: described("the run is paused; try again after Retry-After"),
    429: described("the run has as many tasks on their way as it may; try again after Retry-After"),
}


def make_router(service: Service, store: Store, control: RunControl, access: Access) -> APIRouter:
    submission, bulk = TaskSubmission(service.bus, store, control), BulkSubmission(service)
    service.background.append(ForkedTasks(service, store, bulk).follow_runs)
    router = APIRouter(tags=["tasks"])
    guarded = APIRouter(tags=["tasks"], dependencies=[Depends(access.check)])

    @guarded.post("/api/tasks", status_code=202)
    async def submit(body: OneOrMany) -> Accepted:
        """Add tasks to a run: one task, or `{"run": ..., "tasks": [...]}`."""
        return await submission.submit(
            Submission(tasks=[body]) if isinstance(body, SubmittedTask) else body
        )

    @guarded.post(
        "/api/runs/{run}/tasks", status_code=202, openapi_extra=BULK_BODY, responses=BULK_ERRORS
    )
    async def submit_bulk(
        request: Request,
        run: RunPath,
        first: Annotated[
            int, Query(ge=0, le=2**62, description="the task id that the first row gets")
        ],
        last: Annotated[bool, Query(description="no tasks come after these")] = False,
        content_type: Annotated[str, Header(include_in_schema=False)] = "",
    ) -> BulkAccepted:
        """Add many tasks, such as a part of a trace, to a run of `workload.source: submitted`.

        Each task is stored once: a repeated request is refused and gets the number to continue
        with. Responds once the tasks are stored on the bus.
        """
        kind = content_type.partition(";")[0].strip().lower()
        if kind not in (ARROW_STREAM, CSV):
            raise HTTPException(415, f"the body must be {ARROW_STREAM} or {CSV}")
        body = await request.body()
        columns = await asyncio.to_thread(read_csv if kind == CSV else read_columns, body)
        return await bulk.append(run, columns, first, last)

    @router.get("/api/runs/{run}/tasks")
    async def page(
        run: RunPath,
        limit: Annotated[
            int, Query(ge=1, le=500, description="tasks; each has a row for every scheduler")
        ] = 50,
        before: Annotated[
            int | None, Query(ge=0, le=2**63 - 1, description="a task's number: only older tasks")
        ] = None,
        scheduler: Annotated[str | None, Query(max_length=32, description="none: all")] = None,
        status: Annotated[Literal["ok", "failed"] | None, Query(description="none: both")] = None,
        sort: Annotated[
            queries.Sort | None,
            Query(description="order all rows of the run by this column; `limit` counts rows"),
        ] = None,
        descending: bool = False,
        offset: Annotated[int, Query(ge=0, le=100_000, description="rows to skip, sorted")] = 0,
    ) -> TaskPage:
        """Decisions and results of all schedulers, newest task first.

        With a status a page searches 50,000 tasks at most: it may have fewer rows than `limit`,
        or none, although `next_before` says that there are older tasks.
        """
        record = await control.run_book.get(run)
        names = list(record.competing)
        chosen = names if scheduler is None else [competing(record, scheduler)]
        if sort is None:
            rows, end = await asyncio.to_thread(
                queries.page, store, run, chosen, names, before, limit, status
            )
            following = None
        else:
            rows = await asyncio.to_thread(
                queries.sorted_page,
                store,
                run,
                chosen,
                names,
                sort,
                descending=descending,
                offset=offset,
                limit=limit,
                status=status,
            )
            end, following = None, offset + limit if len(rows) == limit else None
        platform = record.spec.platform
        return TaskPage(
            rows=[ResultRow(**row, **device_names(row, platform)) for row in rows],
            next_before=end,
            next_offset=following,
        )

    @router.get("/api/runs/{run}/ledger.csv", response_class=StreamingResponse)
    async def ledger(
        run: RunPath,
        scheduler: Annotated[str | None, Query(max_length=32, description="none: all")] = None,
    ) -> StreamingResponse:
        """Every decision and its result with the task's features, as CSV, oldest task first."""
        record = await control.run_book.get(run)
        names = record.spec.schedulers if scheduler is None else (competing(record, scheduler),)
        return StreamingResponse(
            ledger_csv(store, run, names),
            media_type="text/csv",
            headers={"Content-Disposition": f'attachment; filename="ledger-{run}.csv"'},
        )

    @router.get("/api/runs/{run}/trace.json", response_class=StreamingResponse)
    async def trace(
        run: RunPath,
        scheduler: Annotated[str | None, Query(max_length=32, description="none: all")] = None,
    ) -> StreamingResponse:
        """What every device did and when, in the Trace Event Format of Perfetto and Chrome."""
        record = await control.run_book.get(run)
        names = record.spec.schedulers if scheduler is None else (competing(record, scheduler),)
        return StreamingResponse(
            device_trace(store, run, names, record.spec.platform),
            media_type="application/json",
            headers={"Content-Disposition": f'attachment; filename="trace-{run}.json"'},
        )

    @router.get("/api/runs/{run}/tasks/{task_id}")
    async def one(run: RunPath, task_id: TaskId) -> TaskDetail:
        """One task: its physics, and every scheduler's result with an explanation."""
        record = await control.run_book.get(run)
        rows = await asyncio.to_thread(
            queries.results_of_task, store, run, record.spec.schedulers, task_id
        )
        return detail_of(run, record.spec, rows)

    @router.get("/api/runs/{run}/tasks/{task_id}/queues")
    async def queues_at_arrival(run: RunPath, task_id: TaskId) -> ArrivalQueues:
        """What every scheduler's devices still had to do when this task arrived."""
        record = await control.run_book.get(run)
        return await asyncio.to_thread(arrival_queues, store, run, record.spec, task_id)

    @router.get("/api/runs/{run}/tasks/{task_id}/choices")
    async def choices_of_task(run: RunPath, task_id: TaskId) -> Choices:
        """Why learners chose their device: what they compared, and the model that they used."""
        record = await control.run_book.get(run)
        return await asyncio.to_thread(choices, store, run, record.spec, task_id)

    router.include_router(guarded)
    return router
