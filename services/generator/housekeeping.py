"""Trims the streams and completes runs.

The last message of a subject of TASKS or RESULTS is the state of its run, so no retention policy of
NATS fits. Messages before it are purged here once all their consumers have acknowledged them. The
last message itself is purged when the run is finished and none of its messages are in flight.
"""

from __future__ import annotations

from contextlib import suppress

from nats.js.api import ConsumerInfo
from nats.js.errors import NotFoundError

from shared.bus.client import Bus, LastMessage
from shared.bus.consumer_progress import ack_floor, decided_up_to, executed_up_to
from shared.bus.run_book import RunBook
from shared.bus.task_stream import STATE_READERS, cursor_of
from shared.errors import Unavailable
from shared.messages import subjects
from shared.messages.events import Event
from shared.messages.runs import RunRecord, RunState
from shared.messages.standing import standing_of

TRIMMED_STREAMS = (subjects.TASKS, subjects.RESULTS)
# 16 MB of TASKS and 64 MB of RESULTS, unless set otherwise.
SMALL_SHARE = 1 / 32


class Housekeeping:
    def __init__(self, bus: Bus, runs: RunBook) -> None:
        self._bus = bus
        self._runs = runs
        # By run and scheduler, for running runs: the sequences of the last tasks and of the results
        # for them. Results are large, so each is read once.
        self._last_results: dict[tuple[str, str], tuple[int, int]] = {}
        # By stream and subject: the sequence up to which it was purged last. To purge again would
        # remove nothing, but NATS then forgets which messages it is to redeliver until `ack_wait`
        # has passed once more, so that the batch of a worker that died may wait for ever.
        self._purged: dict[tuple[str, str], int] = {}

    async def streams_fill(self) -> bool:
        """Whether one of the trimmed streams has more than a small share of what it can hold."""
        for stream in TRIMMED_STREAMS:
            info = await self._bus.jetstream.stream_info(stream)
            if info.state.bytes > SMALL_SHARE * (info.config.max_bytes or 0):
                return True
        return False

    async def trim(self) -> None:
        for stream in TRIMMED_STREAMS:
            consumers = {
                info.name: info
                for info in await self._bus.jetstream.consumers_info(stream)
                if info.config.durable_name
            }
            info = await self._bus.jetstream.stream_info(stream, subjects_filter=">")
            has_room = info.state.bytes < (info.config.max_bytes or 0) / 2
            # After the subjects: a run is in the run book before its first message is published.
            records = {record.run: record for record in await self._runs.refresh()}
            counts = info.state.subjects or {}
            for key in [key for key in self._purged if key[0] == stream and key[1] not in counts]:
                del self._purged[key]
            for subject, count in counts.items():
                run = subjects.run_of(subject)
                record = records.get(run)
                floor = _processed_up_to(stream, subject, record, consumers, has_room)
                if stream == subjects.TASKS and record is not None and record.spec.real:
                    floor = min([floor, *await self._executed_floors(record)])
                # An unreadable record may be that of a run that continues after an upgrade.
                active = run in self._runs.unreadable or (record is not None and record.active)
                if floor and (count > 1 or not active):
                    # A message of a newer version: that version's generator trims it.
                    with suppress(Unavailable):
                        await self._trim_subject(stream, subject, floor, keep_last=active)

    async def _executed_floors(self, record: RunRecord) -> list[int]:
        """One floor for each scheduler of a real run that may continue, since the executor reads
        the tasks again in the turn of each."""
        left_out = {name for name, each in record.suspended.items() if each.left_out}
        names = set(record.spec.schedulers) - left_out if record.active else set()
        return [await executed_up_to(self._bus, record.run, name) for name in sorted(names)]

    async def trim_models(self) -> None:
        """Keep only the first and the newest models of a finished run, so that there is room for
        the models of active runs."""
        counts = await self._subjects(subjects.MODELS, ">")
        finished = {record.run for record in await self._runs.refresh() if not record.active}
        for subject, count in counts.items():
            if count > 1 and subjects.run_of(subject) in finished - self._runs.unreadable:
                await self._bus.jetstream.purge_stream(subjects.MODELS, subject=subject, keep=1)

    async def reject_orphans(self) -> None:
        """Dead-letter decisions of a scheduler that no run has: they have no consumer."""
        counts = await self._subjects(subjects.DECISIONS, ">")
        records = await self._runs.refresh()
        known = {name for record in records for name in record.spec.schedulers}
        for subject, count in counts.items():
            scheduler = subjects.scheduler_of(subject)
            for _ in range(count if scheduler not in known else 0):
                await self._reject_first(subject, f"no run has a scheduler {scheduler!r}")

    async def _reject_first(self, subject: str, reason: str) -> None:
        jetstream = self._bus.jetstream
        try:
            message = await jetstream.get_msg(subjects.DECISIONS, seq=1, subject=subject, next=True)
        except NotFoundError:
            return
        sequence = message.seq or 0
        await self._bus.reject(subject, subjects.DECISIONS, sequence, message.data or b"", reason)
        await jetstream.delete_msg(subjects.DECISIONS, sequence)

    async def _trim_subject(self, stream: str, subject: str, floor: int, keep_last: bool) -> None:
        if self._purged.get((stream, subject)) == floor + 1:
            return
        # The last readable message: a run cannot continue from an unreadable one.
        last = await self._bus.last_message(subject, stream, STATE_READERS[stream])
        if last is None:
            return
        if last.sequence > floor:
            before = floor + 1
        elif keep_last or await self._in_flight(stream, subjects.run_of(subject)):
            before = last.sequence
        else:
            before = last.sequence + 1
        if self._purged.get((stream, subject)) != before:
            await self._bus.jetstream.purge_stream(stream, seq=before, subject=subject)
            self._purged[stream, subject] = before

    async def _in_flight(self, stream: str, run: str) -> bool:
        """Whether more results of a finished run will be published, which need its state."""
        if await self._subjects(subjects.DECISIONS, f"decisions.{run}.*"):
            return True
        return stream == subjects.RESULTS and bool(
            await self._subjects(subjects.TASKS, subjects.tasks(run))
        )

    async def _subjects(self, stream: str, pattern: str) -> dict[str, int]:
        info = await self._bus.jetstream.stream_info(stream, subjects_filter=pattern)
        return info.state.subjects or {}

    async def complete(self, record: RunRecord) -> bool:
        """Complete the run if every scheduler that competes has a stored result for every task."""
        tasks = await self._bus.last_message(subjects.tasks(record.run), subjects.TASKS, cursor_of)
        if tasks is None or (record.spec.submitted and not cursor_of(tasks.envelope).ended):
            return False
        if not await self._recorded(subjects.TASKS, tasks.sequence):
            return False
        if not record.competing or await self._has_unsimulated_decisions(record):
            return False
        newest = 0
        for scheduler in record.competing:
            results = await self._results_of(record.run, scheduler, tasks)
            if results is None:
                return False
            newest = max(newest, results)
        if not await self._recorded(subjects.RESULTS, newest):
            return False
        if (await self._runs.get(record.run)).competing != record.competing:
            return False  # a suspended scheduler takes part again
        # Published first: a generator killed in between would never publish it.
        without = f", except those of {', '.join(record.suspended)}" if record.suspended else ""
        event = Event(
            kind="run",
            service=self._bus.service,
            run=record.run,
            message=f"run {record.run} is complete: every task has its results{without}",
        )
        await self._bus.publish_event(event, message_id=f"event.run.{record.run}.completed")
        await self._runs.change_state(record.run, RunState.COMPLETED)
        for scheduler in record.spec.schedulers:
            self._last_results.pop((record.run, scheduler), None)
        return True

    async def _has_unsimulated_decisions(self, record: RunRecord) -> bool:
        """Whether decisions of a scheduler that competes still wait for their results."""
        waiting = await self._subjects(subjects.DECISIONS, f"decisions.{record.run}.*")
        return any(subjects.scheduler_of(subject) in record.competing for subject in waiting)

    async def _results_of(self, run: str, scheduler: str, tasks: LastMessage) -> int | None:
        """The sequence of the scheduler's results for the run's last tasks; None: none yet."""
        after, sequence = self._last_results.get((run, scheduler), (0, 0))
        if after == tasks.sequence:
            return sequence
        subject = subjects.results(run, scheduler)
        last = await self._bus.last_message(subject, subjects.RESULTS, standing_of)
        if last is None or last.envelope.batch < tasks.envelope.batch:
            return None
        self._last_results[run, scheduler] = tasks.sequence, last.sequence
        return last.sequence

    async def _recorded(self, stream: str, sequence: int) -> bool:
        try:
            info = await self._bus.jetstream.consumer_info(stream, subjects.RECORDER_DURABLE)
        except NotFoundError:
            return False
        return ack_floor(info) >= sequence


def _processed_up_to(
    stream: str,
    subject: str,
    record: RunRecord | None,
    consumers: dict[str, ConsumerInfo],
    has_room: bool,
) -> int:
    """The sequence up to which no consumer needs the messages of a subject any more.

    Results are kept for the recorder, and for the trainer only while there is room: a restarted
    trainer reads those it missed from ClickHouse.
    """
    required = {subjects.RECORDER_DURABLE}
    if stream == subjects.TASKS and record is None:
        # Not the consumers that get the tasks of one run only.
        required |= {n for n, info in consumers.items() if info.config.filter_subject == "tasks.*"}
    elif stream == subjects.RESULTS and has_room and record is not None and record.active:
        required |= {name for name, info in consumers.items() if _trains_on(subject, info)}
    floors = [ack_floor(consumers[name]) if name in consumers else 0 for name in required]
    if stream == subjects.TASKS and record is not None and not record.spec.real:
        floors += _decided_floors(record, consumers, has_room)
    return min(floors)


def _decided_floors(
    record: RunRecord, consumers: dict[str, ConsumerInfo], has_room: bool
) -> list[int]:
    """One floor for each scheduler. Tasks that a suspended one has not decided are kept for a
    retry, while the run is active and there is room."""
    floors = []
    for name in record.spec.schedulers:
        suspension = record.suspended.get(name)
        if suspension is not None:
            if record.active and has_room and not suspension.left_out:
                floors.append(suspension.next_sequence - 1)
        elif record.active or name not in record.resumed:
            floors.append(decided_up_to(record, name, consumers))
    return floors


def _trains_on(subject: str, info: ConsumerInfo) -> bool:
    """Whether it is a trainer's consumer, of the results of this scheduler."""
    if not info.name.startswith(subjects.trainer_durable("")):
        return False
    filters = info.config.filter_subjects or [info.config.filter_subject or ""]
    return any(subject.endswith(f".{pattern.rpartition('.')[2]}") for pattern in filters)
