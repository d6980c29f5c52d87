"""Decisions and results that are broken, in a scheduler's lane."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from shared import batches, subjects
from shared.batches import Batch
from shared.errors import Unreadable
from shared.runs import RunRecord, RunState
from tests.integration.arena import Arena, eventually
from tests.integration.lanes import SPEC, Delivery, assert_right, decided, lane_on, results


@pytest.fixture
async def run(arena: Arena) -> RunRecord:
    return await arena.run(**SPEC)


async def test_broken_results_cost_no_decision(arena: Arena, run: RunRecord) -> None:
    """Garbage behind the last results, or results without a state, are rejected; not decisions."""
    decisions = decided(run, 4, 5)
    await lane_on(arena.bus, arena.runs).offer(decisions[0], Delivery())
    (first,) = await results(arena, run)
    subject = subjects.results(run.run, "greedy")
    stateless = replace(first.envelope, batch=1, state=None)
    await arena.publish_raw(subject, batches.encode(stateless, first.rows))
    await arena.publish_raw(subject, b"garbage")
    restarted = lane_on(arena.bus, arena.runs)
    await restarted.offer(decisions[1], Delivery())
    await arena.publish_raw(subject, b"more garbage")
    for decision in decisions[2:]:
        await restarted.offer(decision, Delivery())
    await assert_right(arena, run, decisions)
    assert len(await arena.dead_letters()) == 3


async def test_a_decision_that_comes_after_the_end_of_its_run_is_done_with(
    arena: Arena, run: RunRecord
) -> None:
    """Another worker had that batch long ago; the state that it would need is trimmed."""
    await arena.runs.move(run.run, RunState.COMPLETED)
    lane = lane_on(arena.bus, arena.runs)
    for decision in decided(run, 3, 5):
        delivery = Delivery()
        await lane.offer(decision, delivery)
        assert delivery.said == ["ack"]
    assert await results(arena, run) == []


async def test_tasks_that_came_in_while_their_run_was_completed_are_simulated(
    arena: Arena, run: RunRecord
) -> None:
    """By a simulator that does not have the run in memory; what comes twice makes nothing new."""
    decisions = decided(run, 3, 5)
    before = lane_on(arena.bus, arena.runs)
    for decision in decisions[:2]:
        await before.offer(decision, Delivery())
    await arena.runs.move(run.run, RunState.COMPLETED)
    restarted = lane_on(arena.bus, arena.runs)
    for decision in (decisions[1], decisions[2], decisions[2]):
        delivery = Delivery()
        await restarted.offer(decision, delivery)
        assert delivery.said == ["ack"]
    await assert_right(arena, run, decisions)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scheduler": "oracle"}, "oracle does not take part"),
        ({"run": "unknown"}, "no run 'unknown'"),
    ],
)
async def test_decisions_that_belong_to_no_run_are_unreadable(
    arena: Arena, run: RunRecord, change: dict[str, str], reason: str
) -> None:
    (decision,) = decided(run, 1, 5)
    stray = Batch(replace(decision.envelope, **change), decision.rows)
    lane = lane_on(arena.bus, arena.runs, stray.envelope.scheduler)
    delivery = Delivery()
    with pytest.raises(Unreadable, match=reason):
        await lane.offer(stray, delivery)
    assert delivery.said == []


def with_gpu(decision: Batch, gpu: int) -> Batch:
    index = decision.rows.schema.get_field_index("gpu")
    column = pa.array([gpu] * decision.rows.num_rows, pa.int16())
    return Batch(
        decision.envelope,
        decision.rows.set_column(index, decision.rows.schema.field("gpu"), column),
    )


async def test_a_gpu_out_of_range_becomes_a_dead_letter_and_the_lane_goes_on(
    arena: Arena, run: RunRecord
) -> None:
    await arena.start("simulator")
    decisions = decided(run, 3, 5)
    bad = with_gpu(decisions[0], 4)
    await arena.publish_raw(bad.envelope.subject, batches.encode(bad.envelope, bad.rows))
    for decision in decisions:
        await arena.bus.publish_batch(decision)

    async def all_there() -> bool:
        return len(await results(arena, run)) == 3

    await eventually(all_there)
    await assert_right(arena, run, decisions)
    (letter,) = await arena.dead_letters()
    assert letter["Hybrid-Reason"] == "gpu 4 of a cluster that has 4 (0 is the first)"


async def test_an_early_batch_that_turns_out_bad_is_rejected_when_it_is_due(
    arena: Arena, run: RunRecord
) -> None:
    await arena.start("simulator")
    decisions = decided(run, 3, 5)
    bad = with_gpu(decisions[1], 9)
    await arena.publish_raw(bad.envelope.subject, batches.encode(bad.envelope, bad.rows))
    await arena.bus.publish_batch(decisions[2])
    await arena.bus.publish_batch(decisions[0])

    async def rejected() -> bool:
        return len(await arena.dead_letters()) == 1

    await eventually(rejected)
    await arena.bus.publish_batch(decisions[1])

    async def all_there() -> bool:
        return len(await results(arena, run)) == 3

    await eventually(all_there)
    await assert_right(arena, run, decisions)
