"""Keeps the streams short and finishes runs.

TASKS and RESULTS hold a run's state in their last message per subject, so they cannot simply
forget what was read. What those who must read it have acknowledged is purged here, up to that last
message; a finished run's last messages go too, once nothing of it is on its way.
"""

from __future__ import annotations

from contextlib import suppress

from nats.js.api import ConsumerInfo
from nats.js.errors import NotFoundError

from shared import subjects
from shared.bus import Bus
from shared.errors import Unavailable
from shared.events import Event
from shared.models import TEACHERS
from shared.runs import RunBook, RunRecord, RunState
from shared.standing import standing_of
from shared.stream import STATE, cursor_of


class Housekeeping:
    def __init__(self, bus: Bus, runs: RunBook) -> None:
        self._bus = bus
        self._runs = runs

    async def trim(self) -> None:
        for stream in (subjects.TASKS, subjects.RESULTS):
            readers = {
                info.name: info
                for info in await self._bus.stream.consumers_info(stream)
                if info.config.durable_name
            }
            found = await self._bus.stream.stream_info(stream, subjects_filter=">")
            held = found.state.subjects or {}
            roomy = found.state.bytes < (found.config.max_bytes or 0) / 2
            # Looked up after the subjects: a run is in the book before its first message.
            by_run = {record.run: record for record in await self._runs.refresh()}
            for subject, count in held.items():
                run = subject.split(".")[1]
                record = by_run.get(run)
                floor = min(
                    acknowledged(readers[name]) if name in readers else 0
                    for name in _awaited(stream, subject, record, readers, roomy)
                )
                # A record that cannot be read may be that of a run which goes on after an upgrade.
                active = run in self._runs.unreadable or (record is not None and record.active)
                if floor and (count > 1 or not active):
                    with suppress(Unavailable):  # a newer version's, which will trim it
                        await self._trim_subject(stream, subject, floor, keep_last=active)

    async def trim_models(self) -> None:
        """A run that is over keeps its newest models and the first ones: the others would push out
        what is in service in runs that go on."""
        held = await self._subjects(subjects.MODELS, ">")
        over = {record.run for record in await self._runs.refresh() if not record.active}
        for subject, count in held.items():
            if count > 1 and subject.split(".")[1] in over - self._runs.unreadable:
                await self._bus.stream.purge_stream(subjects.MODELS, subject=subject, keep=1)

    async def reject_orphans(self) -> None:
        """Decisions of a scheduler that no run knows have no reader: to the dead letters."""
        held = await self._subjects(subjects.DECISIONS, ">")
        records = await self._runs.refresh()
        known = {name for record in records for name in record.spec.schedulers}
        for subject, count in held.items():
            scheduler = subject.split(".")[2]
            for _ in range(count if scheduler not in known else 0):
                await self._reject_first(subject, f"no run has a scheduler {scheduler!r}")

    async def _reject_first(self, subject: str, reason: str) -> None:
        stream = self._bus.stream
        try:
            message = await stream.get_msg(subjects.DECISIONS, seq=1, subject=subject, next=True)
        except NotFoundError:
            return
        sequence = message.seq or 0
        await self._bus.reject(subject, subjects.DECISIONS, sequence, message.data or b"", reason)
        await stream.delete_msg(subjects.DECISIONS, sequence)

    async def _trim_subject(self, stream: str, subject: str, floor: int, keep_last: bool) -> None:
        # The last one that can be read: behind garbage a run could not go on.
        last = await self._bus.last(subject, stream, STATE[stream])
        if last is None:
            return
        if last.sequence > floor:
            before = floor + 1
        elif keep_last or await self._on_its_way(stream, subject.split(".")[1]):
            before = last.sequence
        else:
            before = last.sequence + 1
        await self._bus.stream.purge_stream(stream, seq=before, subject=subject)

    async def _on_its_way(self, stream: str, run: str) -> bool:
        """Whether a finished run will still bring results: they need the state before them."""
        if await self._subjects(subjects.DECISIONS, f"decisions.{run}.*"):
            return True
        return stream == subjects.RESULTS and bool(
            await self._subjects(subjects.TASKS, subjects.tasks(run))
        )

    async def _subjects(self, stream: str, pattern: str) -> dict[str, int]:
        info = await self._bus.stream.stream_info(stream, subjects_filter=pattern)
        return info.state.subjects or {}

    async def complete(self, record: RunRecord) -> bool:
        """Whether every scheduler has a stored result for every task; if so the run is over."""
        with suppress(Unavailable):  # a newer version's, which will complete it
            return await self._complete(record)
        return False

    async def _complete(self, record: RunRecord) -> bool:
        tasks = await self._bus.last(subjects.tasks(record.run), subjects.TASKS, cursor_of)
        if tasks is None or (record.spec.submitted and not cursor_of(tasks.envelope).ended):
            return False
        if not await self._stored(subjects.TASKS, tasks.sequence):
            return False
        newest = 0
        for scheduler in record.spec.schedulers:
            subject = subjects.results(record.run, scheduler)
            last = await self._bus.last(subject, subjects.RESULTS, standing_of)
            if last is None or last.envelope.batch < tasks.envelope.batch:
                return False
            newest = max(newest, last.sequence)
        if not await self._stored(subjects.RESULTS, newest):
            return False
        # Told before, or a generator that is killed in between would never tell it.
        note = Event(
            kind="run",
            service=self._bus.service,
            run=record.run,
            message=f"run {record.run} is complete: every task has its results",
        )
        await self._bus.tell(note, message_id=f"event.run.{record.run}.completed")
        await self._runs.move(record.run, RunState.COMPLETED)
        return True

    async def _stored(self, stream: str, sequence: int) -> bool:
        try:
            info = await self._bus.stream.consumer_info(stream, subjects.RECORDER_DURABLE)
        except NotFoundError:
            return False
        return acknowledged(info) >= sequence


def acknowledged(info: ConsumerInfo) -> int:
    """Everything up to this stream sequence is done with."""
    return (info.ack_floor.stream_seq if info.ack_floor else 0) or 0


def _awaited(
    stream: str,
    subject: str,
    record: RunRecord | None,
    readers: dict[str, ConsumerInfo],
    roomy: bool,
) -> set[str]:
    """The durables that must have read a subject before it is trimmed.

    Results wait for the recorder. For the trainer they are kept while there is room: what it has
    missed after that it reads back from ClickHouse when it starts again.
    """
    needed = {subjects.RECORDER_DURABLE}
    if stream == subjects.TASKS and record is not None:
        needed |= {subjects.scheduler_durable(name) for name in record.spec.schedulers}
    elif stream == subjects.TASKS:
        needed |= readers.keys()
    elif roomy and record is not None and record.active:
        taught = [name for name, teacher in TEACHERS.items() if subject.endswith(f".{teacher}")]
        needed |= {subjects.trainer_durable(name) for name in taught} & readers.keys()
    return needed
