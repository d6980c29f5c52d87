"""The trainer when its models are broken or too large, and when results come early."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta

import nats.errors
import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry

from services.trainer import memory
from services.trainer import yard as yards
from services.trainer.learning import LEARNINGS, ForestLearning
from services.trainer.metrics import Metrics
from services.trainer.yard import Window, Yard
from shared import models, subjects
from shared.models import AGENT, FOREST, Manifest
from shared.runs import RunRecord, RunState
from shared.store.client import Store
from tests.integration.arena import Arena, eventually
from tests.integration.learning import learning, reached, started, told, versions
from tests.integration.publishing import publish_run


async def stopped_at(arena: Arena, run: RunRecord, name: str, version: int) -> int:
    await reached(arena, run, name, version)
    await arena.runs.move(run.run, RunState.PAUSED)
    return (await versions(arena, run, name))[-1]


@pytest.mark.parametrize("name", [FOREST, AGENT])
@pytest.mark.parametrize("broken", ["no manifest", "wrong hash", "no model"])
async def test_a_broken_newest_model_is_passed_over(
    full_arena: Arena, name: str, broken: str
) -> None:
    """A trainer that comes back goes on behind it."""
    arena = full_arena
    teachers = {FOREST: "oracle", AGENT: AGENT}
    trainer = await arena.start("trainer")
    await started(arena, "recorder", "simulator", "generator")
    await arena.schedulers(*{teachers[name], name})
    rule = learning(forest={"tolerance": 100.0})
    run = await arena.run(schedulers=sorted({teachers[name], name}), pace=100, learning=rule)
    held = await stopped_at(arena, run, name, 2)
    await arena.stop(trainer)
    newest = await models.newest(arena.bus, run.run, name)
    assert newest is not None
    junk = b"this is no model"
    said = newest.manifest.model_copy(update={"version": held + 1, "sha256": models.digest(junk)})
    if broken == "wrong hash":
        said = said.model_copy(update={"sha256": "0" * 64})
    headers = {} if broken == "no manifest" else {models.MANIFEST: said.model_dump_json()}
    await arena.stream.publish(subjects.model(run.run, name), junk, headers=headers)
    await arena.start("trainer")
    await arena.runs.move(run.run, RunState.RUNNING)

    async def behind() -> Manifest | None:
        good = [model.manifest for model in await models.stored(arena.bus, run.run, name)]
        return good[-1] if good[-1].version > held and good[-1].sha256 != said.sha256 else None

    going_on = await eventually(behind, f"a model behind the broken one of {name}")
    assert going_on.reason.startswith(("not worse", "after"))


async def test_a_model_that_does_not_fit_a_message_is_kept_back_and_told_about(
    arena: Arena,
) -> None:
    run = await arena.run(schedulers=[FOREST])
    yard = Yard(arena.bus, run.run, FOREST, "onnx", Metrics.register(CollectorRegistry()))
    await yard.ship(b"small", Window(10), "the first")
    await yard.ship(b"x" * 9_000_000, Window(20, 0, 19), "not worse")
    assert yard.in_service == yards.Shipped(1, yard.in_service.sequence, b"small")
    assert await versions(arena, run, FOREST) == [1]
    event = (await told(arena, run))[-1]
    assert event["data"]["shipped"] is False
    assert event["message"] == (
        "hybrid_ml version 2 kept back: 9.0 MB is more than NATS takes in one message (not worse)"
    )
    await yard.ship(b"smaller", Window(20, 0, 19), "not worse")
    assert await versions(arena, run, FOREST) == [1, 2]


async def test_results_that_come_while_a_learner_is_prepared_are_learned_from(
    arena: Arena,
) -> None:
    """The stream starts without the models here, long before a slow pre-training ends."""
    await arena.start("generator", pretrain_patience=timedelta(seconds=0.1))
    await started(arena, "trainer", "simulator")
    await arena.schedulers("oracle", "hybrid_ml", "rl_agent")
    rule = learning(10_000, forest={"trees": 50, "tolerance": 100.0, "window": 50_000})
    names = ["oracle", FOREST, AGENT]
    run = await arena.run(schedulers=names, pace=300, learning=rule)
    await reached(arena, run, FOREST, 1)
    assert await arena.tasks_sent(run) > 0
    forest = (await reached(arena, run, FOREST, 2)).manifest
    assert forest.first_task == -1
    assert forest.trained_on == 10_000 + forest.last_task + 1
    agent = (await reached(arena, run, AGENT, 2)).manifest
    assert agent.last_task > 0


async def test_only_one_of_two_trainers_rolls_back(full_arena: Arena) -> None:
    arena = full_arena
    await arena.start("recorder")
    await started(arena, "trainer", "trainer")
    run = await arena.run(schedulers=[FOREST], learning=learning())
    await reached(arena, run, FOREST, 1)
    client = arena.bus.broker._connection
    assert client is not None
    request = {"run": run.run, "name": FOREST, "version": 1}

    async def answered() -> bool:
        # The one that lost the race of the first model may not be ready yet, and says so.
        answer = await client.request(subjects.ROLLBACK, json.dumps(request).encode(), timeout=5)
        return "version" in json.loads(answer.data)

    await eventually(answered)
    assert await versions(arena, run, FOREST) == [1, 2]


async def test_workers_do_not_answer_in_the_place_of_the_stream(arena: Arena) -> None:
    """They hear of a model by the very message whose storing the trainer waits for."""
    await arena.schedulers("hybrid_ml", "rl_agent", "hybrid_ml")
    client = arena.bus.broker._connection
    assert client is not None
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    for version in range(1, 4):
        for name in (FOREST, AGENT):
            await client.publish(subjects.model("r1", name), b"%d" % version, reply=inbox)
    heard = []
    with suppress(nats.errors.TimeoutError):
        while True:
            heard.append(json.loads((await answers.next_msg(timeout=0.5)).data))
    assert sorted(answer["seq"] for answer in heard) == [1, 2, 3, 4, 5, 6]


async def test_a_result_that_comes_again_is_learned_from_once(arena: Arena) -> None:
    run = await arena.run(schedulers=[FOREST])
    learner = ForestLearning(
        run, arena.bus, Store(arena.settings), Metrics.register(CollectorRegistry())
    )

    def come(first: int, last: int) -> None:
        ids = pa.array(range(first, last + 1), pa.int64())
        learner.add(pa.record_batch({"task_id": ids}))

    def taken() -> list[int]:
        rows = learner._received(1000)
        return [] if rows is None else rows.column("task_id").to_pylist()

    come(0, 2)
    come(3, 4)
    come(0, 2)  # before anybody has looked
    assert taken() == [0, 1, 2, 3, 4]
    come(3, 4)
    assert taken() == []
    come(3, 4)
    come(5, 6)
    assert taken() == [5, 6]


async def test_a_learner_that_starts_anew_still_has_the_results_it_was_given(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []

    class Failing(ForestLearning):
        async def _prepare(self) -> None:
            await eventually(self._has_some, "results in the inbox")
            given.append(self._waiting)
            raise ConnectionError("no ClickHouse")

        async def _has_some(self) -> bool:
            return self._waiting > 0

    monkeypatch.setitem(LEARNINGS, FOREST, Failing)
    await arena.start("trainer")
    run = await arena.run(schedulers=["oracle", FOREST], tasks=30)
    await publish_run(arena, run)

    async def twice() -> bool:
        return len(given) > 1

    await eventually(twice, "another attempt that has results")
    assert given == sorted(given)


async def test_an_agent_that_lags_behind_remembers_its_newest_results(full_arena: Arena) -> None:
    arena = full_arena
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
    known = memory.agent_results(arena.store, run.run, AGENT, 5)
    assert known is not None
    assert known.tasks.task_id.tolist() == [5, 6, 7, 8, 9]
