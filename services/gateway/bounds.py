"""The cluster bound of finished runs: the floor under every makespan, worked out once for each."""

from __future__ import annotations

import threading
from collections import OrderedDict

from shared.bound import cluster_bound
from shared.runs import RunRecord, RunState
from shared.store.client import Store
from shared.store.tasks import read_tasks

# All tasks of a run are looked at: 40 MB and about a second for a million of them.
MOST_TASKS = 2_000_000
KEPT_RUNS = 256


class Bounds:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, float | None] = OrderedDict()
        self._turn = threading.Lock()

    def of(self, record: RunRecord) -> float | None:
        """Seconds; None while the run goes on, and for one that is too long to look at whole."""
        if record.state != RunState.COMPLETED:
            return None
        with self._turn:
            if record.run not in self._known:
                self._known[record.run] = self._work_out(record)
                if len(self._known) > KEPT_RUNS:
                    self._known.popitem(last=False)
            return self._known[record.run]

    def _work_out(self, record: RunRecord) -> float | None:
        tasks = read_tasks(self._store, record.run, most=MOST_TASKS + 1)
        return cluster_bound(tasks, record.spec) if len(tasks) <= MOST_TASKS else None
