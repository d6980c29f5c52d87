"""Gives every scheduler of a new fork its first message: the cluster as it was in the parent.

The generator sends the fork's first task when all these messages are stored. Several simulators may
do the same work at the same time: the compare-and-set lets only one of them publish.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from services.simulator import fork_checkpoints
from shared.bus.run_changes import RunChanges
from shared.bus.service import Service
from shared.errors import ArenaError, Conflict
from shared.messages import subjects
from shared.messages.events import MESSAGE_CHARACTERS, Event
from shared.messages.runs import RunRecord
from shared.messages.standing import standing_of
from shared.runtime.logs import logger
from shared.store.client import Store

# While a fork waits for its rows in ClickHouse.
POLL_SECONDS = 0.1
IDLE_SECONDS = 2.0

log = logger()


class ForkStarts:
    def __init__(self, service: Service, store: Store, owned: Callable[[], set[str]]) -> None:
        """`owned`: the schedulers that this simulator serves."""
        self._service = service
        self._store = store
        self._owned = owned
        self._started: set[tuple[str, str]] = set()  # run and scheduler

    async def follow_runs(self) -> None:
        changes = RunChanges(self._service.bus)
        await changes.listen()
        while True:
            records = [each for each in await self._service.runs.refresh() if _waits(each)]
            pairs = {(each.run, name) for each in records for name in each.spec.schedulers}
            self._started &= pairs
            for record in records:
                for name in sorted(self._owned() & set(record.spec.schedulers)):
                    if (record.run, name) not in self._started:
                        await self._try_to_start(record, name)
            await changes.wait(POLL_SECONDS if pairs - self._started else IDLE_SECONDS)

    async def _try_to_start(self, record: RunRecord, scheduler: str) -> None:
        try:
            if await self._start(record, scheduler):
                self._started.add((record.run, scheduler))
        except ArenaError as error:
            log.warning("a fork cannot start yet", run=record.run, error=str(error))
            await self._report(record, scheduler, error)

    async def _start(self, record: RunRecord, scheduler: str) -> bool:
        """False while the rows of the parent are not copied yet."""
        bus, fork, store = self._service.bus, record.fork, self._store
        assert fork is not None
        subject = subjects.results(record.run, scheduler)
        if await bus.last_message(subject, subjects.RESULTS, standing_of) is not None:
            return True
        copied = await asyncio.to_thread(
            fork_checkpoints.is_copied, store, record.run, scheduler, fork
        )
        if not copied:
            return False
        inherited = await fork_checkpoints.inherited_ranges(self._service.runs, record, scheduler)
        message = await asyncio.to_thread(
            fork_checkpoints.first_message, store, record, fork, scheduler, inherited
        )
        with suppress(Conflict):  # another simulator was faster
            await bus.publish_batch(message, after=0)
        return True

    async def _report(self, record: RunRecord, scheduler: str, error: ArenaError) -> None:
        note = f"run {record.run} cannot start with {scheduler} yet: {error}"[:MESSAGE_CHARACTERS]
        kind = type(error).__name__
        await self._service.bus.publish_event(
            Event(kind="fork", service="simulator", run=record.run, message=note),
            message_id=f"event.fork.{record.run}.{scheduler}.{kind}",
        )


def _waits(record: RunRecord) -> bool:
    return record.active and record.fork is not None and record.fork.at > 0
