"""One run with its progress: tasks sent, every scheduler's standing, the bound of the makespan."""

from __future__ import annotations

import asyncio
import threading

from services.gateway.runs import queries
from services.gateway.runs.load import RunLoads
from services.gateway.runs.schemas import (
    DeviceType,
    Meter,
    Run,
    RunDetail,
    RunFork,
    SchedulerStanding,
    suspended_schedulers,
)
from shared.bus.client import Bus
from shared.bus.model_registry import learners_without_model
from shared.bus.task_stream import load_position
from shared.domain.bounds.cluster_bound import arrival_bound
from shared.messages.runs import RunRecord, RunState
from shared.runtime.bounded_dict import BoundedDict
from shared.store.client import Store
from shared.store.tasks import read_tasks

# All tasks of a run are read: 40 MB and about a second for a million of them.
MOST_TASKS = 2_000_000
CACHED_RUNS = 256


class ClusterBounds:
    """The floor under every makespan of a complete run: computed once per run."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bounds: BoundedDict[str, float | None] = BoundedDict(CACHED_RUNS)
        self._lock = threading.Lock()

    def of(self, record: RunRecord) -> float | None:
        """Seconds from simulated time 0, as makespans count; None for a run that is not complete or
        has more than MOST_TASKS tasks."""
        # A fork with other devices has tasks that ran on the parent's.
        if record.state != RunState.COMPLETED or (record.fork and not record.fork.same_platform):
            return None
        with self._lock:
            if record.run not in self._bounds:
                self._bounds[record.run] = self._compute(record)
            return self._bounds[record.run]

    def _compute(self, record: RunRecord) -> float | None:
        tasks = read_tasks(self._store, record.run, most=MOST_TASKS + 1)
        return arrival_bound(tasks, record.spec).value if len(tasks) <= MOST_TASKS else None


class RunDetails:
    def __init__(self, bus: Bus, store: Store) -> None:
        self._bus = bus
        self._store = store
        self.bounds = ClusterBounds(store)
        self._loads = RunLoads(store)

    async def detail(self, record: RunRecord) -> RunDetail:
        tasks_sent, standings = await self.progress(record)
        bound = await asyncio.to_thread(self.bounds.of, record)
        load = await asyncio.to_thread(self._loads.of, record)
        platform = record.spec.platform
        return RunDetail(
            **dict(summary(record)),
            tasks=tasks_sent,
            bound=bound,
            load=load,
            meters=[Meter.model_validate(meter) for meter in platform.meters],
            types=[DeviceType.model_validate(kind) for kind in platform.types],
            schedulers={name: standing.over(bound) for name, standing in standings.items()},
        )

    async def progress(self, record: RunRecord) -> tuple[int, dict[str, SchedulerStanding]]:
        """Tasks sent, and the standings of the schedulers that compete."""
        standings = await asyncio.to_thread(
            queries.standings, self._store, record.run, record.competing
        )
        sent = max((standing.results for standing in standings.values()), default=0)
        if record.active:
            sent = (await load_position(self._bus, record.run, record.fork)).cursor.next_task
        return sent, standings


async def pretraining(bus: Bus, record: RunRecord, tasks_sent: int) -> list[str]:
    """The learners whose first models a run waits for before it sends its first task."""
    if record.state != RunState.RUNNING or tasks_sent:
        return []
    return await learners_without_model(bus, record)


def summary(record: RunRecord) -> Run:
    return Run(
        run=record.run,
        name=record.spec.name,
        state=record.state,
        created_at=record.created_at,
        updated_at=record.updated_at,
        spec=record.spec,
        lockstep=record.spec.lockstep,
        learning_schedulers=record.learning_schedulers,
        suspended=suspended_schedulers(record),
        tags=list(record.tags),
        notes=record.notes,
        fork=None if record.fork is None else RunFork.model_validate(record.fork),
    )


def searchable(record: RunRecord) -> str:
    """What a search for runs looks at, in lower case."""
    workload = record.spec.workload
    types = (kind.name for kind in record.spec.platform.types)
    presets = (step.preset for step in workload.drift)
    words = (record.run, record.spec.name, *record.tags, record.notes, record.state)
    return " ".join((*words, workload.preset, *presets, *types)).lower()
