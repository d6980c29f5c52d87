"""How many tasks are due now, for a pace in tasks per second."""

from __future__ import annotations

# After a delay at most this many seconds' worth of tasks is sent at once.
CATCH_UP_SECONDS = 1.0
# A message costs all services together some hundred milliseconds of CPU, however few tasks it has.
# A slow run waits for these, but not longer than a person who watches would notice.
FEW_TASKS = 10
WATCHED_SECONDS = 0.5


class Pacer:
    def __init__(self, pace: float | str, batch_tasks: int, now: float) -> None:
        self._pace = None if isinstance(pace, str) else pace
        self._batch_tasks = batch_tasks
        self._credit_at = now

    def due(self, now: float) -> int:
        """Tasks to send now; at most one batch."""
        if self._pace is None:
            return self._batch_tasks
        # At a pace below one task a second, one task takes longer than that.
        catch_up = max(CATCH_UP_SECONDS, 1.0 / self._pace)
        self._credit_at = max(self._credit_at, now - catch_up)
        return min(int((now - self._credit_at) * self._pace + 1e-9), self._batch_tasks)

    def sent(self, count: int) -> None:
        if self._pace is not None:
            self._credit_at += count / self._pace

    def wait(self, now: float, tick: float) -> float:
        """Seconds until enough tasks are due for a message, at least a tick."""
        if self._pace is None:
            return 0.0
        until_next, until_few = (
            self._credit_at + count / self._pace - now for count in (1, FEW_TASKS)
        )
        return max(until_next, min(until_few, WATCHED_SECONDS), tick)
