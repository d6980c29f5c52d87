"""The newest results of one scheduler in one run, in task order."""

from __future__ import annotations

from collections import deque

import numpy as np

from services.trainer.learner import Results, join


class ResultWindow:
    """Bounded: once there are more results than `limit`, the oldest are dropped."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: deque[Results] = deque()
        self._count = 0
        self.next_task = 0  # the one after the newest result
        self.new = 0  # results since the last round
        self._in_order = True  # a message that was not acknowledged comes later than others

    def __len__(self) -> int:
        return self._count

    def add(self, results: Results) -> Results | None:
        """Add results in any order, redelivered ones once. Returns what is new."""
        if len(results) and results.tasks.task_id[0] < self.next_task:
            results = self._unknown(results)
        if not len(results):
            return None
        self._in_order &= bool(results.tasks.task_id[0] >= self.next_task)
        self._parts.append(results)
        self._count += len(results)
        self.new += len(results)
        self.next_task = max(self.next_task, int(results.tasks.task_id[-1]) + 1)
        while self._count - len(self._parts[0]) >= self._limit:
            self._count -= len(self._parts.popleft())
        return results

    def _unknown(self, results: Results) -> Results:
        known = [part.tasks.task_id for part in self._parts] or [np.zeros(0, np.int64)]
        oldest = min((int(ids[0]) for ids in known if len(ids)), default=self.next_task)
        task_id = results.tasks.task_id
        new = ~np.isin(task_id, np.concatenate(known)) & (task_id >= oldest)
        return results.rows(np.flatnonzero(new))

    def results(self) -> Results:
        """All of them; at most `limit`."""
        joined = join(list(self._parts))
        if not self._in_order:
            joined, self._in_order = joined.rows(np.argsort(joined.tasks.task_id)), True
        joined = joined.last(self._limit)
        self._parts = deque([joined])
        self._count = len(joined)
        return joined

    def before(self, task: int, count: int) -> Results:
        """The newest `count` results of tasks before this one."""
        joined = self.results()
        end = int(np.searchsorted(joined.tasks.task_id, task))
        return joined.rows(slice(max(end - count, 0), end))
