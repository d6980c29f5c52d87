"""Partitions, decisions for them, and the expected results."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
from prometheus_client import CollectorRegistry

from services.simulator.partition import Metrics, Partition
from services.simulator.simulation import Simulation
from shared.bus.client import Bus
from shared.bus.run_book import RunBook
from shared.domain.tasks import Decisions
from shared.domain.workload import Cursor, generate
from shared.messages import batches, subjects
from shared.messages.batches import Batch, Envelope
from shared.messages.runs import RunRecord
from tests.integration.arena import Arena, rows_of

SPEC = {
    "schedulers": ["greedy"],
    "workload": {"dependencies": {"probability": 0.3}},
    "tasks": 10_000,
}


@dataclass
class Delivery:
    """Records the acknowledgements of a message."""

    acks: list[str] = field(default_factory=list)
    delay: float | None = None

    async def ack(self) -> None:
        self.acks.append("ack")

    async def nack(self, delay: float | None = None) -> None:
        self.acks.append("nack")
        self.delay = delay


def partition_on(bus: Bus, runs: RunBook, scheduler: str = "greedy") -> Partition:
    return Partition(scheduler, bus, runs, Metrics.register(CollectorRegistry()))


def decided(run: RunRecord, count: int, each: int) -> list[Batch]:
    """`count` batches of `each` tasks, with the decisions of greedy."""
    tasks, _ = generate(run.spec, Cursor(), count * each)
    decisions = Decisions(gpu_fraction=tasks.compute_intensity)
    rows = batches.decision_rows(batches.task_rows(tasks), tasks, decisions, run.spec.platform)
    return [
        Batch(
            Envelope("decisions", run.run, number, 1e9 + number, "greedy"),
            rows.slice(number * each, each),
        )
        for number in range(count)
    ]


def in_one_batch(run: RunRecord, decisions: list[Batch]) -> pa.Table:
    """The results if all decisions were one batch."""
    one_batch = rows_of(decisions).combine_chunks().to_batches()[0]
    rows, _ = Simulation.new(run.spec).advance(one_batch)
    return pa.Table.from_batches([batches.complete(rows, "results")])


async def results(arena: Arena, run: RunRecord) -> list[Batch]:
    return await arena.batches(subjects.RESULTS, subjects.results(run.run, "greedy"))


async def assert_results_of(arena: Arena, run: RunRecord, decisions: list[Batch]) -> None:
    """Each batch has its results once, in order, as without any interruption."""
    published = await results(arena, run)
    assert [batch.envelope.batch for batch in published] == list(range(len(decisions)))
    assert rows_of(published).equals(in_one_batch(run, decisions))
