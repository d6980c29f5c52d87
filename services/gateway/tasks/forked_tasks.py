"""Sends the submitted tasks of a run to its forks, from the store.

They are sent as a client would send them: each request says which task comes first. So a task that
two gateways send is stored once, and a restarted gateway continues at the end of the stream.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import numpy as np
import pyarrow as pa
from fastapi import HTTPException

from services.gateway.tasks.bulk import BulkSubmission
from shared.bus.service import Service
from shared.bus.task_stream import load_position
from shared.errors import ArenaError
from shared.messages.columns import TASK
from shared.messages.runs import Fork, RunRecord, RunState
from shared.store.client import Store

POLL_SECONDS = 0.5
MOST_TASKS = 10_000

_COLUMNS = ", ".join("toString(kind) AS kind" if c.name == "kind" else c.name for c in TASK)
TASKS = f"""
    SELECT {_COLUMNS} FROM tasks FINAL
    WHERE run = {{run:String}} AND task_id >= {{first:Int64}} AND task_id < {{end:Int64}}
    ORDER BY task_id
"""


class ForkedTasks:
    def __init__(self, service: Service, store: Store, submission: BulkSubmission) -> None:
        self._service = service
        self._store = store
        self._submission = submission
        self._sent: set[str] = set()  # forks that have all of the parent's tasks

    async def follow_runs(self) -> None:
        while True:
            forks = {
                record.run: record
                for record in await self._service.runs.refresh()
                if record.state == RunState.RUNNING and record.fork and record.spec.submitted
            }
            self._sent &= forks.keys()
            for run in forks.keys() - self._sent:
                # If it is paused, has no room or the store does not answer: in the next round.
                with suppress(ArenaError, HTTPException):
                    await self._send(forks[run])
            await asyncio.sleep(POLL_SECONDS)

    async def _send(self, record: RunRecord) -> None:
        fork = record.fork
        assert fork is not None
        while True:
            position = await load_position(self._service.bus, record.run, fork)
            first = position.cursor.next_task
            if first >= fork.submitted:
                self._sent.add(record.run)
                return
            if not await self._send_from(first, record, fork):
                return

    async def _send_from(self, first: int, record: RunRecord, fork: Fork) -> bool:
        """Send the next tasks; False while the parent's are not stored yet."""
        end = min(first + MOST_TASKS, fork.submitted)
        values = {"run": fork.run, "first": first, "end": end}
        rows = await asyncio.to_thread(self._store.table, TASKS, values)
        if rows.num_rows < end - first:
            return False
        last = end == fork.submitted
        rows = _whole_moments(rows, last)
        await self._submission.append(record.run, rows, first, last and fork.ended)
        return True


def _whole_moments(rows: pa.Table, last: bool) -> pa.Table:
    """The tasks but those that arrive last: more may arrive with them, to be decided together."""
    arrival = rows.column("arrival_time").to_numpy()
    count = int(np.searchsorted(arrival, arrival[-1]))
    return rows if last or count == 0 else rows.slice(0, count)
