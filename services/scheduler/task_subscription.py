"""Pulls tasks while there is something to decide.

Every worker's consumer is offered the tasks of all runs. While runs are active and this scheduler
has a part in none of them, its workers do not pull: reading and skipping every batch would cost
more than a rule's decisions. What was published meanwhile is skipped later, if it is still there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nats.aio.msg import Msg

from shared.bus.service import Service
from shared.messages import subjects
from shared.messages.runs import RunRecord

# The run book is read when it changes, and this often in case a message was missed.
POLL_SECONDS = 2.0


class TaskSubscription:
    def __init__(self, service: Service, scheduler: str, subscribe: Callable[..., Any]) -> None:
        """`subscribe` makes a subscriber; the first one starts with the service."""
        self._service = service
        self._scheduler = scheduler
        self._subscribe = subscribe
        self._subscriber: Any = subscribe()
        self._changed = asyncio.Event()

    async def follow_runs(self) -> None:
        async def on_change(message: Msg) -> None:
            self._changed.set()

        await self._service.bus.listen(subjects.RUNS_SUBJECTS, on_change)
        while True:
            self._changed.clear()
            await self._pull_if(self._is_needed(await self._service.runs.refresh()))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), POLL_SECONDS)

    def _is_needed(self, records: list[RunRecord]) -> bool:
        active = [record for record in records if record.active]
        return not active or any(self._scheduler in record.spec.schedulers for record in active)

    async def _pull_if(self, needed: bool) -> None:
        if needed and self._subscriber is None:
            subscriber = self._subscribe(persistent=False)
            await subscriber.start()
            self._subscriber = subscriber
        elif not needed:
            await self.close()

    async def close(self) -> None:
        """Handlers in progress finish first."""
        if self._subscriber is not None:
            subscriber, self._subscriber = self._subscriber, None
            await subscriber.stop()
