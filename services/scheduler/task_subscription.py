"""Pulls tasks while there is something to decide.

Every worker's consumer is offered the tasks of all runs. While runs are active and this scheduler
has a part in none of them, its workers do not pull: reading and skipping every batch would cost
more than a rule's decisions. What was published meanwhile is skipped later, if it is still there.

A run in which the scheduler was suspended and takes part again has a consumer of its own, from
which the workers pull beside the other one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from nats.aio.msg import Msg

from shared.bus.client import Subscriber
from shared.bus.service import Service
from shared.messages import subjects
from shared.messages.runs import RunRecord, Suspension

# The run book is read when it changes, and this often in case a message was missed.
POLL_SECONDS = 2.0

OnRetry = Callable[[RunRecord, Suspension], Awaitable[None]]


class TaskSubscription:
    def __init__(
        self,
        service: Service,
        scheduler: str,
        subscribe: Callable[[bool], Subscriber],
        subscribe_to_run: Callable[[str, int], Subscriber],
        on_retry: OnRetry,
    ) -> None:
        """`subscribe` makes a subscriber to all tasks, the first of which starts with the service;
        `subscribe_to_run` to those of a run from a sequence on."""
        self._service = service
        self._scheduler = scheduler
        self._subscribe = subscribe
        self._subscribe_to_run = subscribe_to_run
        self._on_retry = on_retry
        self._subscriber: Subscriber | None = subscribe(True)
        self._of_runs: dict[str, Subscriber] = {}
        self._suspended: dict[str, Suspension] = {}  # by run
        self._changed = asyncio.Event()

    async def follow_runs(self) -> None:
        async def on_change(message: Msg) -> None:
            self._changed.set()

        await self._service.bus.listen(subjects.RUNS_SUBJECTS, on_change)
        while True:
            self._changed.clear()
            records = await self._service.runs.refresh()
            await self._pull_if(self._is_needed(records))
            await self._pull_resumed(records)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), POLL_SECONDS)

    def _is_needed(self, records: list[RunRecord]) -> bool:
        active = [record for record in records if record.active]
        name = self._scheduler
        return not active or any(
            name in record.competing and name not in record.resumed for record in active
        )

    async def _pull_if(self, needed: bool) -> None:
        if needed and self._subscriber is None:
            subscriber = self._subscribe(False)
            await subscriber.start()
            self._subscriber = subscriber
        elif not needed and self._subscriber is not None:
            subscriber, self._subscriber = self._subscriber, None
            await subscriber.stop()

    async def _pull_resumed(self, records: list[RunRecord]) -> None:
        """Subscribe to the runs that are resumed, and to no others."""
        name = self._scheduler
        resumed = {
            record.run: record
            for record in records
            if record.active and name in record.resumed and name in record.competing
        }
        for run in self._of_runs.keys() - resumed.keys():
            await self._of_runs.pop(run).stop()
        for run in resumed.keys() - self._of_runs.keys():
            if suspension := self._suspended.get(run):
                await self._on_retry(resumed[run], suspension)
            subscriber = self._subscribe_to_run(run, resumed[run].resumed[name])
            await subscriber.start()
            self._of_runs[run] = subscriber
        self._suspended = {
            record.run: record.suspended[name] for record in records if name in record.suspended
        }

    async def close(self) -> None:
        """Handlers in progress finish first."""
        await self._pull_if(needed=False)
        await self._pull_resumed([])
