"""Lanes, decisions to send through them, and the results that are right."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
from prometheus_client import CollectorRegistry

from services.simulator.lane import Lane, Metrics
from services.simulator.simulation import Simulation
from shared import batches, subjects
from shared.batches import Batch, Envelope
from shared.bus import Bus
from shared.runs import RunBook, RunRecord
from shared.tasks import Decisions
from shared.workload import Cursor, generate
from tests.integration.arena import Arena, rows_of

SPEC = {
    "schedulers": ["greedy"],
    "workload": {"dependencies": {"probability": 0.3}},
    "tasks": 10_000,
}


@dataclass
class Delivery:
    """What became of a message that was handed to a lane."""

    said: list[str] = field(default_factory=list)
    delay: float | None = None

    async def ack(self) -> None:
        self.said.append("ack")

    async def nack(self, delay: float | None = None) -> None:
        self.said.append("nack")
        self.delay = delay


def lane_on(bus: Bus, runs: RunBook, scheduler: str = "greedy") -> Lane:
    return Lane(scheduler, bus, runs, Metrics.register(CollectorRegistry()))


def decided(run: RunRecord, count: int, each: int) -> list[Batch]:
    """`count` batches of `each` tasks, decided as greedy does."""
    tasks, _ = generate(run.spec, Cursor(), count * each)
    said = Decisions(gpu_fraction=tasks.compute_intensity)
    rows = batches.decision_rows(batches.task_rows(tasks), tasks, said, run.spec.cluster.gpus)
    return [
        Batch(
            Envelope("decisions", run.run, number, 1e9 + number, "greedy"),
            rows.slice(number * each, each),
        )
        for number in range(count)
    ]


def in_one_piece(run: RunRecord, found: list[Batch]) -> pa.Table:
    """The results of a cluster that gets all decisions as one batch."""
    together = rows_of(found).combine_chunks().to_batches()[0]
    rows, _ = Simulation.new(run.spec).advance(together)
    return pa.Table.from_batches([rows])


async def results(arena: Arena, run: RunRecord) -> list[Batch]:
    return await arena.batches(subjects.RESULTS, subjects.results(run.run, "greedy"))


async def assert_right(arena: Arena, run: RunRecord, decisions: list[Batch]) -> None:
    """Each batch has its results once, in order, the same as without any interruption."""
    found = await results(arena, run)
    assert [batch.envelope.batch for batch in found] == list(range(len(decisions)))
    assert rows_of(found).equals(in_one_piece(run, decisions))
