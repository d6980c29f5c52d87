"""A scheduler's lane through the simulator, on a real bus."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry, Counter

from services.simulator import lane as lanes
from services.simulator.lane import EARLY_BATCHES, Counters, Lane
from services.simulator.simulation import Simulation
from shared import batches, subjects
from shared.batches import Batch, Envelope
from shared.bus import Bus
from shared.errors import Unreadable
from shared.events import Event
from shared.runs import RunBook, RunRecord
from shared.settings import Settings
from shared.tasks import Decisions
from shared.workload import Cursor, generate
from tests.integration.arena import Arena, connect, eventually, rows_of

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
    registry = CollectorRegistry()
    counters = Counters(
        results=Counter("r", "r", registry=registry), seconds=Counter("s", "s", registry=registry)
    )
    return Lane(scheduler, bus, runs, counters)


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
        late = Delivery()
        await asleep.offer(decisions[0], late)
        assert (late.said, early.said) == (["ack"], ["ack"])
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
