"""A run as the recorder would have stored it, without a bus: something to be corrupted."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from services.recorder import rows
from services.scheduler import policy
from services.simulator.simulation import Simulation
from shared import batches
from shared.batches import Batch, Envelope
from shared.runs import RunRecord, RunState
from shared.settings import Settings
from shared.spec import RunSpec
from shared.store.client import Store
from shared.tasks import Decisions, Tasks
from shared.workload import Cursor, generate
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


def store_run(settings: Settings, name: str, spec: RunSpec = SPEC, batch: int = 32) -> None:
    """Generate, decide, simulate and store a whole run in batches of that size."""
    store = Store(settings)
    store.migrate()
    now = time.time()
    record = RunRecord(
        run=name, spec=spec, state=RunState.COMPLETED, created_at=now, updated_at=now
    )
    store.insert("runs", rows.run_table([(1, record)]), token=f"{name}.runs")
    assert spec.tasks is not None
    tasks, _ = generate(spec, Cursor(), spec.tasks)
    table = batches.task_rows(tasks)
    cuts = range(0, spec.tasks, batch)
    pieces = [
        Batch(Envelope("tasks", name, number, now), table.slice(start, batch))
        for number, start in enumerate(cuts)
    ]
    store.insert("tasks", rows.task_table(pieces), token=f"{name}.tasks")
    for scheduler in spec.schedulers:
        decided = batches.decision_rows(table, tasks, _decide(scheduler, tasks, spec), 3)
        simulation, results = Simulation.new(spec), []
        for number, start in enumerate(cuts):
            found, simulation = simulation.advance(decided.slice(start, batch))
            envelope = Envelope("results", name, number, now, scheduler, simulation.state())
            results.append(Batch(envelope, found))
        for where, found in (
            ("scheduler_results", rows.result_table(results)),
            ("standings", rows.standing_table(results)),
            ("training_data", rows.training_table(results)),
        ):
            if found is not None:
                store.insert(where, found, token=f"{name}.{scheduler}.{where}")
    store.close()


def _decide(scheduler: str, tasks: Tasks, spec: RunSpec) -> Decisions:
    if scheduler != LEARNER:
        return policy.load(scheduler).decide(tasks, spec)
    random = np.random.default_rng(7)
    return Decisions(
        gpu_fraction=random.integers(0, 2, len(tasks)).astype(np.float64),
        gpu=random.integers(0, spec.cluster.gpus, len(tasks)),
        model_version=3,
        explored=random.random(len(tasks)) < 0.1,
        probability=random.uniform(0.1, 1, len(tasks)),
    )
