"""The generator's other work on a real bus: runs that end, streams that stay short."""

from __future__ import annotations

import pytest

from services.generator.housekeeping import Housekeeping
from shared import models, subjects
from shared.models import FOREST, Manifest
from shared.runs import RunState
from tests.integration.arena import Arena, eventually, unchanged
from tests.integration.learning import versions
from tests.integration.publishing import publish_run
from tests.integration.sending import all_sent, come_to_rest, sent, some_sent


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
        "SELECT (SELECT count() FROM tasks FINAL) AS tasks, count() AS results "
        "FROM scheduler_results FINAL"
    )
    assert rows == [{"tasks": 500, "results": 500}]

    async def told() -> list[str]:
        return [event for event in await arena.events("run") if "is complete" in event]

    (event,) = await eventually(told)
    assert run.run in event


async def test_the_end_of_a_run_is_told_once_even_if_the_generator_dies_meanwhile(
    full_arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    arena = full_arena
    await arena.start("recorder")
    run = await arena.run(schedulers=["greedy"], tasks=30)
    await publish_run(arena, run, count=6, each=5)
    for stream in (subjects.TASKS, subjects.RESULTS):
        await read_to_the_end(arena, stream, "recorder")
    housekeeping = Housekeeping(arena.bus, arena.runs)

    async def die(*_: object, **__: object) -> None:
        raise ConnectionError

    for part, call in ((arena.bus, "tell"), (arena.runs, "move")):
        with monkeypatch.context() as patch:
            patch.setattr(part, call, die)
            with pytest.raises(ConnectionError):
                await housekeeping.complete(run)
        assert await arena.state(run) == RunState.RUNNING  # it will be looked at again
    assert await housekeeping.complete(run)
    assert await arena.state(run) == RunState.COMPLETED
    (event,) = await arena.events("run")
    assert f"run {run.run} is complete" in event


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


async def test_a_run_whose_record_is_a_newer_versions_keeps_its_state(full_arena: Arena) -> None:
    arena = full_arena
    run = await arena.run(schedulers=["greedy"], tasks=100)
    newer = run.model_copy(update={"message_format": 2})
    await arena.publish_raw(f"$KV.runs.{run.run}", newer.model_dump_json().encode())
    await arena.start("recorder")
    generator = await arena.start("generator")
    published = await publish_run(arena, run, count=3)
    for stream in (subjects.TASKS, subjects.RESULTS):
        await read_to_the_end(arena, stream, "recorder")
    await Housekeeping(generator.bus, generator.runs).trim()
    (tasks,) = await sent(arena, run)
    (results,) = await arena.batches(subjects.RESULTS, subjects.results(run.run, "greedy"))
    assert tasks.envelope == published["tasks"][-1].envelope
    assert results.envelope == published["greedy"][-1].envelope


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


async def test_of_a_run_that_is_over_the_newest_and_the_first_model_stay(arena: Arena) -> None:
    generator = await arena.start("generator")
    over, paused = [await arena.run(schedulers=["greedy"]) for _ in range(2)]
    await arena.runs.move(over.run, RunState.STOPPED)
    await arena.runs.move(paused.run, RunState.PAUSED)
    body = b"a model"
    for run in (over, paused):
        after = 0
        for version in (1, 2, 3):
            manifest = Manifest(
                run=run.run,
                name=FOREST,
                version=version,
                sha256=models.digest(body),
                format="onnx",
                trained_on=100,
            )
            after = await models.ship(arena.bus, manifest, body, after=after)
    await Housekeeping(generator.bus, generator.runs).trim_models()
    assert await versions(arena, over, FOREST) == [3]
    assert await versions(arena, paused, FOREST) == [1, 2, 3]
    first = await models.first(arena.bus, over.run, FOREST)
    assert first is not None
    assert first.manifest.version == 1
