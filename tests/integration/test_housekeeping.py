"""Completing runs and trimming streams, on a real bus."""

from __future__ import annotations

import pytest

from services.generator.housekeeping import Housekeeping
from shared.bus import model_registry, streams
from shared.domain.schedulers import FOREST
from shared.messages import models, subjects
from shared.messages.formats import FORMATS
from shared.messages.models import Manifest
from shared.messages.runs import RunState
from tests.integration.arena import Arena, eventually, unchanged
from tests.integration.learning import versions
from tests.integration.publishing import publish_run
from tests.integration.sending import all_sent, come_to_rest, sent, some_sent


async def start_all(arena: Arena, *policies: str) -> None:
    await arena.schedulers(*policies)
    for name in ("simulator", "recorder", "generator"):
        await arena.start(name)


async def counts(arena: Arena, *streams: str) -> list[int]:
    return [await arena.count(stream) for stream in streams]


async def test_a_run_is_complete_only_when_all_results_are_stored(arena: Arena) -> None:
    recorder = await arena.start("recorder")
    await arena.stop(recorder)
    await arena.schedulers("greedy")
    await arena.start("simulator")
    await arena.start("generator")
    run = await arena.run(schedulers=["greedy"], tasks=500)
    await eventually(
        lambda: arena.batches(subjects.RESULTS, subjects.results(run.run, "greedy")),
        accept=lambda results: sum(batch.rows.num_rows for batch in results) == 500,
    )
    assert await unchanged(lambda: arena.state(run)) == RunState.RUNNING
    await arena.start("recorder")
    await arena.completed(run)
    rows = arena.store.query(
        "SELECT (SELECT count() FROM tasks FINAL) AS tasks, count() AS results "
        "FROM scheduler_results FINAL"
    )
    assert rows == [{"tasks": 500, "results": 500}]

    async def completion_events() -> list[str]:
        return [event for event in await arena.events("run") if "is complete" in event]

    (event,) = await eventually(completion_events)
    assert run.run in event


async def test_the_completion_event_is_published_once_even_if_the_generator_dies_meanwhile(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    await arena.start("recorder")
    run = await arena.run(schedulers=["greedy"], tasks=30)
    await publish_run(arena, run, count=6, each=5)
    for stream in (subjects.TASKS, subjects.RESULTS):
        await all_acknowledged(arena, stream, "recorder")
    housekeeping = Housekeeping(arena.bus, arena.runs)

    async def die(*_: object, **__: object) -> None:
        raise ConnectionError

    for part, call in ((arena.bus, "publish_event"), (arena.runs, "change_state")):
        with monkeypatch.context() as patch:
            patch.setattr(part, call, die)
            with pytest.raises(ConnectionError):
                await housekeeping.complete(run)
        assert await arena.state(run) == RunState.RUNNING  # housekeeping will try again
    assert await housekeeping.complete(run)
    assert await arena.state(run) == RunState.COMPLETED
    (event,) = await arena.events("run")
    assert f"run {run.run} is complete" in event


async def test_an_endless_run_never_completes(arena: Arena) -> None:
    await start_all(arena, "greedy")
    run = await arena.run(schedulers=["greedy"], pace=200)
    await some_sent(arena, run, more_than=200)
    assert await arena.state(run) == RunState.RUNNING


async def all_acknowledged(arena: Arena, stream: str, durable: str) -> None:
    await eventually(
        lambda: arena.jetstream.consumer_info(stream, durable),
        f"{durable} has acknowledged {stream}",
        accept=lambda info: not info.num_pending and not info.num_ack_pending,
    )


async def test_streams_are_trimmed_to_the_last_message_of_active_runs(arena: Arena) -> None:
    names = ["greedy", "oracle"]
    await start_all(arena, *names)
    runs = [await arena.run(schedulers=names, tasks=10**6, pace=2000, seed=n) for n in (1, 2)]
    for run in runs:
        await some_sent(arena, run, more_than=500)
        await arena.runs.change_state(run.run, RunState.PAUSED)
    await eventually(lambda: counts(arena, subjects.TASKS, subjects.RESULTS), equals=[2, 4])
    for run in runs:
        (last,) = await sent(arena, run)
        for name in names:
            subject = subjects.results(run.run, name)
            (result,) = await arena.batches(subjects.RESULTS, subject)
            assert result.envelope.batch == last.envelope.batch
    # The run can continue from the last message.
    before = await arena.tasks_sent(runs[0])
    await arena.runs.change_state(runs[0].run, RunState.RUNNING)
    await some_sent(arena, runs[0], more_than=before)


async def test_a_stream_fills_when_it_has_more_than_a_small_share_of_its_limit(
    arena: Arena,
) -> None:
    housekeeping = Housekeeping(arena.bus, arena.runs)
    run = await arena.run(schedulers=["greedy"], tasks=30)
    await publish_run(arena, run, count=6, each=5)
    assert not await housekeeping.streams_fill()
    info = await arena.jetstream.stream_info(subjects.RESULTS)
    limit = info.config.evolve(max_bytes=2 * info.state.bytes)
    await arena.jetstream.update_stream(limit)
    assert await housekeeping.streams_fill()


async def test_trimming_does_not_keep_a_message_from_being_redelivered(arena: Arena) -> None:
    """NATS forgets with every purge, even of nothing, what it is to redeliver."""
    durable = subjects.scheduler_durable("greedy")
    consumer = streams.durable(durable, "tasks.*", arena.settings)
    await arena.bus.ensure_consumer(subjects.TASKS, consumer.evolve(ack_wait=3600))
    await arena.start("recorder")
    run = await arena.run(schedulers=["greedy"], tasks=30)
    await publish_run(arena, run, count=6, each=5)
    await all_acknowledged(arena, subjects.TASKS, "recorder")
    housekeeping = Housekeeping(arena.bus, arena.runs)
    worker = await arena.jetstream.pull_subscribe_bind(durable, subjects.TASKS)
    (message,) = await worker.fetch(1, timeout=60)
    await message.ack()
    (message,) = await worker.fetch(1, timeout=60)
    await eventually(
        lambda: arena.jetstream.consumer_info(subjects.TASKS, durable),
        accept=lambda info: (info.num_ack_pending, info.ack_floor.stream_seq) == (1, 1),
    )
    await housekeeping.trim()
    assert await arena.count(subjects.TASKS) == 5
    await message.nak()
    for _ in range(3):
        await housekeeping.trim()
    (again,) = await worker.fetch(1, timeout=60)
    assert again.data == message.data


async def test_no_message_of_a_completed_run_is_left(arena: Arena) -> None:
    await start_all(arena, "greedy")
    run = await arena.run(schedulers=["greedy"], tasks=300)
    await arena.completed(run)
    streams = (subjects.TASKS, subjects.DECISIONS, subjects.RESULTS)
    await eventually(lambda: counts(arena, *streams), equals=[0, 0, 0])


async def test_messages_that_a_consumer_has_not_acknowledged_are_kept(arena: Arena) -> None:
    """The recorder and one scheduler have acknowledged all; the other scheduler is not running."""
    lagging = streams.durable(subjects.scheduler_durable("oracle"), "tasks.*", arena.settings)
    await arena.bus.ensure_consumer(subjects.TASKS, lagging)
    await start_all(arena, "greedy")
    run = await arena.run(schedulers=["greedy", "oracle"], tasks=500)
    await all_sent(arena, run, 500)
    await all_acknowledged(arena, subjects.TASKS, "recorder")
    await all_acknowledged(arena, subjects.TASKS, "scheduler-greedy")
    assert await unchanged(lambda: arena.count(subjects.TASKS)) == 10
    await arena.schedulers("oracle")
    await arena.completed(run)
    rows = arena.store.query("SELECT count() AS n FROM scheduler_results FINAL")
    assert rows == [{"n": 1000}]


async def test_a_deployed_scheduler_outside_the_run_does_not_block_it(arena: Arena) -> None:
    idle = streams.durable(subjects.scheduler_durable("oracle"), "tasks.*", arena.settings)
    await arena.bus.ensure_consumer(subjects.TASKS, idle)
    await start_all(arena, "greedy")
    run = await arena.run(schedulers=["greedy"], tasks=500)
    await arena.completed(run)
    await eventually(lambda: arena.count(subjects.TASKS), equals=0)


async def test_garbage_in_a_paused_run_does_not_destroy_its_state(arena: Arena) -> None:
    """All have acknowledged the garbage, so it is trimmed; the last good message must stay."""
    await arena.schedulers("greedy")
    simulator = await arena.start("simulator")
    for name in ("recorder", "generator"):
        await arena.start(name)
    run = await arena.run(schedulers=["greedy"], tasks=2000, pace=1000)
    await some_sent(arena, run)
    await arena.runs.change_state(run.run, RunState.PAUSED)
    await come_to_rest(arena, run)
    await arena.publish_raw(subjects.tasks(run.run), b"garbage")
    await arena.publish_raw(subjects.results(run.run, "greedy"), b"garbage")
    await eventually(lambda: arena.dead_letters(), accept=lambda rows: len(rows) == 2)
    await eventually(lambda: counts(arena, subjects.TASKS, subjects.RESULTS), equals=[1, 1])
    await arena.stop(simulator)
    await arena.start("simulator")
    await arena.runs.change_state(run.run, RunState.RUNNING)
    await arena.completed(run)
    rows = arena.store.query(
        "SELECT count() AS n, uniqExact(task_id) AS ids FROM scheduler_results FINAL"
    )
    assert rows == [{"n": 2000, "ids": 2000}]


async def test_a_run_with_a_record_of_a_newer_version_keeps_its_state(arena: Arena) -> None:
    run = await arena.run(schedulers=["greedy"], tasks=100)
    newer = run.model_copy(update={"message_format": FORMATS["run"] + 1})
    await arena.publish_raw(f"$KV.runs.{run.run}", newer.model_dump_json().encode())
    await arena.start("recorder")
    generator = await arena.start("generator")
    published = await publish_run(arena, run, count=3)
    for stream in (subjects.TASKS, subjects.RESULTS):
        await all_acknowledged(arena, stream, "recorder")
    await Housekeeping(generator.bus, generator.runs).trim()
    (tasks,) = await sent(arena, run)
    (results,) = await arena.batches(subjects.RESULTS, subjects.results(run.run, "greedy"))
    assert tasks.envelope == published["tasks"][-1].envelope
    assert results.envelope == published["greedy"][-1].envelope


async def test_a_lagging_scheduler_still_finishes_a_stopped_run(arena: Arena) -> None:
    """Its last results are its state: they are kept until its last task is simulated."""
    (worker,) = await arena.schedulers("greedy")
    simulator = await arena.start("simulator")
    recorder = await arena.start("recorder")
    generator = await arena.start("generator")
    run = await arena.run(schedulers=["greedy"], tasks=10**6, pace=1000)
    await some_sent(arena, run)
    await arena.stop(worker)
    await some_sent(arena, run, more_than=await arena.tasks_sent(run) + 20)
    await arena.runs.change_state(run.run, RunState.STOPPED)
    total = await come_to_rest(arena, run)
    await all_acknowledged(arena, subjects.RESULTS, "recorder")
    await Housekeeping(generator.bus, generator.runs).trim()
    await arena.stop(simulator, generator)
    await arena.start("simulator")
    await arena.schedulers("greedy")

    async def stored() -> bool:
        (row,) = arena.store.query(
            "SELECT count() AS n, uniqExact(task_id) AS ids FROM scheduler_results FINAL"
        )
        return row == {"n": total, "ids": total}

    await eventually(stored)
    assert await arena.dead_letters() == []
    assert recorder.bus.connected


async def test_a_finished_run_keeps_its_first_and_newest_model(arena: Arena) -> None:
    generator = await arena.start("generator")
    stopped, paused = [await arena.run(schedulers=["greedy"]) for _ in range(2)]
    await arena.runs.change_state(stopped.run, RunState.STOPPED)
    await arena.runs.change_state(paused.run, RunState.PAUSED)
    body = b"a model"
    for run in (stopped, paused):
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
            after = await model_registry.ship(arena.bus, manifest, body, after=after)
    await Housekeeping(generator.bus, generator.runs).trim_models()
    assert await versions(arena, stopped, FOREST) == [3]
    assert await versions(arena, paused, FOREST) == [1, 2, 3]
    first = await model_registry.read_first(arena.bus, stopped.run, FOREST)
    assert first.manifest.version == 1
