"""How often a policy has failed on which batch."""

from __future__ import annotations

import math
import time

from shared.runtime.bounded_dict import BoundedDict

# A batch that cannot be decided is tried this often, `retry_delay` apart, before the scheduler is
# suspended in the run. Every worker counts for itself.
MOST_TRIES = 3
# A policy that fails now and then is reported no more often than this, for each run.
REPORT_SECONDS = 10.0
KEPT_BATCHES = 1024


class Failures:
    def __init__(self) -> None:
        self._tries: BoundedDict[tuple[str, int], int] = BoundedDict(KEPT_BATCHES)
        self._reported_at: dict[str, float] = {}

    def add(self, run: str, batch: int) -> int:
        """How often this batch has failed."""
        tries = self._tries[run, batch] = self._tries.get((run, batch), 0) + 1
        return tries

    def is_news(self, run: str) -> bool:
        """Whether a failure of this run is to be reported now."""
        now = time.monotonic()
        if now - self._reported_at.get(run, -math.inf) < REPORT_SECONDS:
            return False
        self._reported_at[run] = now
        return True

    def forget(self, run: str) -> None:
        """A retry starts at zero."""
        for key in [key for key in self._tries if key[0] == run]:
            del self._tries[key]
        self._reported_at.pop(run, None)
