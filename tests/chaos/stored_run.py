"""A run as the recorder would have stored it, without a bus: something to be corrupted."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from services.recorder import contents
from services.scheduler import policy
from services.simulator.simulation import Simulation
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.domain.workload import Cursor, generate
from shared.messages import batches
from shared.messages.batches import Batch, Envelope
from shared.messages.runs import RunRecord, RunState
from shared.runtime.settings import Settings
from shared.store.client import Store
from tests.chaos.clickhouse import ClickHouse

TASKS = 400
RULES = ("greedy", "oracle")
LEARNER = "rl_agent"
SPEC = RunSpec.parse(
    {
        "tasks": TASKS,
        "seed": 5,
        "schedulers": [*RULES, LEARNER],
        "workload": {"dependencies": {"probability": 0.3}},
        "cluster": {"cpus": 2, "gpus": 3},
    }
)
# Tables whose rows carry their run, with a run's name in place of another's.
COPIED = ("runs", "tasks", "scheduler_results", "standings", "training_data")

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class StoredRuns:
    store: Store
    clickhouse: ClickHouse
    original: str

    def copy(self) -> str:
        """The original once more, under another name: a test may spoil it."""
        name = f"copy-{next(_numbers)}"
        for table in COPIED:
            self.insert_again(table, "run", f"'{name}'", f"run = '{self.original}'")
        return name

    def insert_again(self, table: str, column: str, value: str, where: str) -> None:
        """Rows that are there once more, with one column changed."""
        self.store.command(
            f"INSERT INTO {table} SELECT * REPLACE ({value} AS {column}) "
            f"FROM (SELECT * FROM {table} FINAL WHERE {where})"
        )

    @contextmanager
    def unmerged(self) -> Iterator[None]:
        """What was inserted twice stays there twice."""
        self.store.command("SYSTEM STOP MERGES")
        try:
            yield
        finally:
            self.store.command("SYSTEM START MERGES")

    def change(self, statement: str) -> None:
        """A mutation, finished when this returns."""
        self.store.command(f"{statement} SETTINGS mutations_sync = 2")


def store_run(
    settings: Settings, name: str, spec: RunSpec = SPEC, batch: int = 32, *, varied: bool = False
) -> None:
    """Generate, decide, simulate and store a whole run in batches of that size. `varied`: tasks
    have homes and widths, and some may not be split."""
    store = Store(settings)
    store.migrate()
    now = time.time()
    record = RunRecord(
        run=name, spec=spec, state=RunState.COMPLETED, created_at=now, updated_at=now
    )
    _insert(store, contents.run_tables([(1, record)]), name)
    tasks, _ = generate(spec, Cursor(), spec.tasks)
    if varied:
        tasks = _varied(tasks, spec)
    table = batches.task_rows(tasks)
    cuts = range(0, spec.tasks, batch)
    pieces = [
        Batch(Envelope("tasks", name, number, now), table.slice(start, batch))
        for number, start in enumerate(cuts)
    ]
    _insert(store, contents.task_tables(pieces), name)
    for scheduler in spec.schedulers:
        decided = batches.decision_rows(
            table, tasks, _decide(scheduler, tasks, spec), spec.platform
        )
        simulation, results = Simulation.new(spec), []
        for number, start in enumerate(cuts):
            found, simulation = simulation.advance(decided.slice(start, batch))
            envelope = Envelope("results", name, number, now, scheduler, simulation.state())
            results.append(Batch(envelope, found))
        _insert(store, contents.result_tables(results), f"{name}.{scheduler}")
    store.close()


def _varied(tasks: Tasks, spec: RunSpec) -> Tasks:
    random, count = np.random.default_rng(8), len(tasks)
    return replace(
        tasks,
        divisible=random.random(count) < 0.7,
        width=random.choice([1, 2, 3, 9], count, p=[0.7, 0.1, 0.1, 0.1]),
        home=random.integers(-1, len(spec.platform.node_names), count),
    )


def _insert(store: Store, tables: contents.Tables, token: str) -> None:
    for name, table in tables.items():
        if table is not None:
            store.insert(name, table, token=f"{token}.{name}")


def _decide(scheduler: str, tasks: Tasks, spec: RunSpec) -> Decisions:
    if scheduler != LEARNER:
        return policy.load(scheduler).decide(tasks, spec)
    random = np.random.default_rng(7)
    return Decisions(
        gpu_fraction=random.integers(0, 2, len(tasks)).astype(np.float64),
        device=random.choice(spec.platform.accelerators, len(tasks)),
        model_version=3,
        explored=random.random(len(tasks)) < 0.1,
        probability=random.uniform(0.1, 1, len(tasks)),
    )
