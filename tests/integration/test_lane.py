"""A scheduler's lane through the simulator, on a real bus: in order, once, by one or several."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from services.simulator import lane as lanes
from services.simulator.lane import EARLY_BATCHES, Lane
from shared import subjects
from shared.batches import Batch
from shared.events import Event
from shared.runs import RunBook, RunRecord
from shared.settings import Settings
from tests.integration.arena import Arena, connect, eventually
from tests.integration.lanes import SPEC, Delivery, assert_right, decided, lane_on, results


@pytest.fixture
async def run(arena: Arena) -> RunRecord:
    return await arena.run(**SPEC)


@pytest.fixture
def lane(arena: Arena) -> Lane:
    return lane_on(arena.bus, arena.runs)


async def test_results_carry_the_decisions_their_time_and_the_state(
    arena: Arena, lane: Lane, run: RunRecord
) -> None:
    (decision,) = decided(run, 1, 20)
    delivery = Delivery()
    await lane.offer(decision, delivery)
    (result,) = await results(arena, run)
    assert delivery.said == ["ack"]
    assert result.rows.select(decision.rows.schema.names).equals(decision.rows)
    assert result.envelope.published_at == decision.envelope.published_at
    state = result.envelope.state
    assert state is not None
    assert state["standing"]["tasks"] == state["cluster"]["next_task"] == 20
    times = np.array(result.rows.column("time"))
    assert state["standing"]["total_time"] == pytest.approx(times.sum(), rel=1e-12)


async def test_batches_that_arrive_out_of_order_are_applied_in_order(
    arena: Arena, lane: Lane, run: RunRecord
) -> None:
    decisions = decided(run, 30, 10)
    order = list(range(30))
    random.Random(4).shuffle(order)
    deliveries = {number: Delivery() for number in order}
    applied = 0
    for place, number in enumerate(order):
        await lane.offer(decisions[number], deliveries[number])
        offered = set(order[: place + 1])
        while applied in offered:
            applied += 1
        # Acknowledged is what has its results, and nothing else.
        assert {n for n in order if deliveries[n].said} == set(range(applied))
    assert all(delivery.said == ["ack"] for delivery in deliveries.values())
    await assert_right(arena, run, decisions)


async def test_a_decision_that_comes_again_is_acknowledged_and_nothing_else(
    arena: Arena, lane: Lane, run: RunRecord
) -> None:
    decisions = decided(run, 5, 10)
    for decision in decisions:
        await lane.offer(decision, Delivery())
    for decision in reversed(decisions):
        again = Delivery()
        await lane.offer(decision, again)
        assert again.said == ["ack"]
    await assert_right(arena, run, decisions)


async def test_an_early_batch_that_comes_again_is_acknowledged_by_its_newest_delivery(
    arena: Arena, lane: Lane, run: RunRecord
) -> None:
    decisions = decided(run, 2, 10)
    expired, newest = Delivery(), Delivery()
    await lane.offer(decisions[1], expired)
    await lane.offer(decisions[1], newest)
    await lane.offer(decisions[0], Delivery())
    assert (expired.said, newest.said) == ([], ["ack"])
    await assert_right(arena, run, decisions)


async def offered_again(
    lane: Lane, decisions: list[Batch], waiting: dict[int, Delivery]
) -> dict[int, Delivery]:
    """As the bus does with what was not acknowledged in time; returns what still is not."""
    for number in [n for n, delivery in waiting.items() if delivery.said != ["ack"]]:
        waiting[number] = Delivery()
        await lane.offer(decisions[number], waiting[number])
    return {n: delivery for n, delivery in waiting.items() if delivery.said != ["ack"]}


async def test_two_simulators_on_one_lane_make_each_result_once(
    arena: Arena, run: RunRecord, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "REST_SECONDS", 0)
    decisions = decided(run, 40, 5)
    other = await connect(settings, "other")
    both = [lane_on(arena.bus, arena.runs), lane_on(other, RunBook(other.stream))]

    async def offer_all(lane: Lane, seed: int) -> list[Delivery]:
        order = list(range(len(decisions)))
        random.Random(seed).shuffle(order)
        deliveries = [Delivery() for _ in order]
        for number in order:
            await lane.offer(decisions[number], deliveries[number])
        return deliveries

    try:
        seen = await asyncio.gather(*(offer_all(lane, seed) for seed, lane in enumerate(both)))
        for lane, deliveries in zip(both, seen, strict=True):
            await offered_again(lane, decisions, dict(enumerate(deliveries)))
        await assert_right(arena, run, decisions)
    finally:
        await other.broker.stop()


async def test_two_simulators_that_get_half_of_the_decisions_each_finish_together(
    arena: Arena, run: RunRecord, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "REST_SECONDS", 0)
    decisions = decided(run, 20, 5)
    other = await connect(settings, "other")
    both = [lane_on(arena.bus, arena.runs), lane_on(other, RunBook(other.stream))]
    try:
        halves = [{number: Delivery() for number in range(first, 20, 2)} for first in (0, 1)]
        for _ in range(12):
            for place, lane in enumerate(both):
                halves[place] = await offered_again(lane, decisions, halves[place])
        assert halves == [{}, {}]
        await assert_right(arena, run, decisions)
    finally:
        await other.broker.stop()


async def test_a_simulator_that_was_asleep_repeats_nothing(
    arena: Arena, lane: Lane, run: RunRecord, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when the bus has forgotten the message ids: the sequence has moved on."""
    monkeypatch.setattr(lanes, "REST_SECONDS", 60)
    forgetful = settings.model_copy(update={"duplicate_window": timedelta(milliseconds=100)})
    other = await connect(forgetful, "other")
    asleep = lane_on(other, RunBook(other.stream))
    decisions = decided(run, 3, 5)
    try:
        early = Delivery()
        await asleep.offer(decisions[2], early)  # so it believes that batch 0 is due
        for decision in decisions:
            await lane.offer(decision, Delivery())
        event = Event(kind="probe", message="", service="test")

        async def ids_are_forgotten() -> bool:
            await arena.bus.tell(event, message_id="probe")
            return len(await arena.events("probe")) > 1

        await eventually(ids_are_forgotten)
        for decision in decisions[:2]:
            late = Delivery()
            await asleep.offer(decision, late)
            assert late.said == ["ack"]
        assert early.said == ["ack"]
        await assert_right(arena, run, decisions)
    finally:
        await other.broker.stop()


async def test_a_restarted_simulator_goes_on_bit_by_bit(arena: Arena, run: RunRecord) -> None:
    decisions = decided(run, 30, 7)
    for number, decision in enumerate(decisions):
        if number % 10 == 0:
            lane = lane_on(arena.bus, RunBook(arena.stream))
        delivery = Delivery()
        await lane.offer(decision, delivery)
        assert delivery.said == ["ack"]
    await assert_right(arena, run, decisions)


async def test_runs_that_fell_out_of_memory_go_on(
    arena: Arena, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "KEPT_RUNS", 1)
    runs = [await arena.run(**SPEC, seed=seed) for seed in (1, 2)]
    decisions = {run.run: decided(run, 4, 5) for run in runs}
    early = Delivery()
    await lane.offer(decisions[runs[0].run][3], early)
    for number in range(4):
        for run in runs:
            await lane.offer(decisions[run.run][number], Delivery())
    assert early.said == ["nack"]
    for run in runs:
        await assert_right(arena, run, decisions[run.run])


async def test_more_early_batches_than_are_kept_come_out_right(
    arena: Arena, lane: Lane, run: RunRecord
) -> None:
    count = EARLY_BATCHES + 20
    decisions = decided(run, count, 1)
    waiting = {number: Delivery() for number in reversed(range(1, count))}
    for number, delivery in waiting.items():
        await lane.offer(decisions[number], delivery)
    given_back = [number for number, delivery in waiting.items() if delivery.said == ["nack"]]
    assert given_back == list(range(19, 0, -1))
    assert all(waiting[number].delay for number in given_back)
    await lane.offer(decisions[0], Delivery())
    for number in reversed(given_back):
        waiting[number] = Delivery()
        await lane.offer(decisions[number], waiting[number])
    assert all(delivery.said == ["ack"] for delivery in waiting.values())
    await assert_right(arena, run, decisions)


async def test_a_lane_that_closes_gives_back_what_waits(
    arena: Arena, lane: Lane, run: RunRecord
) -> None:
    early = [Delivery() for _ in range(3)]
    for delivery, decision in zip(early, decided(run, 4, 5)[1:], strict=True):
        await lane.offer(decision, delivery)
    await lane.close()
    assert [(delivery.said, delivery.delay) for delivery in early] == [(["nack"], None)] * 3
    assert await results(arena, run) == []


async def test_simulators_that_come_and_go_lose_nothing(arena: Arena, run: RunRecord) -> None:
    """Three simulators share three schedulers; then only one is left."""
    names = ["greedy", "oracle", "random"]
    run = await arena.run(**{**SPEC, "schedulers": names})
    simulators = [await arena.start("simulator") for _ in range(3)]
    decisions = decided(run, 40, 5)

    async def made() -> list[int]:
        return [
            await arena.count_of(subjects.RESULTS, subjects.results(run.run, name))
            for name in names
        ]

    async def sent(stretch: list[Batch]) -> None:
        for decision in stretch:
            for name in names:
                envelope = replace(decision.envelope, scheduler=name)
                await arena.bus.publish_batch(Batch(envelope, decision.rows))

    await sent(decisions[:20])

    async def half() -> bool:
        return await made() == [20, 20, 20]

    await eventually(half)
    await sent(decisions[20:30])
    await arena.stop(*simulators[:2])
    await sent(decisions[30:])

    async def whole() -> bool:
        return await made() == [40, 40, 40]

    await eventually(whole)
    await assert_right(arena, run, decisions)
    assert await arena.dead_letters() == []
    assert await arena.count(subjects.DECISIONS) == 0
