"""The generator on a real bus: every task once, whatever happens to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from shared import subjects
from shared.batches import Batch, task_rows
from shared.errors import Conflict
from shared.runs import RunRecord, RunState
from shared.stream import load_position
from shared.workload import Cursor, generate
from tests.counting import COUNTED, once
from tests.integration.arena import Arena, eventually, rows_of
from tests.integration.sending import all_sent, come_to_rest, some_sent

WORKLOAD = {"workload": {"dependencies": {"probability": 0.3}}, "schedulers": ["greedy"]}


def whole(run: RunRecord, tasks: int) -> pa.Table:
    """The run's tasks, made in one piece."""
    made, _ = generate(run.spec, Cursor(), tasks)
    return pa.Table.from_batches([task_rows(made)])


def assert_every_task_once(run: RunRecord, found: list[Batch], tasks: int) -> None:
    assert [batch.envelope.batch for batch in found] == list(range(len(found)))
    assert rows_of(found).equals(whole(run, tasks))


@pytest.mark.parametrize("pace", ["max", 5000])
async def test_a_run_gets_exactly_its_tasks_bit_by_bit(arena: Arena, pace: Any) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(**WORKLOAD, tasks=1234, pace=pace)
    await arena.start("generator")
    found = await all_sent(arena, run, 1234)
    assert_every_task_once(run, found, 1234)
    assert max(batch.rows.num_rows for batch in found) <= arena.settings.batch_tasks
    assert await come_to_rest(arena, run) == 1234


async def test_a_killed_generator_goes_on_without_gap_or_repeat(arena: Arena) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(**WORKLOAD, tasks=3000, pace=1500)
    killed_at = 0
    for _ in range(2):
        generator = arena.process("generator")
        killed_at = await some_sent(arena, run, more_than=killed_at)
        generator.kill()
        generator.wait(10)
    assert killed_at < 3000
    await arena.start("generator")
    assert_every_task_once(run, await all_sent(arena, run, 3000), 3000)


async def test_two_generators_send_every_task_once(arena: Arena) -> None:
    """At a pace, so that the two make batches of different sizes for the same place."""
    await arena.schedulers("greedy")
    run = await arena.run(**WORKLOAD, tasks=2000, pace=1500)
    await asyncio.gather(*(arena.start("generator") for _ in range(3)))
    assert_every_task_once(run, await all_sent(arena, run, 2000), 2000)
    assert await come_to_rest(arena, run) == 2000


async def test_what_another_puts_into_the_stream_stays_and_costs_no_task(arena: Arena) -> None:
    """As the gateway does with tasks that people submit."""
    await arena.schedulers("greedy")
    run = await arena.run(schedulers=["greedy"], tasks=1500, pace=1500)
    await arena.start("generator")
    submitted = []
    while len(submitted) < 20:
        position = await load_position(arena.bus, run.run)
        tasks, _ = generate(run.spec, Cursor(0, position.cursor.next_task, 0.0), 3)
        cursor = position.cursor
        after = Cursor(cursor.generated, cursor.next_task + 3, cursor.clock)
        batch = position.next_message(run.run, tasks, after)
        try:
            await arena.bus.publish_batch(batch, after=position.sequence)
        except Conflict:
            continue
        submitted.append(batch)
    found = await all_sent(arena, run, 1500)
    ids = rows_of(found).column("task_id").to_pylist()
    assert ids == list(range(1500 + 60))
    numbers = {batch.envelope.batch for batch in submitted}
    own = rows_of([batch for batch in found if batch.envelope.batch not in numbers])
    assert own.drop(["task_id"]).equals(whole(run, 1500).drop(["task_id"]))


async def test_pause_stops_the_stream_and_resume_goes_on(arena: Arena) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(**WORKLOAD, tasks=2000, pace=1000)
    await arena.start("generator")
    await some_sent(arena, run)
    await arena.runs.move(run.run, RunState.PAUSED)
    paused_at = await come_to_rest(arena, run)
    assert 0 < paused_at < 2000
    await arena.runs.move(run.run, RunState.RUNNING)
    assert_every_task_once(run, await all_sent(arena, run, 2000), 2000)


async def test_a_paused_run_stays_paused_over_a_restart(arena: Arena) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(**WORKLOAD, tasks=2000, pace=1000)
    first = await arena.start("generator")
    await some_sent(arena, run)
    await arena.runs.move(run.run, RunState.PAUSED)
    paused_at = await come_to_rest(arena, run)
    await arena.stop(first)
    await arena.start("generator")
    assert await come_to_rest(arena, run) == paused_at
    assert await arena.state(run) == RunState.PAUSED
    await arena.runs.move(run.run, RunState.RUNNING)
    assert_every_task_once(run, await all_sent(arena, run, 2000), 2000)


async def test_a_stopped_run_sends_no_more(arena: Arena) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(**WORKLOAD, pace=1000)
    await arena.start("generator")
    await some_sent(arena, run)
    await arena.runs.move(run.run, RunState.STOPPED)
    stopped_at = await come_to_rest(arena, run)
    await arena.stop()
    await arena.start("generator")
    assert await come_to_rest(arena, run) == stopped_at


async def test_without_workers_the_generator_waits(arena: Arena) -> None:
    run = await arena.run(**WORKLOAD, tasks=100)
    await arena.start("generator")
    await arena.schedulers("oracle")  # deployed, but not for this run
    assert await come_to_rest(arena, run) == 0
    await arena.schedulers("greedy")
    assert_every_task_once(run, await all_sent(arena, run, 100), 100)


async def test_the_lead_over_the_fastest_scheduler_is_limited(arena: Arena) -> None:
    """Nobody reads: no more than `lead_batches` batches go out."""
    for name in ("greedy", "oracle"):
        durable = subjects.durable(subjects.scheduler_durable(name), "tasks.*", arena.settings)
        await arena.bus.make_durable(subjects.TASKS, durable)
    run = await arena.run(tasks=10_000, schedulers=["greedy", "oracle"])
    await arena.start("generator", lead_batches=5)
    await some_sent(arena, run)
    assert await come_to_rest(arena, run) == 5 * arena.settings.batch_tasks
    # One of the two reads: the other lags alone.
    await arena.schedulers("greedy")
    assert len(await all_sent(arena, run, 10_000)) == 200


async def test_decisions_that_are_not_priced_yet_count_for_the_lead(arena: Arena) -> None:
    """Or learners would decide long before their results come back."""
    durable = subjects.durable(
        subjects.simulator_durable("greedy"), subjects.decisions("*", "greedy"), arena.settings
    )
    await arena.bus.make_durable(subjects.DECISIONS, durable)
    await arena.schedulers("greedy")
    run = await arena.run(tasks=10_000, schedulers=["greedy"])
    await arena.start("generator", lead_batches=5)
    await some_sent(arena, run)
    sent = await come_to_rest(arena, run)
    # The look is every half a second: decisions of that time may come on top.
    assert sent < 10_000
    await arena.start("simulator")
    assert len(await all_sent(arena, run, 10_000)) == 200


async def test_a_slow_recorder_holds_the_generator_back_and_loses_nothing(
    full_arena: Arena,
) -> None:
    """4000 tasks take a quarter of a megabyte in TASKS alone, so they cannot all be sent."""
    arena = full_arena
    limits = {"tasks_max_bytes": 200_000, "results_max_bytes": 200_000}
    arena.settings = arena.settings.model_copy(update=limits)
    recorder = await arena.start("recorder")
    await arena.stop(recorder)
    await arena.schedulers("greedy", "round_robin")
    await arena.start("simulator")
    generator = await arena.start("generator")
    run = await arena.run(schedulers=["greedy", "round_robin"], tasks=4_000)

    async def held_in_results() -> int:
        return int((await arena.stream.stream_info(subjects.RESULTS)).state.bytes)

    async def nearly_full() -> bool:
        return await held_in_results() > 0.7 * 200_000

    await eventually(nearly_full)
    held_at = await come_to_rest(arena, run)
    assert 0 < held_at < 4_000
    assert 0.7 * 200_000 < await held_in_results() <= 200_000
    # It stopped by itself, before its own stream was full.
    full = generator.registry.get_sample_value
    assert full("hybrid_stream_full_total", {"stream": subjects.TASKS}) is None
    assert await arena.state(run) == RunState.RUNNING
    await arena.start("recorder")
    await arena.completed(run)
    (tasks,) = arena.store.query("SELECT count() AS n, max(task_id) AS last FROM tasks FINAL")
    assert tasks == {"n": 4_000, "last": 3_999}
    found = arena.store.query(COUNTED.format(run=run.run))
    assert found == once(4_000, ["greedy", "round_robin"])
