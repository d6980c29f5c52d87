"""The stream of tasks that somebody submits in bulk to a run of their own, such as a trace.

Exactly once: whoever sends says which task comes first, and it is stored only if that is the run's
next one. A retry after a lost answer is told where the stream stands, and goes on from there.
"""

from __future__ import annotations

import asyncio
import time

from fastapi import HTTPException

from services.gateway.arrowbody import numbered, read_columns
from services.gateway.shapes import Taken
from shared import batches
from shared.backlog import Backlog, models_missing
from shared.errors import Conflict, NotAllowed, SpecError, Unavailable
from shared.gateway import NEXT_TASK
from shared.runs import RunRecord, RunState
from shared.service import Service
from shared.stream import Position, load_position
from shared.tasks import take
from shared.workload import Cursor

# A full arena holds a request this long before it sends the client away: one that comes back too
# late would leave the schedulers without work.
HOLD_SECONDS = 2.0
RETRY_SECONDS = 1
PUBLISH_SECONDS = 10.0


class Intake:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._backlogs: dict[str, Backlog] = {}

    async def take(self, run: str, body: bytes, first: int, last: bool) -> Taken:
        """Append what there is room for; `next_task` of the answer says how much that was."""
        record = await self._record(run)
        tasks = numbered(read_columns(body), first)
        if found := batches.task_problem(tasks):
            raise SpecError([found])
        position = await self._place(record, first)
        bus, size = self._service.bus, self._service.settings.batch_tasks
        backlog = self._backlog(run)
        start = 0
        while start < len(tasks):
            if hindrance := await self._hindrance(record, position, hold=start == 0):
                if start:
                    break
                raise HTTPException(429, hindrance, {"Retry-After": str(RETRY_SECONDS)})
            piece = take(tasks, slice(start, start + size))
            end = start + len(piece)
            cursor = Cursor(
                next_task=first + end,
                clock=float(piece.arrival_time[-1]),
                ended=last and end == len(tasks),
            )
            batch = position.next_message(run, piece, cursor)
            try:
                sequence = await asyncio.wait_for(
                    bus.publish_batch(batch, after=position.sequence), PUBLISH_SECONDS
                )
            except TimeoutError:
                raise Unavailable(
                    f"the stream of tasks took none for {PUBLISH_SECONDS:.0f} s; try again later"
                ) from None
            except Conflict:
                await self._place(record, first + start)
                raise  # an unreadable message was in the way: a retry finds it gone
            backlog.sent()
            position = position.after(batch, cursor, sequence)
            start = end
        if position.cursor.ended:
            self._backlogs.pop(run, None)
        return Taken(
            run=run,
            accepted=start,
            next_task=position.cursor.next_task,
            ended=position.cursor.ended,
        )

    async def _record(self, run: str) -> RunRecord:
        record = await self._service.runs.get(run)
        if not record.spec.submitted:
            raise NotAllowed(
                f"run {run} generates its tasks; start one with workload.source: submitted"
            )
        if not record.active:
            self._backlogs.pop(run, None)
            raise NotAllowed(f"run {run} is {record.state}: it takes no more tasks")
        return record

    async def _place(self, record: RunRecord, first: int) -> Position:
        """Where the stream stands, which must be where these tasks belong."""
        position = await load_position(self._service.bus, record.run)
        expected = position.cursor.next_task
        if first != expected:
            raise HTTPException(
                409,
                f"the next task of run {record.run} is {expected}, not {first}",
                {NEXT_TASK: str(expected)},
            )
        if position.cursor.ended:
            raise NotAllowed(f"the stream of run {record.run} has ended with task {expected - 1}")
        if record.state == RunState.PAUSED:
            raise HTTPException(
                423,
                f"run {record.run} is paused: it takes tasks again once it is resumed",
                {"Retry-After": str(RETRY_SECONDS)},
            )
        return position

    def _backlog(self, run: str) -> Backlog:
        if run not in self._backlogs:
            settings = self._service.settings
            self._backlogs[run] = Backlog(self._service.bus.stream, settings.lead_batches)
        return self._backlogs[run]

    async def _hindrance(self, record: RunRecord, position: Position, *, hold: bool) -> str | None:
        """Why one more batch may not go, if so. The first of a request is held until it may."""
        deadline = time.monotonic() + (HOLD_SECONDS if hold else 0.0)
        while True:
            if await self._untrained(record, position):
                hindrance = f"the learners of run {record.run} are being pre-trained"
            elif await self._backlog(record.run).room(record) > 0:
                return None
            else:
                hindrance = f"run {record.run} has as many tasks on their way as it may have"
            if time.monotonic() >= deadline:
                return hindrance
            await asyncio.sleep(self._service.settings.tick.total_seconds())

    async def _untrained(self, record: RunRecord, position: Position) -> bool:
        """Whether the first task waits for pre-trained models; not forever."""
        patience = self._service.settings.pretrain_patience.total_seconds()
        if position.sequence or time.time() > record.created_at + patience:
            return False
        return await models_missing(self._service.bus, record)
