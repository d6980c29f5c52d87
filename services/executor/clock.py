"""A scheduler's own time in a real run: it passes only while the scheduler has the machine."""

from __future__ import annotations

import time


class SchedulerClock:
    def __init__(self, position: float) -> None:
        """Continues from a position; runs from now on."""
        self._position = position
        self._since = time.monotonic()

    def now(self) -> float:
        return self.at(time.monotonic())

    def at(self, moment: float) -> float:
        """The scheduler's time at a moment of `time.monotonic()`."""
        return self._position + (moment - self._since)
