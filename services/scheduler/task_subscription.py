"""Pulls tasks while there is something to decide.

The common consumer delivers the tasks of all runs. While runs are active and this scheduler takes
part in none of them, its workers do not pull: reading and skipping every batch costs more CPU than
a rule needs to decide. Tasks that are published in that time are skipped later, if they still
exist.

A run in which the scheduler was suspended and takes part again has a consumer of its own. The
workers pull from both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from shared.bus.client import Subscriber
from shared.bus.run_changes import RunChanges
from shared.bus.service import Service
from shared.messages.runs import Retry, RunRecord

# The run book is read when it changes, and this often in case a message was missed.
POLL_SECONDS = 10.0

OnRetry = Callable[[str, Retry], Awaitable[bool]]


class TaskSubscription:
    def __init__(
        self,
        service: Service,
        scheduler: str,
        subscribe: Callable[[bool], Subscriber],
        subscribe_to_run: Callable[[str, int], Awaitable[Subscriber]],
        on_retry: OnRetry,
    ) -> None:
        """`subscribe` makes a subscriber to all tasks, the first of which starts with the service;
        `subscribe_to_run` makes one to the tasks of a run, from a sequence on. `on_retry` returns
        whether the scheduler can take part again."""
        self._service = service
        self._scheduler = scheduler
        self._subscribe = subscribe
        self._subscribe_to_run = subscribe_to_run
        self._on_retry = on_retry
        self._subscriber: Subscriber | None = subscribe(True)
        self._run_subscribers: dict[str, Subscriber] = {}
        self._retried_at: dict[str, float] = {}  # by run

    async def follow_runs(self) -> None:
        changes = RunChanges(self._service.bus)
        await changes.listen()
        while True:
            records = await self._service.runs.refresh()
            await self._pull_if(self._is_needed(records))
            await self._pull_resumed(records)
            await changes.wait(POLL_SECONDS)

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
        for run in self._run_subscribers.keys() - resumed.keys():
            await self._run_subscribers.pop(run).stop()
        for run, record in resumed.items():
            retry = record.resumed[name]
            if self._retried_at.get(run) != retry.at:
                self._retried_at[run] = retry.at
                if not await self._on_retry(run, retry):
                    del self._retried_at[run]  # if it could not be suspended, this is repeated
                    continue
            if run not in self._run_subscribers:
                subscriber = await self._subscribe_to_run(run, retry.sequence)
                await subscriber.start()
                self._run_subscribers[run] = subscriber

    async def close(self) -> None:
        """Handlers in progress finish first."""
        await self._pull_if(needed=False)
        await self._pull_resumed([])
