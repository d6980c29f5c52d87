"""A partition of the simulator on a real bus: results in order, once, by one or several."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from services.simulator import partition as partitions
from services.simulator.partition import EARLY_BATCHES, Partition
from shared.bus.run_book import RunBook
from shared.messages import subjects
from shared.messages.batches import Batch
from shared.messages.events import Event
from shared.messages.runs import RunRecord
from shared.runtime.settings import Settings
from tests.integration.arena import Arena, connect, eventually
from tests.integration.partitions import (
    SPEC,
    Delivery,
    assert_results_of,
    decided,
    partition_on,
    results,
)


@pytest.fixture
def partition(arena: Arena) -> Partition:
    return partition_on(arena.bus, arena.runs)


async def test_results_have_the_decisions_their_time_and_the_state(
    arena: Arena, partition: Partition, run: RunRecord
) -> None:
    (decision,) = decided(run, 1, 20)
    delivery = Delivery()
    await partition.process(decision, delivery)
    (result,) = await results(arena, run)
    assert delivery.acks == ["ack"]
    assert result.rows.select(decision.rows.schema.names).equals(decision.rows)
    assert result.envelope.published_at == decision.envelope.published_at
    state = result.envelope.state
    assert state["standing"]["tasks"] == state["cluster"]["next_task"] == 20
    times = np.array(result.rows.column("time"))
    assert state["standing"]["total_time"] == pytest.approx(times.sum(), rel=1e-12)


async def test_batches_that_arrive_out_of_order_are_applied_in_order(
    arena: Arena, partition: Partition, run: RunRecord
) -> None:
    decisions = decided(run, 30, 10)
    order = list(range(30))
    random.Random(4).shuffle(order)
    deliveries = {number: Delivery() for number in order}
    applied = 0
    for place, number in enumerate(order):
        await partition.process(decisions[number], deliveries[number])
        received = set(order[: place + 1])
        while applied in received:
            applied += 1
        # Exactly the batches with results are acknowledged.
        assert {n for n in order if deliveries[n].acks} == set(range(applied))
    assert all(delivery.acks == ["ack"] for delivery in deliveries.values())
    await assert_results_of(arena, run, decisions)


async def test_a_redelivered_decision_is_acknowledged_without_new_results(
    arena: Arena, partition: Partition, run: RunRecord
) -> None:
    decisions = decided(run, 5, 10)
    for decision in decisions:
        await partition.process(decision, Delivery())
    for decision in reversed(decisions):
        again = Delivery()
        await partition.process(decision, again)
        assert again.acks == ["ack"]
    await assert_results_of(arena, run, decisions)


async def test_a_redelivered_early_batch_is_acknowledged_by_its_newest_delivery(
    arena: Arena, partition: Partition, run: RunRecord
) -> None:
    decisions = decided(run, 2, 10)
    expired, newest = Delivery(), Delivery()
    await partition.process(decisions[1], expired)
    await partition.process(decisions[1], newest)
    await partition.process(decisions[0], Delivery())
    assert (expired.acks, newest.acks) == ([], ["ack"])
    await assert_results_of(arena, run, decisions)


async def redeliver(
    partition: Partition, decisions: list[Batch], waiting: dict[int, Delivery]
) -> dict[int, Delivery]:
    """Redeliver what was not acknowledged; returns what still is not."""
    for number in [n for n, delivery in waiting.items() if delivery.acks != ["ack"]]:
        waiting[number] = Delivery()
        await partition.process(decisions[number], waiting[number])
    return {n: delivery for n, delivery in waiting.items() if delivery.acks != ["ack"]}


async def test_two_simulators_with_the_same_partition_publish_each_result_once(
    arena: Arena, run: RunRecord, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "RELOAD_SECONDS", 0)
    decisions = decided(run, 40, 5)
    other = await connect(settings, "other")
    both = [partition_on(arena.bus, arena.runs), partition_on(other, RunBook(other.jetstream))]

    async def process_all(partition: Partition, seed: int) -> list[Delivery]:
        order = list(range(len(decisions)))
        random.Random(seed).shuffle(order)
        deliveries = [Delivery() for _ in order]
        for number in order:
            await partition.process(decisions[number], deliveries[number])
        return deliveries

    try:
        received = await asyncio.gather(
            *(process_all(partition, seed) for seed, partition in enumerate(both))
        )
        for partition, deliveries in zip(both, received, strict=True):
            await redeliver(partition, decisions, dict(enumerate(deliveries)))
        await assert_results_of(arena, run, decisions)
    finally:
        await other.broker.stop()


async def test_two_simulators_with_half_of_the_decisions_each_finish_together(
    arena: Arena, run: RunRecord, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "RELOAD_SECONDS", 0)
    decisions = decided(run, 20, 5)
    other = await connect(settings, "other")
    both = [partition_on(arena.bus, arena.runs), partition_on(other, RunBook(other.jetstream))]
    try:
        halves = [{number: Delivery() for number in range(first, 20, 2)} for first in (0, 1)]
        for _ in range(12):
            for place, partition in enumerate(both):
                halves[place] = await redeliver(partition, decisions, halves[place])
        assert halves == [{}, {}]
        await assert_results_of(arena, run, decisions)
    finally:
        await other.broker.stop()


async def test_a_suspended_simulator_repeats_nothing(
    arena: Arena,
    partition: Partition,
    run: RunRecord,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even when the message ids have expired, because the sequence has advanced."""
    monkeypatch.setattr(partitions, "RELOAD_SECONDS", 60)
    short_window = settings.model_copy(update={"duplicate_window": timedelta(milliseconds=100)})
    other = await connect(short_window, "other")
    suspended = partition_on(other, RunBook(other.jetstream))
    decisions = decided(run, 3, 5)
    try:
        early = Delivery()
        await suspended.process(decisions[2], early)  # so its next batch is 0
        for decision in decisions:
            await partition.process(decision, Delivery())
        event = Event(kind="probe", message="", service="test")

        async def ids_have_expired() -> bool:
            await arena.bus.publish_event(event, message_id="probe")
            return len(await arena.events("probe")) > 1

        await eventually(ids_have_expired)
        for decision in decisions[:2]:
            late = Delivery()
            await suspended.process(decision, late)
            assert late.acks == ["ack"]
        assert early.acks == ["ack"]
        await assert_results_of(arena, run, decisions)
    finally:
        await other.broker.stop()


async def test_a_restarted_simulator_continues_bit_for_bit(arena: Arena, run: RunRecord) -> None:
    decisions = decided(run, 30, 7)
    for number, decision in enumerate(decisions):
        if number % 10 == 0:
            partition = partition_on(arena.bus, RunBook(arena.jetstream))
        delivery = Delivery()
        await partition.process(decision, delivery)
        assert delivery.acks == ["ack"]
    await assert_results_of(arena, run, decisions)


async def test_runs_evicted_from_the_cache_continue(
    arena: Arena, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "CACHED_RUNS", 1)
    runs = [await arena.run(**SPEC, seed=seed) for seed in (1, 2)]
    decisions = {run.run: decided(run, 4, 5) for run in runs}
    early = Delivery()
    await partition.process(decisions[runs[0].run][3], early)
    for number in range(4):
        for run in runs:
            await partition.process(decisions[run.run][number], Delivery())
    assert early.acks == ["nack"]
    for run in runs:
        await assert_results_of(arena, run, decisions[run.run])


async def test_more_early_batches_than_are_buffered_are_simulated_in_order(
    arena: Arena, partition: Partition, run: RunRecord
) -> None:
    count = EARLY_BATCHES + 20
    decisions = decided(run, count, 1)
    waiting = {number: Delivery() for number in reversed(range(1, count))}
    for number, delivery in waiting.items():
        await partition.process(decisions[number], delivery)
    redelivered = [number for number, delivery in waiting.items() if delivery.acks == ["nack"]]
    assert redelivered == list(range(19, 0, -1))
    assert all(waiting[number].delay for number in redelivered)
    await partition.process(decisions[0], Delivery())
    for number in reversed(redelivered):
        waiting[number] = Delivery()
        await partition.process(decisions[number], waiting[number])
    assert all(delivery.acks == ["ack"] for delivery in waiting.values())
    await assert_results_of(arena, run, decisions)


async def test_a_closed_partition_nacks_its_buffered_batches(
    arena: Arena, partition: Partition, run: RunRecord
) -> None:
    early = [Delivery() for _ in range(3)]
    for delivery, decision in zip(early, decided(run, 4, 5)[1:], strict=True):
        await partition.process(decision, delivery)
    await partition.close()
    assert [(delivery.acks, delivery.delay) for delivery in early] == [(["nack"], None)] * 3
    assert await results(arena, run) == []


async def test_simulators_that_join_and_leave_lose_nothing(arena: Arena, run: RunRecord) -> None:
    """Three simulators share three schedulers; then only one is left."""
    names = ["greedy", "oracle", "random"]
    run = await arena.run(**{**SPEC, "schedulers": names})
    simulators = [await arena.start("simulator") for _ in range(3)]
    decisions = decided(run, 40, 5)

    async def counts() -> list[int]:
        return [
            await arena.count_of(subjects.RESULTS, subjects.results(run.run, name))
            for name in names
        ]

    async def publish(decisions: list[Batch]) -> None:
        for decision in decisions:
            for name in names:
                envelope = replace(decision.envelope, scheduler=name)
                await arena.bus.publish_batch(Batch(envelope, decision.rows))

    await publish(decisions[:20])
    await eventually(lambda: counts(), equals=[20, 20, 20])
    await publish(decisions[20:30])
    await arena.stop(*simulators[:2])
    await publish(decisions[30:])
    await eventually(lambda: counts(), equals=[40, 40, 40])
    await assert_results_of(arena, run, decisions)
    assert await arena.dead_letters() == []
    assert await arena.count(subjects.DECISIONS) == 0
