"""The messages of a run without the services that would make them."""

from __future__ import annotations

from dataclasses import replace

from services.simulator.simulation import Simulation
from shared.bus.task_stream import Position
from shared.domain.tasks import Decisions
from shared.domain.workload import generate
from shared.messages import batches
from shared.messages.batches import Batch
from shared.messages.runs import RunRecord
from tests.integration.arena import Arena


async def publish_run(
    arena: Arena, run: RunRecord, count: int = 6, each: int = 5
) -> dict[str, list[Batch]]:
    """Tasks and results of a run, as generator and simulator would publish them."""
    sent: dict[str, list[Batch]] = {"tasks": []}
    position, simulations = Position(), {}
    for _ in range(count):
        tasks, cursor = generate(run.spec, position.cursor, each)
        batch = position.next_message(run.run, tasks, cursor)
        sequence = await arena.bus.publish_batch(batch, after=position.sequence)
        position = position.after(batch, cursor, sequence)
        sent["tasks"].append(batch)
        for share, name in enumerate(run.spec.schedulers, start=1):
            before = simulations.get(name, Simulation.new(run.spec))
            decisions = Decisions(gpu_fraction=tasks.compute_intensity / share)
            decided = batches.decision_rows(batch.rows, tasks, decisions, run.spec.platform)
            rows, after = before.advance(decided)
            simulations[name] = after
            envelope = replace(batch.envelope, kind="results", scheduler=name, state=after.state())
            result = Batch(envelope, rows)
            await arena.bus.publish_batch(result)
            sent.setdefault(name, []).append(result)
    return sent
