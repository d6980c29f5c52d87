"""Run control and task submission: what the HTTP interface does to the bus."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import nats.errors
import numpy as np
from nats.js.errors import NotFoundError

from services.gateway.queries import Queries
from services.gateway.shapes import Accepted, Checked, Submission
from shared import models, subjects
from shared.batches import Batch, decode, task_problem
from shared.deadletters import LetterBox
from shared.errors import Conflict, NotAllowed, NotFound, SpecError, Unavailable, Unreadable
from shared.events import Event, ServiceReport
from shared.models import LEARNERS, Manifest, Model, Rollback
from shared.runs import RunBook, RunRecord, RunState
from shared.service import Service
from shared.spec import RunSpec
from shared.stream import load_position
from shared.tasks import Tasks
from shared.workload import Cursor

# Every stream that has durable readers, as people call it.
READ = {
    subjects.TASKS: "tasks",
    subjects.DECISIONS: "decisions",
    subjects.RESULTS: "results",
    subjects.EVENTS: "events",
    subjects.RUNS_STREAM: "runs",
}
SERVICES = ("gateway", "generator", "recorder", "scheduler", "simulator", "trainer")
OTHERS = "others"

SUBMIT_SECONDS = 10.0
ROLLBACK_SECONDS = 10.0
SLOW_ANSWER_SECONDS = 2.0


class Control:
    def __init__(self, service: Service, queries: Queries) -> None:
        self._service = service
        self._bus = service.bus
        self._queries = queries

    @property
    def _runs(self) -> RunBook:
        return self._service.runs

    async def start(self, data: Any) -> RunRecord:
        """Start a run from plain data. Without a list of schedulers, all that are deployed."""
        spec = await self._complete(data)
        record = await self._runs.create(spec)
        await self._tell(record, f"run {record.run} started with {', '.join(spec.schedulers)}")
        return record

    async def check(self, data: Any) -> Checked:
        """Whether `start` would take it; changes nothing."""
        try:
            spec = await self._complete(data)
        except SpecError as error:
            return Checked(ok=False, problems=error.problems, spec=None)
        except Unavailable as error:
            return Checked(ok=False, problems=[str(error)], spec=None)
        return Checked(ok=True, problems=[], spec=spec.model_dump(mode="json"))

    async def _complete(self, data: Any) -> RunSpec:
        spec = RunSpec.parse(data)
        deployed = await self.deployed()
        if not spec.schedulers:
            if not deployed:
                raise Unavailable("no scheduler answers: deploy at least one worker")
            spec = spec.model_copy(update={"schedulers": tuple(deployed)})
        missing = [name for name in spec.schedulers if name not in deployed]
        if missing:
            raise SpecError(
                [
                    f"schedulers: {', '.join(missing)} not deployed; "
                    f"deployed: {', '.join(deployed) or 'none'}"
                ]
            )
        return spec

    async def deployed(self) -> list[str]:
        """Who answers a roll call; one whose workers ask for tasks all the same is waited for."""
        names = _schedulers(await self._bus.roll_call())
        asking = {
            info.name
            for info in await self._bus.stream.consumers_info(subjects.TASKS)
            if info.num_waiting
        }
        if asking - {subjects.RECORDER_DURABLE, *map(subjects.scheduler_durable, names)}:
            names |= _schedulers(await self._bus.roll_call(SLOW_ANSWER_SECONDS))
        return sorted(names)

    async def move(self, run: str | None, state: RunState) -> RunRecord:
        record = await self.find(run, active=True)
        moved = await self._runs.move(record.run, state)
        await self._tell(moved, f"run {record.run} is {state}")
        return moved

    async def find(self, run: str | None, *, active: bool = False) -> RunRecord:
        """The run of that id; without one the newest active run, else the newest."""
        if run is not None:
            return await self._runs.get(run)
        records = await self._runs.refresh()
        running = [record for record in records if record.active]
        if running:
            return running[-1]
        if active or not records:
            raise NotFound("no active run" if active else "no run yet")
        return records[-1]

    async def forget(self, run: str) -> None:
        """Remove a finished run from the bus. Its record first: then nobody takes up the rest."""
        await self._runs.delete(run)
        for stream, subject in (
            (subjects.TASKS, subjects.tasks(run)),
            (subjects.DECISIONS, subjects.decisions(run, "*")),
            (subjects.RESULTS, subjects.results(run, "*")),
            (subjects.MODELS, subjects.model(run, "*")),
        ):
            await self._bus.stream.purge_stream(stream, subject=subject)

    async def submit(self, submission: Submission) -> Accepted:
        """Put a person's tasks into a run's stream; returns once the bus has them."""
        record = await self.find(submission.run, active=True)
        if record.spec.submitted:
            # Their places would be taken from the stream that somebody else numbers.
            raise NotAllowed(
                f"run {record.run} gets its tasks from a stream: POST /api/runs/{record.run}/tasks"
            )
        try:
            return await asyncio.wait_for(self._append(record.run, submission), SUBMIT_SECONDS)
        except TimeoutError:
            raise Unavailable(
                f"the stream of tasks took none for {SUBMIT_SECONDS:.0f} s; try again later"
            ) from None

    async def _append(self, run: str, submission: Submission) -> Accepted:
        while True:
            position = await load_position(self._bus, run)
            # Only now: the stream of a run that is over is emptied, and would begin again.
            record = await self._runs.get(run)
            if not record.active:
                raise NotAllowed(f"run {run} is {record.state}: it takes no more tasks")
            tasks = _number(submission, position.cursor)
            if found := task_problem(tasks):
                raise SpecError([found])
            cursor = Cursor(
                generated=position.cursor.generated,
                next_task=position.cursor.next_task + len(tasks),
                clock=position.cursor.clock,
            )
            batch = position.next_message(run, tasks, cursor)
            try:
                await self._bus.publish_batch(batch, after=position.sequence)
            except Conflict:
                if not await self._was_taken(batch, position.sequence):
                    continue
            return Accepted(run=run, batch=batch.envelope.batch, task_ids=tasks.task_id.tolist())

    async def _was_taken(self, batch: Batch, after: int) -> bool:
        """Whether the stream took this batch after all: the answer was lost, and since then it was
        trimmed with all that was read. Then it is in the store, or another's in its place."""
        subject = batch.envelope.subject
        with suppress(NotFoundError, Unreadable):
            there = await self._bus.stream.get_msg(
                subjects.TASKS, seq=after + 1, subject=subject, next=True
            )
            if decode(there.data or b"", subject).envelope.batch <= batch.envelope.batch:
                return False
        return await asyncio.to_thread(self._queries.has_tasks, batch)

    async def model(self, run: str, name: str, version: int | None) -> Model:
        """A model that the bus still holds; without a version the one in service."""
        _check_place(run, name)
        if version is not None:
            return await models.version(self._bus, run, name, version)
        newest = await models.newest(self._bus, run, name)
        if newest is None:
            raise NotFound(f"no model of {name} in run {run}")
        return newest

    async def roll_back(self, run: str, name: str, version: int) -> Manifest:
        """Have the trainer put an older version into service; it alone ships models."""
        _check_place(run, name)
        asked = Rollback(run=run, name=name, version=version).model_dump_json().encode()
        try:
            answer = await self._bus.broker.request(
                asked, subjects.ROLLBACK, timeout=ROLLBACK_SECONDS
            )
        except (nats.errors.NoRespondersError, TimeoutError):
            raise Unavailable("no trainer answers, and it alone ships models") from None
        said = json.loads(answer.body)
        if "error" in said:
            await self.model(run, name, version)  # not found is another matter
            raise NotAllowed(said["error"])
        return Manifest.model_validate(said)

    async def _tell(self, record: RunRecord, message: str) -> None:
        note = Event(kind="run", service=self._bus.service, run=record.run, message=message)
        stamp = f"{record.state}.{record.updated_at}"
        await self._bus.tell(note, message_id=f"event.run.{record.run}.{stamp}")

    async def lag(self) -> dict[str, int]:
        """Messages that each durable reader has still to deal with, by stream and name."""
        lag = {}
        for stream, name in READ.items():
            for info in await self._bus.stream.consumers_info(stream):
                if info.config.durable_name:
                    pending = (info.num_pending or 0) + (info.num_ack_pending or 0)
                    lag[f"{name}/{info.name}"] = pending
        return lag

    async def dead_letters(self) -> dict[str, int]:
        """How many every service has put aside; others than ours count as one."""
        counts = dict.fromkeys((*SERVICES, OTHERS), 0)
        for service, letters in (await LetterBox(self._bus).counts()).items():
            counts[service if service in SERVICES else OTHERS] += letters
        return counts


def _schedulers(reports: list[ServiceReport]) -> set[str]:
    return {report.scheduler for report in reports if report.service == "scheduler"}


def _check_place(run: str, name: str) -> None:
    """Both become parts of a subject, where some characters mean more than themselves."""
    if not subjects.RUN_ID.fullmatch(run):
        raise NotFound(f"no run {run!r}")
    if name not in LEARNERS:
        raise NotFound(f"no learner {name!r}; there are {', '.join(LEARNERS)}")


def _number(submission: Submission, cursor: Cursor) -> Tasks:
    count = len(submission.tasks)
    given = submission.tasks
    arrivals = [cursor.clock if t.arrival_time is None else t.arrival_time for t in given]
    parents = [sorted(set(task.dependencies)) for task in given]
    return Tasks(
        task_id=np.arange(cursor.next_task, cursor.next_task + count, dtype=np.int64),
        size=np.array([task.size for task in given]),
        compute_intensity=np.array([task.compute_intensity for task in given]),
        memory_required=np.array([task.memory_required for task in given]),
        arrival_time=np.array(arrivals, dtype=np.float64),
        parents=parents if any(parents) else (),
    )
