"""Tasks: submit one's own, page through results, look into one."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, HTTPException, Path, Query, Request

from services.gateway import problems
from services.gateway.desk import Desk, RunPath
from services.gateway.intake import Intake
from services.gateway.rows import Row, TaskPage
from services.gateway.shapes import Accepted, OneOrMany, Submission, SubmittedTask, Taken
from services.gateway.taskdetail import TaskDetail, detail_of
from shared.errors import NotFound
from shared.gateway import ARROW_STREAM, NEXT_TASK

TaskId = Annotated[int, Path(ge=0, le=2**63 - 1, description="a task's number in its run")]

# What the interface's description says of the bulk endpoint, whose body FastAPI does not parse.
BULK_BODY = {
    "requestBody": {
        "required": True,
        "description": "columns size, compute_intensity, memory_required (MB), arrival_time (s), "
        "and dependencies (a list of task ids) if there are any; not compressed",
        "content": {ARROW_STREAM: {"schema": {"type": "string", "format": "binary"}}},
    }
}
BULK_ANSWERS: dict[int | str, dict[str, Any]] = {
    409: {
        **problems.DESCRIBED,
        "description": f"`first` is not the run's next task: the header {NEXT_TASK} says which "
        "is; or the run takes no more",
    },
    423: {**problems.DESCRIBED, "description": "the run is paused; try again after Retry-After"},
    429: {
        **problems.DESCRIBED,
        "description": "as many tasks are on their way as may be; try again after Retry-After",
    },
}


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["tasks"])
    guarded = APIRouter(tags=["tasks"], dependencies=[Depends(desk.allow)])
    intake = Intake(desk.service)

    @guarded.post("/api/tasks", status_code=202)
    async def submit(body: OneOrMany) -> Accepted:
        """Put tasks of your own into a run: one task, or `{"run": ..., "tasks": [...]}`."""
        submission = Submission(tasks=[body]) if isinstance(body, SubmittedTask) else body
        return await desk.control.submit(submission)

    @guarded.post(
        "/api/runs/{run}/tasks",
        status_code=202,
        openapi_extra=BULK_BODY,
        responses=BULK_ANSWERS,
    )
    async def stream(
        request: Request,
        run: RunPath,
        first: Annotated[
            int, Query(ge=0, le=2**62, description="the task id that the first row gets")
        ],
        last: Annotated[bool, Query(description="nothing comes after these tasks")] = False,
        content_type: Annotated[str, Header(include_in_schema=False)] = "",
    ) -> Taken:
        """Put many tasks, such as a stretch of a trace, into a run of `workload.source: submitted`.

        Each is stored once: what has been stored is refused when it comes again, with the place
        where to go on. Answers once the bus has the tasks.
        """
        if content_type.partition(";")[0].strip().lower() != ARROW_STREAM:
            raise HTTPException(415, f"the body must be {ARROW_STREAM}")
        return await intake.take(run, await request.body(), first, last)

    @router.get("/api/runs/{run}/tasks")
    async def page(
        run: RunPath,
        limit: Annotated[
            int,
            Query(ge=1, le=500, description="tasks; each has a row for every scheduler asked for"),
        ] = 50,
        before: Annotated[
            int | None, Query(ge=0, le=2**63 - 1, description="a task's number: older ones")
        ] = None,
        scheduler: Annotated[str | None, Query(max_length=32, description="none: all")] = None,
        status: Annotated[Literal["ok", "failed"] | None, Query(description="none: both")] = None,
    ) -> TaskPage:
        """What schedulers decided and what it cost, newest task first.

        With a status a page looks through 50,000 tasks at most: it may have fewer rows than asked
        for, or none, while `next_before` says where to go on.
        """
        record = await desk.service.runs.get(run)
        names = list(record.spec.schedulers)
        chosen = names if scheduler is None else [await desk.competitor(record, scheduler)]
        rows, end = await asyncio.to_thread(
            desk.windows.page, run, chosen, names, before, limit, status
        )
        return TaskPage(rows=[Row(**row) for row in rows], next_before=end)

    @router.get("/api/runs/{run}/tasks/{task_id}")
    async def one(run: RunPath, task_id: TaskId) -> TaskDetail:
        """One task: its physics, and what every scheduler made of it, explained."""
        record = await desk.service.runs.get(run)
        rows = await asyncio.to_thread(
            desk.queries.results_of_task, run, record.spec.schedulers, task_id
        )
        if not rows:
            raise NotFound(f"no results for task {task_id} in run {run}")
        return detail_of(run, record.spec, rows)

    router.include_router(guarded)
    return router
