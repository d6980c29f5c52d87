"""How the history of runs is deleted so that nothing of it comes back.

A run leaves the book first: from then on the recorder takes nothing of it. What it took before is
stored once it has read all that the streams hold by now, and only then the rows go. Rows that this
left behind, because it was cut short or a note came late, belong to a run in no book: the next
deletion finds them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from services.gateway.control import Control
from services.gateway.queries import Queries
from services.gateway.shapes import Deleted
from shared import subjects
from shared.runs import RunRecord
from shared.service import Service

WORK = (subjects.TASKS, subjects.DECISIONS, subjects.RESULTS)  # in the order in which it flows
RECORDED = (subjects.TASKS, subjects.RESULTS, subjects.EVENTS, subjects.RUNS_STREAM)

# The generator trims what was read every two seconds; the recorder stores within one.
PATIENCE_SECONDS = 6.0
LOOK_SECONDS = 0.1
# What nobody has dealt with so long after the end waits for something that will not come.
ABANDONED_SECONDS = 300.0


class Deletion:
    def __init__(self, service: Service, control: Control, queries: Queries) -> None:
        self._service = service
        self._control = control
        self._queries = queries

    async def delete(self) -> Deleted:
        """Finished runs with everything they left; those with work on its way stay for later."""
        over = [record for record in await self._service.runs.refresh() if not record.active]
        ends = await self._ends()
        if not await _soon(lambda: self._recorded(ends)):
            return Deleted(runs=0, left=len(over))
        await _soon(lambda: self._all_drained(over))
        busy = await self._busy()
        leaving = [record.run for record in over if record.run not in busy or _abandoned(record)]
        for run in leaving:
            await self._control.forget(run)
        ends = await self._ends()
        if not await _soon(lambda: self._recorded(ends)):
            return Deleted(runs=0, left=len(over))
        stored = await asyncio.to_thread(self._queries.stored_runs)
        gone = [run for run in stored if not await self._service.runs.holds(run)]
        await asyncio.to_thread(self._queries.forget, gone)
        return Deleted(runs=len({*leaving, *gone}), left=len(over) - len(leaving))

    async def _all_drained(self, over: list[RunRecord]) -> bool:
        busy = await self._busy()
        return not any(record.run in busy for record in over if not _abandoned(record))

    async def _busy(self) -> set[str]:
        """Runs of which the streams hold anything. Of one that is over the generator takes the last
        message out once all have read it and nothing is on its way."""
        held: set[str] = set()
        for stream in WORK:
            info = await self._service.bus.stream.stream_info(stream, subjects_filter=">")
            held |= {subject.split(".")[1] for subject in info.state.subjects or {}}
        return held

    async def _ends(self) -> dict[str, int]:
        info = self._service.bus.stream.stream_info
        return {stream: (await info(stream)).state.last_seq for stream in RECORDED}

    async def _recorded(self, ends: dict[str, int]) -> bool:
        """Whether the recorder has stored everything up to there."""
        for stream, end in ends.items():
            readers = await self._service.bus.stream.consumers_info(stream)
            found = [info for info in readers if info.name == subjects.RECORDER_DURABLE]
            if not found:
                return False
            floor = found[0].ack_floor.stream_seq if found[0].ack_floor else 0
            # The floor does not pass what was purged before it was read.
            if floor < end and (found[0].num_pending or found[0].num_ack_pending):
                return False
        return True


def _abandoned(record: RunRecord) -> bool:
    return time.time() - record.updated_at > ABANDONED_SECONDS


async def _soon(look: Callable[[], Awaitable[bool]]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        if await look():
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(LOOK_SECONDS)
