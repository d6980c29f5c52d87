"""Tells when a run's record changes, so that nobody has to poll the run book often."""

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
        """Before the run book is read for the first time."""

        async def on_change(message: Msg) -> None:
            self._changed.set()

        await self._bus.listen(subjects.RUNS_SUBJECTS, on_change)

    async def wait(self, seconds: float) -> bool:
        """Until a record has changed since the last call, or, in case a message was missed, that
        time has passed; whether one has."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        changed = self._changed.is_set()
        self._changed.clear()
        return changed
