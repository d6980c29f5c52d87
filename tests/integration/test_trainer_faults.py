"""The trainer with broken or too large models, and with early or repeated results."""

from __future__ import annotations

import json
from datetime import timedelta

import nats.errors
import pytest
from prometheus_client import CollectorRegistry

from services.trainer import stored_results
from services.trainer.metrics import Metrics
from services.trainer.model_publisher import ModelPublisher, PublishedModel, TrainingWindow
from services.trainer.wall_clock_training import WallClockTraining
from shared.bus import model_registry
from shared.domain.schedulers import AGENT, FOREST
from shared.messages import models, subjects
from shared.messages.models import Manifest
from shared.messages.runs import RunRecord, RunState
from tests.integration.arena import Arena, eventually
from tests.integration.learning import learning, model_events, start, versions, wait_for_version
from tests.integration.publishing import publish_run


async def pause_at_version(arena: Arena, run: RunRecord, name: str, version: int) -> int:
    await wait_for_version(arena, run, name, version)
    await arena.runs.change_state(run.run, RunState.PAUSED)
    return (await versions(arena, run, name))[-1]


@pytest.mark.parametrize("name", [FOREST, AGENT])
@pytest.mark.parametrize("broken", ["no manifest", "wrong hash", "no model"])
async def test_a_broken_newest_model_is_skipped(arena: Arena, name: str, broken: str) -> None:
    """A restarted trainer publishes the next version after it."""
    teachers = {FOREST: "oracle", AGENT: AGENT}
    trainer = await arena.start("trainer")
    await start(arena, "recorder", "simulator", "generator")
    await arena.schedulers(*{teachers[name], name})
    rule = learning(forest={"tolerance": 100.0})
    run = await arena.run(schedulers=sorted({teachers[name], name}), pace=100, learning=rule)
    last = await pause_at_version(arena, run, name, 2)
    await arena.stop(trainer)
    newest = await model_registry.read_newest(arena.bus, run.run, name)
    junk = b"this is no model"
    digest = "0" * 64 if broken == "wrong hash" else models.digest(junk)
    manifest = newest.manifest.model_copy(update={"version": last + 1, "sha256": digest})
    headers = {} if broken == "no manifest" else {models.MANIFEST: manifest.model_dump_json()}
    await arena.jetstream.publish(subjects.model(run.run, name), junk, headers=headers)
    await arena.start("trainer")
    await arena.runs.change_state(run.run, RunState.RUNNING)

    async def next_model() -> Manifest | None:
        newest = (await model_registry.read_stored(arena.bus, run.run, name))[-1].manifest
        return newest if newest.version > last and newest.sha256 != manifest.sha256 else None

    published = await eventually(next_model, f"a model after the broken one of {name}")
    assert published.reason.startswith(("not worse", "after"))


async def test_a_model_too_large_for_a_message_is_kept_back_and_has_an_event(arena: Arena) -> None:
    run = await arena.run(schedulers=[FOREST])
    metrics = Metrics.register(CollectorRegistry())
    publisher = ModelPublisher(arena.bus, run.run, FOREST, "onnx", metrics)
    await publisher.publish(b"small", TrainingWindow(10), "the first")
    await publisher.publish(b"x" * 9_000_000, TrainingWindow(20, 0, 19), "not worse")
    sequence = publisher.in_service.sequence
    assert publisher.in_service == PublishedModel(1, sequence, b"small")
    assert await versions(arena, run, FOREST) == [1]
    event = (await model_events(arena, run))[-1]
    assert event["data"]["shipped"] is False
    assert event["message"] == (
        "hybrid_ml version 2 kept back: 9.0 MB is more than NATS takes in one message (not worse)"
    )
    await publisher.publish(b"smaller", TrainingWindow(20, 0, 19), "not worse")
    assert await versions(arena, run, FOREST) == [1, 2]


async def test_results_that_arrive_during_the_pretraining_are_used(arena: Arena) -> None:
    """The run starts without models here, long before a slow pre-training ends."""
    await arena.start("generator", pretrain_patience=timedelta(seconds=0.1))
    await start(arena, "trainer", "simulator")
    await arena.schedulers("oracle", "hybrid_ml", "rl_agent")
    rule = learning(10_000, forest={"trees": 50, "tolerance": 100.0, "window": 50_000})
    names = ["oracle", FOREST, AGENT]
    run = await arena.run(schedulers=names, pace=300, learning=rule)
    await wait_for_version(arena, run, FOREST, 1)
    assert await arena.tasks_sent(run) > 0
    forest = (await wait_for_version(arena, run, FOREST, 2)).manifest
    assert forest.first_task == -1
    assert forest.trained_on == 10_000 + forest.last_task + 1
    agent = (await wait_for_version(arena, run, AGENT, 2)).manifest
    assert agent.last_task > 0


async def test_only_one_of_two_trainers_rolls_back(arena: Arena) -> None:
    await arena.start("recorder")
    await start(arena, "trainer", "trainer")
    run = await arena.run(schedulers=[FOREST], learning=learning())
    await wait_for_version(arena, run, FOREST, 1)
    client = arena.bus.broker._connection
    request = {"run": run.run, "name": FOREST, "version": 1}
    # The trainer that lost the race for the first model may not be ready yet.
    await eventually(
        lambda: client.request(subjects.ROLLBACK, json.dumps(request).encode(), timeout=60),
        accept=lambda answer: "version" in json.loads(answer.data),
    )
    assert await versions(arena, run, FOREST) == [1, 2]


async def test_workers_do_not_reply_instead_of_the_stream(arena: Arena) -> None:
    """They receive a model by the message whose acknowledgement the trainer waits for."""
    await arena.schedulers("hybrid_ml", "rl_agent", "hybrid_ml")
    client = arena.bus.broker._connection
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    for version in range(1, 4):
        for name in (FOREST, AGENT):
            await client.publish(subjects.model("r1", name), b"%d" % version, reply=inbox)
    replies = [json.loads((await answers.next_msg(timeout=60)).data) for _ in range(6)]
    with pytest.raises(nats.errors.TimeoutError):
        await answers.next_msg(timeout=0.5)
    assert sorted(reply["seq"] for reply in replies) == [1, 2, 3, 4, 5, 6]


async def test_a_restarted_training_loop_keeps_its_inbox(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox_rows: list[int] = []

    async def fail(loop: WallClockTraining) -> None:
        async def has_some() -> bool:
            return loop._inbox_rows > 0

        await eventually(has_some, "results in the inbox")
        inbox_rows.append(loop._inbox_rows)
        raise ConnectionError("no ClickHouse")

    monkeypatch.setattr(WallClockTraining, "prepare", fail)
    await arena.start("trainer")
    run = await arena.run(schedulers=["oracle", FOREST], tasks=30, learning={"sync": "free"})
    await publish_run(arena, run)
    await eventually(lambda: len(inbox_rows) > 1, "a second attempt with results")
    assert inbox_rows == sorted(inbox_rows)
    (event,) = await arena.events("learner_failed")
    assert "hybrid_ml cannot learn and is started again: ConnectionError" in event


async def test_a_lagging_agent_loads_its_newest_results(arena: Arena) -> None:
    await arena.start("recorder")
    run = await arena.run(schedulers=[AGENT], tasks=30)
    await publish_run(arena, run, count=6, each=5)

    async def stored() -> bool:
        (row,) = arena.store.query(
            "SELECT (SELECT count() FROM tasks FINAL) AS tasks, count() AS results "
            "FROM scheduler_results FINAL"
        )
        return row == {"tasks": 30, "results": 30}

    await eventually(stored)
    arena.store.command(
        "ALTER TABLE scheduler_results DELETE WHERE task_id >= 10 SETTINGS mutations_sync = 1"
    )
    results = stored_results.read_results(arena.store, run.run, AGENT, 5)
    assert results is not None
    assert results.tasks.task_id.tolist() == [5, 6, 7, 8, 9]
