"""The offered load of a run: the work of its tasks over what its cluster can do."""

from __future__ import annotations

import threading

from shared.domain.bounds.offered_load import SAMPLE, OfferedLoad
from shared.domain.tasks import Tasks
from shared.domain.workload import Cursor, generate
from shared.messages.runs import RunRecord
from shared.runtime.bounded_dict import BoundedDict
from shared.store.client import Store
from shared.store.tasks import read_tasks

CACHED_RUNS = 256


class RunLoads:
    """Offered loads, computed once per run from its first tasks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loads: BoundedDict[str, float | None] = BoundedDict(CACHED_RUNS)
        self._lock = threading.Lock()

    def of(self, record: RunRecord) -> float | None:
        """1 would keep every device busy without a pause if tasks could be cut freely. None where
        all tasks arrive at once, and for submitted tasks until the run has ended."""
        if record.spec.submitted and record.active:
            return None
        with self._lock:
            if record.run not in self._loads:
                self._loads[record.run] = self._compute(record)
            return self._loads[record.run]

    def _compute(self, record: RunRecord) -> float | None:
        tasks = self._first_tasks(record)
        if len(tasks) < 2:
            return None
        offered = OfferedLoad(record.spec)
        offered.add(tasks)
        load = offered.load()
        return load.cluster if load else None

    def _first_tasks(self, record: RunRecord) -> Tasks:
        if record.spec.submitted:
            return read_tasks(self._store, record.run, most=SAMPLE)
        return _generated(record)


def _generated(record: RunRecord) -> Tasks:
    """The first tasks of the run; for a fork, the first of its own."""
    start = record.fork.cursor if record.fork else Cursor()
    remaining = SAMPLE if record.spec.tasks is None else record.spec.tasks - start.generated
    return generate(record.spec, start, min(remaining, SAMPLE))[0]
