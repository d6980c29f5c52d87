"""Deletes finished runs, so that no late message stores a part of them again.

A run leaves the run book first: from then on the recorder rejects its messages. The rows are
deleted once the recorder has stored everything that the streams held at that time. Rows that remain
(the deletion was interrupted, or an event came late) belong to a run that is not in the run book:
the next deletion removes them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from services.gateway.history import queries
from services.gateway.history.schemas import Deleted
from shared.bus.consumer_progress import ack_floor
from shared.bus.forks import needed_by_forks
from shared.bus.service import Service
from shared.messages import subjects
from shared.messages.runs import RunRecord
from shared.store.client import Store

WORK = (subjects.TASKS, subjects.DECISIONS, subjects.RESULTS)  # in the order of the data flow
RECORDED = (subjects.TASKS, subjects.RESULTS, subjects.EVENTS, subjects.RUNS_STREAM)

# The generator trims its streams every two seconds; the recorder stores within one.
WAIT_SECONDS = 6.0
POLL_SECONDS = 0.1
# A run that ended longer ago than this is deleted even if its messages were never processed.
ABANDONED_SECONDS = 300.0


class HistoryDeletion:
    def __init__(self, service: Service, store: Store) -> None:
        self._service = service
        self._store = store

    async def delete(self) -> Deleted:
        """Delete finished runs; those with messages on the bus stay for the next deletion."""
        records = await self._service.runs.refresh()
        needed = needed_by_forks(records)
        finished = [each for each in records if not each.active and each.run not in needed]
        if not await self._all_recorded():
            return Deleted(runs=0, left=len(finished))
        await _soon(lambda: self._drained(finished))
        busy = await self._busy()
        leaving = [r.run for r in finished if r.run not in busy or _abandoned(r)]
        for run in leaving:
            await self._remove_from_bus(run)
        if not await self._all_recorded():
            return Deleted(runs=0, left=len(finished))
        stored = await asyncio.to_thread(queries.stored_runs, self._store)
        gone = [run for run in stored if not await self._service.runs.exists(run)]
        await asyncio.to_thread(queries.delete_runs, self._store, gone)
        return Deleted(runs=len({*leaving, *gone}), left=len(finished) - len(leaving))

    async def _remove_from_bus(self, run: str) -> None:
        """The record first: then no service starts to process what is left."""
        await self._service.runs.delete(run)
        for stream, subject in (
            (subjects.TASKS, subjects.tasks(run)),
            (subjects.DECISIONS, subjects.decisions(run, "*")),
            (subjects.RESULTS, subjects.results(run, "*")),
            (subjects.MODELS, subjects.model(run, "*")),
            (subjects.EXECUTION, subjects.execution(run, "*")),
        ):
            await self._service.bus.jetstream.purge_stream(stream, subject=subject)

    async def _drained(self, finished: list[RunRecord]) -> bool:
        busy = await self._busy()
        return not any(record.run in busy for record in finished if not _abandoned(record))

    async def _busy(self) -> set[str]:
        """Runs that have a message in any stream. The generator removes a finished run's last
        message once all consumers have processed everything."""
        runs: set[str] = set()
        for stream in WORK:
            info = await self._service.bus.jetstream.stream_info(stream, subjects_filter=">")
            runs |= {subjects.run_of(subject) for subject in info.state.subjects or {}}
        return runs

    async def _all_recorded(self) -> bool:
        """Whether the recorder soon has everything that the streams hold now."""
        info = self._service.bus.jetstream.stream_info
        ends = {stream: (await info(stream)).state.last_seq for stream in RECORDED}
        return await _soon(lambda: self._recorded(ends))

    async def _recorded(self, ends: dict[str, int]) -> bool:
        """Whether the recorder has stored everything up to these sequence numbers."""
        for stream, end in ends.items():
            consumers = {
                info.name: info for info in await self._service.bus.jetstream.consumers_info(stream)
            }
            recorder = consumers.get(subjects.RECORDER_DURABLE)
            if recorder is None:
                return False
            # The ack floor does not pass messages that were purged before they were read.
            if ack_floor(recorder) < end and (recorder.num_pending or recorder.num_ack_pending):
                return False
        return True


def _abandoned(record: RunRecord) -> bool:
    return time.time() - record.updated_at > ABANDONED_SECONDS


async def _soon(condition: Callable[[], Awaitable[bool]]) -> bool:
    """Whether the condition becomes true within WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        if await condition():
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_SECONDS)
