"""The generator on a real bus: every task once, whatever happens to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from services.generator.housekeeping import Housekeeping
from shared import subjects
from shared.batches import Batch, task_rows
from shared.errors import Conflict
from shared.runs import RunRecord, RunState
from shared.stream import load_position
from shared.workload import Cursor, generate
from tests.integration.arena import Arena, eventually, rows_of, unchanged

WORKLOAD = {"workload": {"dependencies": {"probability": 0.3}}, "schedulers": ["greedy"]}


async def sent(arena: Arena, run: RunRecord) -> list[Batch]:
    return await arena.batches(subjects.TASKS, subjects.tasks(run.run))


async def all_sent(arena: Arena, run: RunRecord, tasks: int) -> list[Batch]:
    async def enough() -> bool:
        return await arena.tasks_sent(run) >= tasks

    await eventually(enough, f"{tasks} tasks sent")
    return await sent(arena, run)


async def some_sent(arena: Arena, run: RunRecord, more_than: int = 0) -> int:
    async def some() -> int | None:
        number = await arena.tasks_sent(run)
        return number if number > more_than else None

    return int(await eventually(some, "some tasks sent"))


async def come_to_rest(arena: Arena, run: RunRecord) -> int:
    async def number() -> int:
        return await arena.tasks_sent(run)

    return int(await unchanged(number))


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
    rows = arena.store.query(
        "SELECT scheduler, count() AS n, uniqExact(task_id) AS ids FROM scheduler_results FINAL "
        "GROUP BY scheduler ORDER BY scheduler"
    )
    assert rows == [
        {"scheduler": "greedy", "n": 4_000, "ids": 4_000},
        {"scheduler": "round_robin", "n": 4_000, "ids": 4_000},
    ]


async def test_a_run_is_complete_only_when_everything_is_stored(full_arena: Arena) -> None:
    arena = full_arena
    recorder = await arena.start("recorder")
    await arena.stop(recorder)
    await arena.schedulers("greedy")
    await arena.start("simulator")
    await arena.start("generator")
    run = await arena.run(schedulers=["greedy"], tasks=500)

    async def simulated() -> bool:
        found = await arena.batches(subjects.RESULTS, subjects.results(run.run, "greedy"))
        return sum(batch.rows.num_rows for batch in found) == 500

    await eventually(simulated)

    async def state() -> RunState:
        return await arena.state(run)

    assert await unchanged(state) == RunState.RUNNING
    await arena.start("recorder")
    await arena.completed(run)
    rows = arena.store.query(
        "SELECT (SELECT count() FROM tasks) AS tasks, count() AS results FROM scheduler_results"
    )
    assert rows == [{"tasks": 500, "results": 500}]
    (event,) = [event for event in await arena.events("run") if "is complete" in event]
    assert run.run in event


async def test_a_run_without_end_never_completes(full_arena: Arena) -> None:
    arena = full_arena
    await arena.schedulers("greedy")
    for name in ("simulator", "generator", "recorder"):
        await arena.start(name)
    run = await arena.run(schedulers=["greedy"], pace=200)
    await some_sent(arena, run, more_than=200)
    assert await arena.state(run) == RunState.RUNNING


async def read_to_the_end(arena: Arena, stream: str, durable: str) -> None:
    async def done() -> bool:
        info = await arena.stream.consumer_info(stream, durable)
        return not info.num_pending and not info.num_ack_pending

    await eventually(done, f"{durable} has read {stream}")


async def test_streams_are_trimmed_to_the_last_message_of_active_runs(full_arena: Arena) -> None:
    arena = full_arena
    names = ["greedy", "oracle"]
    await arena.schedulers(*names)
    for name in ("simulator", "recorder", "generator"):
        await arena.start(name)
    runs = [await arena.run(schedulers=names, tasks=10**6, pace=2000, seed=n) for n in (1, 2)]
    for run in runs:
        await some_sent(arena, run, more_than=500)
        await arena.runs.move(run.run, RunState.PAUSED)

    async def trimmed() -> bool:
        return (await arena.count(subjects.TASKS), await arena.count(subjects.RESULTS)) == (2, 4)

    await eventually(trimmed)
    for run in runs:
        (last,) = await sent(arena, run)
        for name in names:
            subject = subjects.results(run.run, name)
            (result,) = await arena.batches(subjects.RESULTS, subject)
            assert result.envelope.batch == last.envelope.batch
    # What is left is enough to go on from.
    before = await arena.tasks_sent(runs[0])
    await arena.runs.move(runs[0].run, RunState.RUNNING)
    await some_sent(arena, runs[0], more_than=before)


async def test_nothing_is_left_of_a_run_that_is_complete(full_arena: Arena) -> None:
    arena = full_arena
    await arena.schedulers("greedy")
    for name in ("simulator", "recorder", "generator"):
        await arena.start(name)
    run = await arena.run(schedulers=["greedy"], tasks=300)
    await arena.completed(run)

    async def empty() -> bool:
        streams = (subjects.TASKS, subjects.DECISIONS, subjects.RESULTS)
        return [await arena.count(stream) for stream in streams] == [0, 0, 0]

    await eventually(empty)


async def test_messages_that_somebody_has_not_read_are_kept(full_arena: Arena) -> None:
    """The recorder and one scheduler are done; the other scheduler does not even run."""
    arena = full_arena
    lagging = subjects.durable(subjects.scheduler_durable("oracle"), "tasks.*", arena.settings)
    await arena.bus.make_durable(subjects.TASKS, lagging)
    await arena.schedulers("greedy")
    for name in ("simulator", "recorder", "generator"):
        await arena.start(name)
    run = await arena.run(schedulers=["greedy", "oracle"], tasks=500)
    await all_sent(arena, run, 500)
    await read_to_the_end(arena, subjects.TASKS, "recorder")
    await read_to_the_end(arena, subjects.TASKS, "scheduler-greedy")

    async def kept() -> int:
        return await arena.count(subjects.TASKS)

    assert await unchanged(kept) == 10
    await arena.schedulers("oracle")
    await arena.completed(run)
    rows = arena.store.query("SELECT count() AS n FROM scheduler_results FINAL")
    assert rows == [{"n": 1000}]


async def test_a_deployed_scheduler_that_takes_no_part_holds_no_run_up(full_arena: Arena) -> None:
    arena = full_arena
    idle = subjects.durable(subjects.scheduler_durable("oracle"), "tasks.*", arena.settings)
    await arena.bus.make_durable(subjects.TASKS, idle)
    await arena.schedulers("greedy")
    for name in ("simulator", "recorder", "generator"):
        await arena.start(name)
    run = await arena.run(schedulers=["greedy"], tasks=500)
    await arena.completed(run)

    async def trimmed() -> bool:
        return await arena.count(subjects.TASKS) == 0

    await eventually(trimmed)


async def test_garbage_in_a_paused_run_does_not_cost_its_state(full_arena: Arena) -> None:
    """Everybody has read the garbage, so it is trimmed; the last good message must stay."""
    arena = full_arena
    await arena.schedulers("greedy")
    simulator = await arena.start("simulator")
    for name in ("recorder", "generator"):
        await arena.start(name)
    run = await arena.run(schedulers=["greedy"], tasks=2000, pace=1000)
    await some_sent(arena, run)
    await arena.runs.move(run.run, RunState.PAUSED)
    await come_to_rest(arena, run)
    await arena.publish_raw(subjects.tasks(run.run), b"garbage")
    await arena.publish_raw(subjects.results(run.run, "greedy"), b"garbage")

    async def rejected() -> bool:
        return len(await arena.dead_letters()) == 2

    await eventually(rejected)

    async def trimmed() -> bool:
        return (await arena.count(subjects.TASKS), await arena.count(subjects.RESULTS)) == (1, 1)

    await eventually(trimmed)
    await arena.stop(simulator)
    await arena.start("simulator")
    await arena.runs.move(run.run, RunState.RUNNING)
    await arena.completed(run)
    rows = arena.store.query(
        "SELECT count() AS n, uniqExact(task_id) AS ids FROM scheduler_results"
    )
    assert rows == [{"n": 2000, "ids": 2000}]


async def test_a_scheduler_that_lags_behind_a_stopped_run_still_finishes_it(
    full_arena: Arena,
) -> None:
    """Its results so far are its state: they stay until its last task is through."""
    arena = full_arena
    (worker,) = await arena.schedulers("greedy")
    simulator = await arena.start("simulator")
    recorder = await arena.start("recorder")
    generator = await arena.start("generator")
    run = await arena.run(schedulers=["greedy"], tasks=10**6, pace=1000)
    await some_sent(arena, run)
    await arena.stop(worker)
    await some_sent(arena, run, more_than=await arena.tasks_sent(run) + 20)
    await arena.runs.move(run.run, RunState.STOPPED)
    total = await come_to_rest(arena, run)
    await read_to_the_end(arena, subjects.RESULTS, "recorder")
    await Housekeeping(generator.bus, generator.runs).trim()
    await arena.stop(simulator, generator)
    await arena.start("simulator")
    await arena.schedulers("greedy")

    async def stored() -> bool:
        (row,) = arena.store.query(
            "SELECT count() AS n, uniqExact(task_id) AS ids FROM scheduler_results"
        )
        return row == {"n": total, "ids": total}

    await eventually(stored)
    assert await arena.dead_letters() == []
    assert recorder.bus.connected
