"""Waits for changes of run records, so that services need not poll the run book often."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from nats.aio.msg import Msg

from shared.bus.client import Bus
from shared.messages import subjects


class RunChanges:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._changed = asyncio.Event()

    async def listen(self) -> None:
        """Call this before the run book is read for the first time."""

        async def on_change(message: Msg) -> None:
            self._changed.set()

        await self._bus.listen(subjects.RUNS_SUBJECTS, on_change)

    async def wait(self, seconds: float) -> bool:
        """Wait until a record has changed since the last call, or until the time is over, in case
        a message was missed; whether one has changed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        changed = self._changed.is_set()
        self._changed.clear()
        return changed
