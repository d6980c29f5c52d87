"""The trainer among the others: models before the first task, while it flows, after a crash."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise
from typing import Any

from shared import models, subjects
from shared.batches import Batch
from shared.models import AGENT, FOREST, Model
from shared.runs import RunRecord, RunState
from tests.integration.arena import Arena, eventually, unchanged
from tests.integration.test_recorder import publish_run

FOREST_RULE = {"trees": 10}
AGENT_RULE = {"hidden": 16, "pretrain_steps": 50}


def learning(pretrain: int = 100, *, forest: Any = None, agent: Any = None) -> dict[str, Any]:
    return {
        "pretrain_tasks": pretrain,
        "forest": {**FOREST_RULE, **(forest or {})},
        "agent": {**AGENT_RULE, **(agent or {})},
    }


async def started(arena: Arena, *names: str) -> None:
    for name in names:
        await arena.start(name)


async def shipped(arena: Arena, run: RunRecord, name: str) -> list[Model]:
    return await models.stored(arena.bus, run.run, name)


async def versions(arena: Arena, run: RunRecord, name: str) -> list[int]:
    return [model.manifest.version for model in await shipped(arena, run, name)]


async def reached(arena: Arena, run: RunRecord, name: str, version: int) -> Model:
    """The newest model, once it has that version."""

    async def newest() -> Model | None:
        model = await models.newest(arena.bus, run.run, name)
        return model if model is not None and model.manifest.version >= version else None

    model: Model = await eventually(newest, f"version {version} of {name}", seconds=60)
    return model


async def at_rest(arena: Arena, run: RunRecord) -> int:
    async def sent() -> int:
        return await arena.tasks_sent(run)

    return int(await unchanged(sent))


async def decided(arena: Arena, run: RunRecord, name: str, tasks: int) -> list[Batch]:
    async def found() -> list[Batch] | None:
        subject = subjects.decisions(run.run, name)
        batches = await arena.batches(subjects.DECISIONS, subject)
        return batches if sum(batch.rows.num_rows for batch in batches) >= tasks else None

    batches: list[Batch] = await eventually(found, f"{tasks} decisions of {name}")
    return sorted(batches, key=lambda batch: batch.envelope.batch)


def versions_used(batches: list[Batch]) -> list[int]:
    return [n for batch in batches for n in batch.rows.column("model_version").to_pylist()]


async def told(arena: Arena, run: RunRecord) -> list[dict[str, Any]]:
    events = [json.loads(event) for event in await arena.events("model")]
    return [event for event in events if event["run"] == run.run]


async def rows(arena: Arena, run: RunRecord, name: str = FOREST) -> list[dict[str, Any]]:
    return arena.store.query(
        "SELECT * FROM models FINAL WHERE run = {run:String} AND name = {name:String} "
        "ORDER BY created_at, version",
        {"run": run.run, "name": name},
    )


async def test_a_run_waits_for_its_pretrained_models(arena: Arena) -> None:
    await arena.schedulers("hybrid_ml", "rl_agent")
    await arena.start("generator")
    run = await arena.run(schedulers=[FOREST, AGENT], tasks=200, learning=learning())
    assert await at_rest(arena, run) == 0
    await arena.start("trainer")
    for name, kind in ((FOREST, "onnx"), (AGENT, "safetensors")):
        assert set(versions_used(await decided(arena, run, name, 200))) == {1}
        (model,) = await shipped(arena, run, name)
        manifest = model.manifest
        assert (manifest.version, manifest.format, manifest.trained_on) == (1, kind, 100)
        assert (manifest.first_task, manifest.last_task) == (-1, -1)
        assert manifest.reason == "pre-trained on 100 generated tasks"


async def test_a_run_without_learners_waits_for_nobody(arena: Arena) -> None:
    await arena.schedulers("greedy")
    await arena.start("generator")
    run = await arena.run(schedulers=["greedy"], tasks=100)
    await decided(arena, run, "greedy", 100)


async def test_without_pretraining_a_run_starts_at_once_with_the_rule_of_greedy(
    arena: Arena,
) -> None:
    await arena.schedulers("hybrid_ml", "rl_agent")
    await started(arena, "trainer", "generator")
    run = await arena.run(schedulers=[FOREST, AGENT], tasks=100, learning=learning(0))
    for name in (FOREST, AGENT):
        assert versions_used(await decided(arena, run, name, 100)) == [0] * 100
        assert await shipped(arena, run, name) == []


async def test_a_run_whose_models_do_not_come_starts_without_them_and_says_so(
    arena: Arena,
) -> None:
    await arena.schedulers("hybrid_ml")
    await arena.start("generator", pretrain_patience=timedelta(seconds=0.3))
    run = await arena.run(schedulers=[FOREST], tasks=100, learning=learning())
    assert versions_used(await decided(arena, run, FOREST, 100)) == [0] * 100
    (event,) = [event for event in await arena.events("run") if "starts without them" in event]
    assert run.run in event


async def test_pretraining_does_not_know_the_tasks_to_come(arena: Arena) -> None:
    """The same spec with another seed learns from other tasks, and none is one of the run's."""
    await arena.start("trainer")
    bodies = []
    for seed in (1, 2, 1):
        run = await arena.run(schedulers=[FOREST], seed=seed, learning=learning())
        bodies.append((await reached(arena, run, FOREST, 1)).body)
    assert bodies[0] == bodies[2] != bodies[1]


async def test_oracle_results_lead_to_new_forests_and_workers_use_them(full_arena: Arena) -> None:
    arena = full_arena
    await started(arena, "recorder", "trainer", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    rule = learning(forest={"tolerance": 100.0})  # each one ships
    run = await arena.run(schedulers=["oracle", FOREST], pace=300, learning=rule)
    await reached(arena, run, FOREST, 4)
    found = await shipped(arena, run, FOREST)
    assert [model.manifest.version for model in found] == list(range(1, len(found) + 1))
    for before, after in pairwise(found[1:]):
        # Fitted on the generated tasks and all results so far but the 25 it is judged by; at least
        # 50 more than before.
        assert after.manifest.first_task == -1
        assert after.manifest.trained_on == 100 + after.manifest.last_task + 1
        assert after.manifest.trained_on >= before.manifest.trained_on + 50
        assert after.body != before.body
        assert after.manifest.metrics["score"] >= 1 - 1e-9

    async def used() -> bool:
        results = arena.store.query(
            "SELECT DISTINCT model_version AS v FROM scheduler_results FINAL "
            "WHERE scheduler = 'hybrid_ml' ORDER BY v"
        )
        return {1, 4} <= {row["v"] for row in results}

    await eventually(used)

    async def recorded() -> bool:
        return len(await rows(arena, run)) >= 4

    await eventually(recorded)
    stored = await rows(arena, run)
    assert [row["version"] for row in stored[:4]] == [1, 2, 3, 4]
    assert all(row["shipped"] for row in stored)
    assert (stored[0]["score"], stored[0]["champion_score"]) == (None, None)
    for row, model in zip(stored[1:4], found[1:4], strict=True):
        manifest = model.manifest
        assert row["sha256"] == manifest.sha256
        assert row["score"] == manifest.metrics["score"]
        assert row["champion_score"] == manifest.metrics["champion_score"]
        assert (row["first_task"], row["last_task"]) == (-1, manifest.last_task)
        assert f"{row['score']:.4f} against {row['champion_score']:.4f}" in row["reason"]


async def test_a_worse_forest_is_kept_back_and_told_about_with_both_scores(
    full_arena: Arena,
) -> None:
    """One is pre-trained on 1000 tasks; the challengers get 25 results each to learn from."""
    arena = full_arena
    await started(arena, "recorder", "trainer", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    rule = learning(1000, forest={"window": 50, "tolerance": 0.0})
    run = await arena.run(schedulers=["oracle", FOREST], pace=300, learning=rule)

    async def some_of_both() -> bool:
        return {row["shipped"] for row in await rows(arena, run)} == {True, False}

    await eventually(some_of_both, seconds=60)
    await arena.runs.move(run.run, RunState.PAUSED)

    async def settled() -> int:
        return len(await told(arena, run))

    await unchanged(settled)
    events = await told(arena, run)
    kept = [event for event in events if not event["data"]["shipped"]]
    for event in kept:
        manifest = event["data"]["manifest"]
        score, champion = manifest["metrics"]["score"], manifest["metrics"]["champion_score"]
        assert score > champion
        assert manifest["trained_on"] == 25
        assert event["message"] == (
            f"hybrid_ml version {manifest['version']} kept back: worse: "
            f"{score:.4f} against {champion:.4f} on the newest 25 results"
        )
    # What is kept back takes no version: the next one that ships has it.
    gone = [event["data"]["manifest"]["version"] for event in events if event["data"]["shipped"]]
    assert gone == list(range(1, len(gone) + 1))
    held = {model.manifest.sha256 for model in await shipped(arena, run, FOREST)}
    assert not held & {event["data"]["manifest"]["sha256"] for event in kept}

    async def recorded() -> bool:
        return len(await rows(arena, run)) == len(events)

    await eventually(recorded)
    in_table = [row for row in await rows(arena, run) if not row["shipped"]]
    assert [(row["score"], row["champion_score"]) for row in in_table] == [
        tuple(event["data"]["manifest"]["metrics"][name] for name in ("score", "champion_score"))
        for event in kept
    ]


async def test_the_agent_learns_from_its_own_results(arena: Arena) -> None:
    await started(arena, "trainer", "simulator", "generator")
    await arena.schedulers("rl_agent")
    run = await arena.run(schedulers=[AGENT], pace=300, learning=learning())
    await reached(arena, run, AGENT, 4)
    found = await shipped(arena, run, AGENT)
    assert [model.manifest.version for model in found] == list(range(1, len(found) + 1))
    steps = [model.manifest.metrics["steps"] for model in found]
    assert steps[0] == 50
    assert all(after >= before + 50 for before, after in pairwise(steps))
    assert len({model.manifest.sha256 for model in found}) == len(found)


async def test_without_pretraining_the_first_models_come_from_results(full_arena: Arena) -> None:
    arena = full_arena
    await started(arena, "recorder", "trainer", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml", "rl_agent")
    names = ["oracle", FOREST, AGENT]
    run = await arena.run(schedulers=names, pace=300, learning=learning(0))
    await reached(arena, run, FOREST, 2)
    await reached(arena, run, AGENT, 2)
    first = (await shipped(arena, run, FOREST))[0].manifest
    assert (first.version, first.first_task, first.reason) == (1, 0, "the first model")
    assert first.trained_on >= 25

    async def learned() -> bool:
        results = arena.store.query(
            "SELECT scheduler, groupUniqArray(model_version) AS used FROM scheduler_results "
            "FINAL WHERE scheduler != 'oracle' GROUP BY scheduler"
        )
        return len(results) == 2 and all({0, 2} <= set(row["used"]) for row in results)

    await eventually(learned)


async def test_a_killed_trainer_goes_on_where_it_was(full_arena: Arena) -> None:
    arena = full_arena
    killed = arena.process("trainer")
    await started(arena, "recorder", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml", "rl_agent")
    rule = learning(forest={"window": 50_000, "tolerance": 100.0})
    names = ["oracle", FOREST, AGENT]
    run = await arena.run(schedulers=names, pace=200, learning=rule)
    for name in (FOREST, AGENT):
        await reached(arena, run, name, 3)
    killed.kill()
    killed.wait(10)
    before = {name: (await shipped(arena, run, name))[-1] for name in (FOREST, AGENT)}
    # The run goes on without it.
    sent = await arena.tasks_sent(run)

    async def more() -> bool:
        return await arena.tasks_sent(run) > sent + 50

    await eventually(more)
    await arena.start("trainer")
    for name in (FOREST, AGENT):
        held = before[name].manifest.version
        await reached(arena, run, name, held + 2)
        found = await shipped(arena, run, name)
        numbers = [model.manifest.version for model in found]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert len({model.manifest.sha256 for model in found}) == len(found)
        assert sum("pre-trained" in model.manifest.reason for model in found) <= 1
    # Its window is that of the one before, and more.
    held = before[FOREST].manifest.version
    after = (await models.version(arena.bus, run.run, FOREST, held + 1)).manifest
    assert after.first_task == -1
    assert before[FOREST].manifest.trained_on < after.trained_on <= 100 + after.last_task + 1
    await arena.runs.move(run.run, RunState.PAUSED)

    async def stored() -> bool:
        newest = (await shipped(arena, run, FOREST))[-1].manifest
        return newest.version in [row["version"] for row in await rows(arena, run)]

    await eventually(stored)
    told_of = [row["version"] for row in await rows(arena, run) if row["shipped"]]
    # The kill may have come between a shipment and the note about it, but nothing is told twice.
    assert sorted(set(told_of)) == told_of


async def test_a_cold_trainer_that_was_restarted_has_its_window_back(full_arena: Arena) -> None:
    """No model was shipped yet, but 20 results were seen."""
    arena = full_arena
    await started(arena, "recorder", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    trainer = await arena.start("trainer")
    names = ["oracle", FOREST]
    run = await arena.run(schedulers=names, tasks=10**6, pace=20, learning=learning(0))

    async def seen() -> bool:
        (row,) = arena.store.query("SELECT count() AS n FROM training_data FINAL")
        return bool(row["n"] >= 20)

    await eventually(seen)
    await arena.stop(trainer)
    await arena.start("trainer")
    first = (await reached(arena, run, FOREST, 1)).manifest
    assert first.first_task == 0


async def asked(arena: Arena, body: bytes) -> dict[str, Any]:
    client = arena.bus.broker._connection
    assert client is not None
    answer = await client.request(subjects.ROLLBACK, body, timeout=5)
    said: dict[str, Any] = json.loads(answer.data)
    return said


async def rolled_back(arena: Arena, run: str, version: int, name: str = FOREST) -> dict[str, Any]:
    request = {"run": run, "name": name, "version": version}
    return await asked(arena, json.dumps(request).encode())


async def test_an_older_model_comes_back_as_a_new_version(full_arena: Arena) -> None:
    arena = full_arena
    await started(arena, "recorder", "trainer", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    # Two seconds between fits: the run is paused long before the next one.
    rule = learning(forest={"tolerance": 100.0, "retrain_every": 150})
    run = await arena.run(schedulers=["oracle", FOREST], pace=75, learning=rule)
    last = (await reached(arena, run, FOREST, 2)).manifest.version
    await arena.runs.move(run.run, RunState.PAUSED)
    await at_rest(arena, run)
    old = await models.version(arena.bus, run.run, FOREST, 1)
    said = await rolled_back(arena, run.run, 1)
    assert said["version"] == last + 1
    newest = await models.newest(arena.bus, run.run, FOREST)
    assert newest is not None
    assert newest.manifest.version == last + 1
    assert newest.manifest.reason == "rolled back to version 1"
    assert (newest.body, newest.manifest.sha256) == (old.body, old.manifest.sha256)

    async def recorded() -> bool:
        found = await rows(arena, run)
        return bool(found) and found[-1]["version"] == last + 1

    await eventually(recorded)
    row = (await rows(arena, run))[-1]
    assert (row["shipped"], row["reason"]) == (True, "rolled back to version 1")
    # Workers take it, and learning goes on behind it.
    await arena.runs.move(run.run, RunState.RUNNING)
    await reached(arena, run, FOREST, last + 2)

    async def used() -> bool:
        (row,) = arena.store.query(
            f"SELECT countIf(model_version = {last + 1}) AS n FROM scheduler_results FINAL"
        )
        return bool(row["n"])

    await eventually(used)
    found = await versions(arena, run, FOREST)
    assert found == list(range(found[0], found[0] + len(found)))


async def test_a_rollback_that_cannot_be_says_why(arena: Arena) -> None:
    await arena.start("trainer")
    run = await arena.run(schedulers=[FOREST], learning=learning())
    await reached(arena, run, FOREST, 1)
    missing = await rolled_back(arena, run.run, 7)
    assert missing["error"].startswith(f"version 7 of hybrid_ml in run {run.run} is not held")
    for stranger, name in (("nobody", FOREST), (run.run, AGENT), (run.run, "greedy")):
        said = await rolled_back(arena, stranger, 1, name)
        assert said == {"error": f"nobody learns {name} in run {stranger} now"}
    for nonsense in (b"", b"garbage", b"{}", b'{"run": "x", "name": "y", "version": "z"}'):
        assert "error" in await asked(arena, nonsense)
    assert await versions(arena, run, FOREST) == [1]


async def test_each_run_has_its_own_learners(arena: Arena) -> None:
    await started(arena, "trainer", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    names = ["oracle", FOREST]
    quick, slow = [
        await arena.run(schedulers=names, pace=pace, seed=seed, learning=learning())
        for seed, pace in ((1, 300), (2, 10))
    ]
    await reached(arena, quick, FOREST, 1)
    await reached(arena, slow, FOREST, 1)

    async def judged() -> bool:
        return len(await told(arena, quick)) >= 3

    await eventually(judged)
    # The slow one has no 50 results of its own yet.
    assert await arena.tasks_sent(slow) < 50
    assert await versions(arena, slow, FOREST) == [1]


async def test_results_of_an_unknown_run_become_a_dead_letter_and_hold_nothing_up(
    arena: Arena,
) -> None:
    await arena.start("trainer")
    run = await arena.run(schedulers=["oracle", FOREST], learning=learning())
    await publish_run(arena, run.model_copy(update={"run": "unknown"}), count=1)

    async def read() -> bool:
        info = await arena.stream.consumer_info(subjects.RESULTS, f"trainer-{FOREST}")
        return not info.num_pending and not info.num_ack_pending

    await eventually(read)
    (letter,) = await arena.dead_letters()
    assert letter["Hybrid-Reason"] == "no run 'unknown'"
