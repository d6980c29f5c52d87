"""The generator on a real bus: every task is published once, in spite of kills and rivals."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from shared.bus import streams
from shared.bus.task_stream import load_position
from shared.domain.workload import Cursor, generate
from shared.errors import Conflict
from shared.messages import subjects
from shared.messages.batches import Batch, complete, task_rows
from shared.messages.runs import RunRecord, RunState
from tests.counting import COUNTED, once
from tests.integration.arena import Arena, eventually, rows_of
from tests.integration.sending import all_sent, come_to_rest, some_sent

WORKLOAD = {"workload": {"dependencies": {"probability": 0.3}}, "schedulers": ["greedy"]}


def expected_rows(run: RunRecord, count: int) -> pa.Table:
    """The run's tasks, generated as one batch."""
    tasks, _ = generate(run.spec, Cursor(), count)
    return pa.Table.from_batches([complete(task_rows(tasks), "tasks")])


def assert_every_task_once(run: RunRecord, published: list[Batch], count: int) -> None:
    assert [batch.envelope.batch for batch in published] == list(range(len(published)))
    assert rows_of(published).equals(expected_rows(run, count))


@pytest.mark.parametrize("pace", ["max", 5000])
async def test_a_run_has_exactly_its_tasks_bit_for_bit(arena: Arena, pace: Any) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(**WORKLOAD, tasks=1234, pace=pace)
    await arena.start("generator")
    published = await all_sent(arena, run, 1234)
    assert_every_task_once(run, published, 1234)
    assert max(batch.rows.num_rows for batch in published) <= arena.settings.batch_tasks
    assert await come_to_rest(arena, run) == 1234


async def test_a_killed_generator_resumes_without_gaps_or_repeats(arena: Arena) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(**WORKLOAD, tasks=3000, pace=1500)
    killed_at = 0
    for _ in range(2):
        generator = arena.process("generator")
        killed_at = await some_sent(arena, run, more_than=killed_at)
        generator.kill()
        generator.wait(60)
    assert killed_at < 3000
    await arena.start("generator")
    assert_every_task_once(run, await all_sent(arena, run, 3000), 3000)


async def test_several_generators_publish_every_task_once(arena: Arena) -> None:
    """At a pace, so that they generate batches of different sizes for the same position."""
    await arena.schedulers("greedy")
    run = await arena.run(**WORKLOAD, tasks=2000, pace=1500)
    await asyncio.gather(*(arena.start("generator") for _ in range(3)))
    assert_every_task_once(run, await all_sent(arena, run, 2000), 2000)
    assert await come_to_rest(arena, run) == 2000


async def test_submitted_tasks_stay_in_the_stream_and_replace_no_generated_task(
    arena: Arena,
) -> None:
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
    published = await all_sent(arena, run, 1500)
    ids = rows_of(published).column("task_id").to_pylist()
    assert ids == list(range(1500 + 60))
    numbers = {batch.envelope.batch for batch in submitted}
    generated = rows_of([b for b in published if b.envelope.batch not in numbers])
    numbers_of_tasks = ["task_id", "last_child"]
    expected = expected_rows(run, 1500).drop(numbers_of_tasks)
    assert generated.drop(numbers_of_tasks).equals(expected)


async def test_pause_stops_the_stream_and_resume_continues_it(arena: Arena) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(**WORKLOAD, tasks=2000, pace=1000)
    await arena.start("generator")
    await some_sent(arena, run)
    await arena.runs.change_state(run.run, RunState.PAUSED)
    paused_at = await come_to_rest(arena, run)
    assert 0 < paused_at < 2000
    await arena.runs.change_state(run.run, RunState.RUNNING)
    assert_every_task_once(run, await all_sent(arena, run, 2000), 2000)


async def test_a_paused_run_stays_paused_after_a_restart(arena: Arena) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(**WORKLOAD, tasks=2000, pace=1000)
    first = await arena.start("generator")
    await some_sent(arena, run)
    await arena.runs.change_state(run.run, RunState.PAUSED)
    paused_at = await come_to_rest(arena, run)
    await arena.stop(first)
    await arena.start("generator")
    assert await come_to_rest(arena, run) == paused_at
    assert await arena.state(run) == RunState.PAUSED
    await arena.runs.change_state(run.run, RunState.RUNNING)
    assert_every_task_once(run, await all_sent(arena, run, 2000), 2000)


async def test_a_stopped_run_publishes_no_more(arena: Arena) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(**WORKLOAD, pace=1000)
    await arena.start("generator")
    await some_sent(arena, run)
    await arena.runs.change_state(run.run, RunState.STOPPED)
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
    """Without workers at most `lead_batches` batches are published."""
    for name in ("greedy", "oracle"):
        durable = streams.durable(subjects.scheduler_durable(name), "tasks.*", arena.settings)
        await arena.bus.ensure_consumer(subjects.TASKS, durable)
    run = await arena.run(tasks=10_000, schedulers=["greedy", "oracle"])
    await arena.start("generator", lead_batches=5)
    await some_sent(arena, run)
    assert await come_to_rest(arena, run) == 5 * arena.settings.batch_tasks
    # With one worker: the other scheduler lags alone.
    await arena.schedulers("greedy")
    assert len(await all_sent(arena, run, 10_000)) == 200


async def test_decisions_without_results_count_for_the_lead(arena: Arena) -> None:
    """Or learners would decide long before they have results."""
    durable = streams.durable(
        subjects.simulator_durable("greedy"), subjects.decisions("*", "greedy"), arena.settings
    )
    await arena.bus.ensure_consumer(subjects.DECISIONS, durable)
    await arena.schedulers("greedy")
    run = await arena.run(tasks=10_000, schedulers=["greedy"])
    await arena.start("generator", lead_batches=5)
    await some_sent(arena, run)
    sent = await come_to_rest(arena, run)
    # The lag is read every half second: decisions of that time may be added.
    assert sent < 10_000
    await arena.start("simulator")
    assert len(await all_sent(arena, run, 10_000)) == 200


async def test_a_slow_recorder_delays_the_generator_and_loses_nothing(arena: Arena) -> None:
    """4000 tasks take a quarter of a megabyte in TASKS alone, more than it may hold."""
    limits = {"tasks_max_bytes": 200_000, "results_max_bytes": 200_000}
    arena.settings = arena.settings.model_copy(update=limits)
    recorder = await arena.start("recorder")
    await arena.stop(recorder)
    await arena.schedulers("greedy", "round_robin")
    await arena.start("simulator")
    generator = await arena.start("generator")
    run = await arena.run(schedulers=["greedy", "round_robin"], tasks=4_000)

    async def bytes_in_results() -> int:
        return int((await arena.jetstream.stream_info(subjects.RESULTS)).state.bytes)

    await eventually(lambda: bytes_in_results(), accept=lambda number: number > 0.7 * 200_000)
    published = await come_to_rest(arena, run)
    assert 0 < published < 4_000
    assert 0.7 * 200_000 < await bytes_in_results() <= 200_000
    # It stopped before its own stream was full.
    sample = generator.registry.get_sample_value
    assert sample("hybrid_stream_full_total", {"stream": subjects.TASKS}) is None
    assert await arena.state(run) == RunState.RUNNING
    await arena.start("recorder")
    await arena.completed(run)
    (tasks,) = arena.store.query("SELECT count() AS n, max(task_id) AS last FROM tasks FINAL")
    assert tasks == {"n": 4_000, "last": 3_999}
    counts = arena.store.query(COUNTED.format(run=run.run))
    assert counts == once(4_000, ["greedy", "round_robin"])
