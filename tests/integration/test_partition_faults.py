"""Broken decisions and results in a partition of the simulator."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from shared.errors import Unreadable
from shared.messages import batches, subjects
from shared.messages.batches import Batch
from shared.messages.runs import RunRecord, RunState
from tests.integration.arena import Arena, eventually
from tests.integration.partitions import Delivery, assert_results_of, decided, partition_on, results


async def test_broken_results_do_not_lose_decisions(arena: Arena, run: RunRecord) -> None:
    """Garbage after the last results, or results without a state, are rejected; not decisions."""
    decisions = decided(run, 4, 5)
    await partition_on(arena.bus, arena.runs).process(decisions[0], Delivery())
    (first,) = await results(arena, run)
    subject = subjects.results(run.run, "greedy")
    stateless = replace(first.envelope, batch=1, state=None)
    await arena.publish_raw(subject, batches.encode(stateless, first.rows))
    await arena.publish_raw(subject, b"garbage")
    restarted = partition_on(arena.bus, arena.runs)
    await restarted.process(decisions[1], Delivery())
    await arena.publish_raw(subject, b"more garbage")
    for decision in decisions[2:]:
        await restarted.process(decision, Delivery())
    await assert_results_of(arena, run, decisions)
    assert len(await arena.dead_letters()) == 3


async def test_a_decision_after_the_end_of_its_run_is_acknowledged(
    arena: Arena, run: RunRecord
) -> None:
    """It is a duplicate, and its state is trimmed."""
    await arena.runs.change_state(run.run, RunState.COMPLETED)
    partition = partition_on(arena.bus, arena.runs)
    for decision in decided(run, 3, 5):
        delivery = Delivery()
        await partition.process(decision, delivery)
        assert delivery.acks == ["ack"]
    assert await results(arena, run) == []


async def test_tasks_that_arrived_while_their_run_was_completed_are_simulated(
    arena: Arena, run: RunRecord
) -> None:
    """By a simulator without the run in its cache; duplicates give no new results."""
    decisions = decided(run, 3, 5)
    before = partition_on(arena.bus, arena.runs)
    for decision in decisions[:2]:
        await before.process(decision, Delivery())
    await arena.runs.change_state(run.run, RunState.COMPLETED)
    restarted = partition_on(arena.bus, arena.runs)
    for decision in (decisions[1], decisions[2], decisions[2]):
        delivery = Delivery()
        await restarted.process(decision, delivery)
        assert delivery.acks == ["ack"]
    await assert_results_of(arena, run, decisions)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scheduler": "oracle"}, "oracle does not take part"),
        ({"run": "unknown"}, "no run 'unknown'"),
    ],
)
async def test_decisions_of_no_run_or_scheduler_are_unreadable(
    arena: Arena, run: RunRecord, change: dict[str, str], reason: str
) -> None:
    (decision,) = decided(run, 1, 5)
    stray = Batch(replace(decision.envelope, **change), decision.rows)
    partition = partition_on(arena.bus, arena.runs, stray.envelope.scheduler)
    delivery = Delivery()
    with pytest.raises(Unreadable, match=reason):
        await partition.process(stray, delivery)
    assert delivery.acks == []


def with_gpu(decision: Batch, gpu: int) -> Batch:
    index = decision.rows.schema.get_field_index("device")
    column = pa.array([gpu] * decision.rows.num_rows, pa.int32())
    return Batch(
        decision.envelope,
        decision.rows.set_column(index, decision.rows.schema.field("device"), column),
    )


async def test_a_gpu_out_of_range_becomes_a_dead_letter_and_the_run_continues(
    arena: Arena, run: RunRecord
) -> None:
    await arena.start("simulator")
    decisions = decided(run, 3, 5)
    bad = with_gpu(decisions[0], 4)
    await arena.publish_raw(bad.envelope.subject, batches.encode(bad.envelope, bad.rows))
    for decision in decisions:
        await arena.bus.publish_batch(decision)
    await eventually(lambda: results(arena, run), accept=lambda rows: len(rows) == 3)
    await assert_results_of(arena, run, decisions)
    (letter,) = await arena.dead_letters()
    assert letter["Hybrid-Reason"] == "device 4 is no accelerator of the cluster"


async def test_an_invalid_early_batch_is_rejected_when_it_is_next(
    arena: Arena, run: RunRecord
) -> None:
    await arena.start("simulator")
    decisions = decided(run, 3, 5)
    bad = with_gpu(decisions[1], 9)
    await arena.publish_raw(bad.envelope.subject, batches.encode(bad.envelope, bad.rows))
    await arena.bus.publish_batch(decisions[2])
    await arena.bus.publish_batch(decisions[0])
    await eventually(lambda: arena.dead_letters(), accept=lambda rows: len(rows) == 1)
    await arena.bus.publish_batch(decisions[1])
    await eventually(lambda: results(arena, run), accept=lambda rows: len(rows) == 3)
    await assert_results_of(arena, run, decisions)
