"""The trainer among the others: models before the first task and while it flows."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from shared import subjects
from shared.models import AGENT, FOREST
from shared.runs import RunState
from tests.integration.arena import Arena, eventually, unchanged
from tests.integration.learning import (
    decided,
    learning,
    reached,
    rows,
    shipped,
    started,
    told,
    versions,
    versions_used,
)
from tests.integration.publishing import publish_run
from tests.integration.sending import come_to_rest


async def test_a_run_waits_for_its_pretrained_models(arena: Arena) -> None:
    await arena.schedulers("hybrid_ml", "rl_agent")
    await arena.start("generator")
    run = await arena.run(schedulers=[FOREST, AGENT], tasks=200, learning=learning())
    assert await come_to_rest(arena, run) == 0
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

    await eventually(some_of_both)
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
