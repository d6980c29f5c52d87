"""Appends tasks that a client submits in bulk, such as a trace, to a run of its own.

Exactly once: the client says which task comes first, and the tasks are stored only if that is the
run's next task. A retry after a lost response gets the next task's number and continues there.
"""

from __future__ import annotations

import asyncio
import time

import pyarrow as pa
from fastapi import HTTPException

from services.gateway.tasks.arrow_body import numbered
from services.gateway.tasks.schemas import BulkAccepted
from shared.bus.back_pressure import BackPressure
from shared.bus.forks import schedulers_without_checkpoint
from shared.bus.model_registry import learners_without_model
from shared.bus.service import Service
from shared.bus.task_stream import Position, load_position
from shared.domain.learning.lockstep import left_of_segment
from shared.domain.spec import RunSpec
from shared.domain.task_checks import submission_problems, with_last_children
from shared.domain.tasks import MOST_BATCH_TASKS, Tasks, first_batch, take
from shared.domain.workload import Cursor
from shared.errors import Conflict, NotAllowed, SpecError, Unavailable
from shared.messages import batches
from shared.messages.runs import RunRecord, RunState
from shared.runtime.gateway_client import NEXT_TASK

# A request waits this long for room before it is refused: a client that retries later would leave
# the schedulers idle.
HOLD_SECONDS = 2.0
RETRY_SECONDS = 1
PUBLISH_SECONDS = 10.0


class BulkSubmission:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._backlogs: dict[str, BackPressure] = {}

    async def append(self, run: str, rows: pa.Table, first: int, last: bool) -> BulkAccepted:
        """Append as many tasks as there is room for; the response says how many."""
        record = await self._record(run)
        tasks = _checked(numbered(rows, first), record.spec)
        position = await self._position(record, first)
        bus = self._service.bus
        backlog = self._backlog(run)
        start = 0
        while start < len(tasks):
            if reason := await self._no_room(record, position, hold=start == 0):
                if start:
                    break
                raise HTTPException(429, reason, {"Retry-After": str(RETRY_SECONDS)})
            rest = take(tasks, slice(start, None))
            size = self._batch_size(first + start, record)
            piece = take(rest, slice(0, first_batch(rest, size, MOST_BATCH_TASKS)))
            end = start + len(piece)
            cursor = Cursor(
                next_task=first + end,
                clock=float(piece.arrival_time[-1]),
                ended=last and end == len(tasks),
            )
            batch = position.next_message(run, piece, cursor)
            try:
                async with asyncio.timeout(PUBLISH_SECONDS):
                    sequence = await bus.publish_batch(batch, after=position.sequence)
            except TimeoutError:
                raise Unavailable(
                    f"the task stream accepted nothing for {PUBLISH_SECONDS:.0f} s; try again later"
                ) from None
            except Conflict:
                await self._position(record, first + start)
                raise  # an unreadable message was in the way; it is gone when the client retries
            backlog.published()
            position = position.after(batch, cursor, sequence)
            start = end
        if position.cursor.ended:
            self._backlogs.pop(run, None)
        return BulkAccepted(
            run=run,
            accepted=start,
            next_task=position.cursor.next_task,
            ended=position.cursor.ended,
        )

    def _batch_size(self, next_task: int, record: RunRecord) -> int:
        size = self._service.settings.batch_tasks
        return min(size, left_of_segment(next_task, record.spec)) if record.in_segments else size

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

    async def _position(self, record: RunRecord, first: int) -> Position:
        """The end of the task stream; raises unless task `first` may be appended there."""
        position = await load_position(self._service.bus, record.run, record.fork)
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

    def _backlog(self, run: str) -> BackPressure:
        if run not in self._backlogs:
            settings = self._service.settings
            self._backlogs[run] = BackPressure(self._service.bus.jetstream, settings.lead_batches)
        return self._backlogs[run]

    async def _no_room(self, record: RunRecord, position: Position, *, hold: bool) -> str | None:
        """Why no batch may be sent now; None: one may. With `hold`, wait for room first."""
        deadline = time.monotonic() + (HOLD_SECONDS if hold else 0.0)
        while True:
            if await self._untrained(record, position):
                reason = f"the learners of run {record.run} are being pre-trained"
            elif not position.sequence and await schedulers_without_checkpoint(
                self._service.bus, record
            ):
                reason = f"run {record.run} waits for the state of the run it was forked from"
            elif await self._backlog(record.run).free_batches(record) > 0:
                return None
            else:
                reason = f"run {record.run} has as many tasks on their way as it may have"
            if time.monotonic() >= deadline:
                return reason
            await asyncio.sleep(self._service.settings.tick.total_seconds())

    async def _untrained(self, record: RunRecord, position: Position) -> bool:
        """Whether the first task still has to wait for pre-trained models."""
        timeout = self._service.settings.pretrain_patience.total_seconds()
        if position.sequence or time.time() > record.created_at + timeout:
            return False
        return bool(await learners_without_model(self._service.bus, record))


def _checked(tasks: Tasks, spec: RunSpec) -> Tasks:
    if problem := batches.task_problem(tasks, spec.workload.reach):
        raise SpecError([problem])
    if problems := submission_problems(tasks, spec):
        raise SpecError([f"row {each.row}, {each.column}: {each.text}" for each in problems])
    return with_last_children(tasks, spec)
