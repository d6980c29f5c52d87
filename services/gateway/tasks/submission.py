"""Appends a few submitted tasks to the stream of a run that generates its own."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from nats.js.errors import NotFoundError

from services.gateway.runs.control import RunControl
from services.gateway.tasks import queries
from services.gateway.tasks.schemas import Accepted, Submission, SubmittedTask
from shared.bus.client import Bus
from shared.bus.task_stream import load_position
from shared.domain.spec import RunSpec
from shared.domain.task_checks import TaskProblem, submission_problems, with_last_children
from shared.domain.tasks import USUAL, Tasks
from shared.domain.workload import Cursor
from shared.errors import Conflict, NotAllowed, SpecError, Unavailable, Unreadable
from shared.messages import subjects
from shared.messages.batches import Batch, decode, task_problem
from shared.store.client import Store

SUBMIT_SECONDS = 10.0


class TaskSubmission:
    def __init__(self, bus: Bus, store: Store, control: RunControl) -> None:
        self._bus = bus
        self._store = store
        self._control = control
        # Concurrent submissions to one run would only invalidate each other's position.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def submit(self, submission: Submission) -> Accepted:
        """Returns once the tasks are stored in the stream."""
        record = await self._control.resolve(submission.run, active=True)
        if record.spec.submitted:
            # Such a run's client numbers the tasks itself.
            raise NotAllowed(
                f"run {record.run} takes its tasks in bulk: POST /api/runs/{record.run}/tasks"
            )
        try:
            async with (
                asyncio.timeout(SUBMIT_SECONDS),
                self._locks.setdefault(record.run, asyncio.Lock()),
            ):
                return await self._append(record.run, record.spec, submission)
        except TimeoutError:
            raise Unavailable(
                f"the task stream accepted nothing for {SUBMIT_SECONDS:.0f} s; try again later"
            ) from None

    async def _append(self, run: str, spec: RunSpec, submission: Submission) -> Accepted:
        while True:
            fork = (await self._control.run_book.local(run)).fork
            position = await load_position(self._bus, run, fork)
            # Checked after the position: a finished run's stream is purged and would restart at 0.
            record = await self._control.run_book.get(run)
            if not record.active:
                raise NotAllowed(f"run {run} is {record.state}: it takes no more tasks")
            tasks = _numbered(submission, position.cursor)
            if problem := task_problem(tasks, spec.workload.reach):
                raise SpecError([problem])
            if problems := submission_problems(tasks, spec):
                raise SpecError([_explain(problem, len(tasks)) for problem in problems])
            tasks = with_last_children(tasks, spec)
            cursor = replace(position.cursor, next_task=position.cursor.next_task + len(tasks))
            batch = position.next_message(run, tasks, cursor)
            try:
                await self._bus.publish_batch(batch, after=position.sequence)
            except Conflict:
                if not await self._was_accepted(batch, position.sequence):
                    continue
            return Accepted(run=run, batch=batch.envelope.batch, task_ids=tasks.task_id.tolist())

    async def _was_accepted(self, batch: Batch, after: int) -> bool:
        """Whether the stream accepted this batch although the acknowledgement was lost. If the
        stream has been trimmed since, the store has this batch or another one in its place."""
        subject = batch.envelope.subject
        with suppress(NotFoundError, Unreadable):
            message = await self._bus.jetstream.get_msg(
                subjects.TASKS, seq=after + 1, subject=subject, next=True
            )
            if decode(message.data or b"", subject).envelope.batch <= batch.envelope.batch:
                return False
        return await asyncio.to_thread(queries.is_stored, self._store, batch)


def _numbered(submission: Submission, cursor: Cursor) -> Tasks:
    tasks = submission.tasks
    arrivals = [cursor.clock if t.arrival_time is None else t.arrival_time for t in tasks]
    parents = [sorted(set(task.dependencies)) for task in tasks]
    return Tasks(
        task_id=np.arange(cursor.next_task, cursor.next_task + len(tasks), dtype=np.int64),
        size=np.array([task.size for task in tasks]),
        compute_intensity=np.array([task.compute_intensity for task in tasks]),
        memory_required=np.array([task.memory_required for task in tasks]),
        arrival_time=np.array(arrivals, dtype=np.float64),
        parents=parents if any(parents) else (),
        kind=[task.kind for task in tasks] if any(task.kind for task in tasks) else (),
        **{name: _unless_usual(name, tasks) for name in USUAL},
        last_child=np.array([task.last_child for task in tasks]),
    )


def _unless_usual(name: str, tasks: list[SubmittedTask]) -> Any:
    values = [getattr(task, name) for task in tasks]
    return None if all(value == USUAL[name] for value in values) else np.array(values)


def _explain(problem: TaskProblem, count: int) -> str:
    """In the form of the errors of a request's fields."""
    field = problem.column if count == 1 else f"tasks.{problem.row}.{problem.column}"
    return f"{field}: {problem.text}"
