"""The trainer with the other services: models before the first task and during the run."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from shared.bus import model_registry
from shared.domain.schedulers import AGENT, FOREST
from shared.messages.runs import RunState
from tests.integration.arena import Arena, eventually, unchanged
from tests.integration.learning import (
    learning,
    model_events,
    model_rows,
    start,
    stored_models,
    versions,
    versions_used,
    wait_for_decisions,
    wait_for_version,
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
        assert set(versions_used(await wait_for_decisions(arena, run, name, 200))) == {1}
        (model,) = await stored_models(arena, run, name)
        manifest = model.manifest
        assert (manifest.version, manifest.format, manifest.trained_on) == (1, kind, 100)
        assert (manifest.first_task, manifest.last_task) == (-1, -1)
        assert manifest.reason == "pre-trained on 100 generated tasks"


async def test_a_run_without_learners_starts_at_once(arena: Arena) -> None:
    await arena.schedulers("greedy")
    await arena.start("generator")
    run = await arena.run(schedulers=["greedy"], tasks=100)
    await wait_for_decisions(arena, run, "greedy", 100)


async def test_without_pretraining_a_run_starts_at_once_with_the_rule_of_greedy(
    arena: Arena,
) -> None:
    await arena.schedulers("hybrid_ml", "rl_agent")
    await start(arena, "trainer", "generator")
    run = await arena.run(schedulers=[FOREST, AGENT], tasks=100, learning=learning(0))
    for name in (FOREST, AGENT):
        assert versions_used(await wait_for_decisions(arena, run, name, 100)) == [0] * 100
        assert await stored_models(arena, run, name) == []


async def test_a_run_whose_models_are_late_starts_without_them_and_publishes_an_event(
    arena: Arena,
) -> None:
    await arena.schedulers("hybrid_ml")
    await arena.start("generator", pretrain_patience=timedelta(seconds=0.3))
    run = await arena.run(schedulers=[FOREST], tasks=100, learning=learning())
    assert versions_used(await wait_for_decisions(arena, run, FOREST, 100)) == [0] * 100
    (event,) = [event for event in await arena.events("run") if "starts without them" in event]
    assert run.run in event


async def test_the_seed_decides_the_pretrained_model(arena: Arena) -> None:
    await arena.start("trainer")
    bodies = []
    for seed in (1, 2, 1):
        run = await arena.run(schedulers=[FOREST], seed=seed, learning=learning())
        bodies.append((await wait_for_version(arena, run, FOREST, 1)).body)
    assert bodies[0] == bodies[2] != bodies[1]


async def test_forests_fitted_on_oracle_results_are_used_by_workers(arena: Arena) -> None:
    await start(arena, "recorder", "trainer", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    rule = learning(forest={"tolerance": 100.0})  # each one is accepted
    run = await arena.run(schedulers=["oracle", FOREST], pace=300, learning=rule)
    await wait_for_version(arena, run, FOREST, 4)
    models = await stored_models(arena, run, FOREST)
    assert [model.manifest.version for model in models] == list(range(1, len(models) + 1))
    for before, after in pairwise(models[1:]):
        # Fitted on the generated tasks and all results but the newest 25; at least 50 more than
        # the one before.
        assert after.manifest.first_task == -1
        assert after.manifest.trained_on == 100 + after.manifest.last_task + 1
        assert after.manifest.trained_on >= before.manifest.trained_on + 50
        assert after.body != before.body
        assert after.manifest.metrics["score"] >= 1 - 1e-9
    await eventually(
        lambda: arena.store.query(
            "SELECT DISTINCT model_version AS v FROM scheduler_results FINAL "
            "WHERE scheduler = 'hybrid_ml' ORDER BY v"
        ),
        accept=lambda results: {1, 4} <= {row["v"] for row in results},
    )
    await eventually(lambda: model_rows(arena, run), accept=lambda rows: len(rows) >= 4)
    stored = await model_rows(arena, run)
    assert [row["version"] for row in stored[:4]] == [1, 2, 3, 4]
    assert all(row["shipped"] for row in stored)
    assert (stored[0]["score"], stored[0]["champion_score"]) == (None, None)
    for row, model in zip(stored[1:4], models[1:4], strict=True):
        manifest = model.manifest
        assert row["sha256"] == manifest.sha256
        assert row["score"] == manifest.metrics["score"]
        assert row["champion_score"] == manifest.metrics["champion_score"]
        assert (row["first_task"], row["last_task"]) == (-1, manifest.last_task)
        assert f"{row['score']:.4f} against {row['champion_score']:.4f}" in row["reason"]


async def test_a_worse_forest_is_kept_back_and_its_event_has_both_scores(arena: Arena) -> None:
    """The first is pre-trained on 1000 tasks; each challenger is fitted on 25 results."""
    await start(arena, "recorder", "trainer", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    rule = learning(1000, forest={"window": 50, "tolerance": 0.0})
    run = await arena.run(schedulers=["oracle", FOREST], pace=300, learning=rule)
    await eventually(
        lambda: model_rows(arena, run),
        accept=lambda rows: {row["shipped"] for row in rows} == {True, False},
    )
    await arena.runs.change_state(run.run, RunState.PAUSED)
    await unchanged(lambda: model_events(arena, run))
    events = await model_events(arena, run)
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
    # A forest that is kept back uses no version number: the next one has it.
    shipped = [event["data"]["manifest"]["version"] for event in events if event["data"]["shipped"]]
    assert shipped == list(range(1, len(shipped) + 1))
    stored = {model.manifest.sha256 for model in await stored_models(arena, run, FOREST)}
    assert not stored & {event["data"]["manifest"]["sha256"] for event in kept}
    await eventually(lambda: model_rows(arena, run), accept=lambda rows: len(rows) == len(events))
    in_table = [row for row in await model_rows(arena, run) if not row["shipped"]]
    assert [(row["score"], row["champion_score"]) for row in in_table] == [
        tuple(event["data"]["manifest"]["metrics"][name] for name in ("score", "champion_score"))
        for event in kept
    ]


async def test_the_agent_learns_from_its_own_results(arena: Arena) -> None:
    await start(arena, "trainer", "simulator", "generator")
    await arena.schedulers("rl_agent")
    run = await arena.run(schedulers=[AGENT], pace=300, learning=learning())
    await wait_for_version(arena, run, AGENT, 4)
    models = await stored_models(arena, run, AGENT)
    assert [model.manifest.version for model in models] == list(range(1, len(models) + 1))
    steps = [model.manifest.metrics["steps"] for model in models]
    assert steps[0] == 50
    assert all(after >= before + 50 for before, after in pairwise(steps))
    assert len({model.manifest.sha256 for model in models}) == len(models)


async def test_without_pretraining_first_models_are_fitted_on_results(arena: Arena) -> None:
    await start(arena, "recorder", "trainer", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml", "rl_agent")
    names = ["oracle", FOREST, AGENT]
    run = await arena.run(schedulers=names, pace=300, learning=learning(0))
    await wait_for_version(arena, run, FOREST, 2)
    await wait_for_version(arena, run, AGENT, 2)
    first = (await model_registry.read_first(arena.bus, run.run, FOREST)).manifest
    assert (first.version, first.first_task, first.reason) == (1, 0, "the first model")
    assert first.trained_on >= 25
    await eventually(
        lambda: arena.store.query(
            "SELECT scheduler, groupUniqArray(model_version) AS used FROM scheduler_results "
            "FINAL WHERE scheduler != 'oracle' GROUP BY scheduler"
        ),
        accept=lambda results: (
            len(results) == 2
            and all(min(row["used"]) == 0 and max(row["used"]) >= 2 for row in results)
        ),
    )


async def test_each_run_has_its_own_learners(arena: Arena) -> None:
    await start(arena, "trainer", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    names = ["oracle", FOREST]
    quick, slow = [
        await arena.run(schedulers=names, pace=pace, seed=seed, learning=learning())
        for seed, pace in ((1, 300), (2, 0.1))
    ]
    await wait_for_version(arena, quick, FOREST, 1)
    await wait_for_version(arena, slow, FOREST, 1)
    await eventually(lambda: model_events(arena, quick), accept=lambda rows: len(rows) >= 3)
    # The slow run has fewer than 50 results.
    assert await arena.tasks_sent(slow) < 50
    assert await versions(arena, slow, FOREST) == [1]


async def test_results_of_an_unknown_run_become_a_dead_letter(arena: Arena) -> None:
    await arena.start("trainer")
    run = await arena.run(schedulers=["oracle", FOREST], learning=learning())
    await publish_run(arena, run.model_copy(update={"run": "unknown"}), count=1)
    letters = await eventually(arena.dead_letters, accept=lambda found: len(found) == 2)
    assert [letter["Hybrid-Reason"] for letter in letters] == ["no run 'unknown'"] * 2
