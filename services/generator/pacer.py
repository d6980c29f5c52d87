"""How many tasks are due now, for a pace in tasks per second."""

from __future__ import annotations

# After a delay at most this many seconds' worth of tasks is sent at once.
CATCH_UP_SECONDS = 1.0


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
        """Seconds until a task is due, at least a tick so that tasks are sent in batches."""
        if self._pace is None:
            return 0.0
        return max(self._credit_at + 1.0 / self._pace - now, tick)
