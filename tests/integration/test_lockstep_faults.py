"""Runs in lockstep whose learners have nothing to learn from, or fail: the run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.domain.schedulers import FOREST, ORACLE
from shared.messages.runs import RunRecord
from tests.integration.arena import Arena, eventually
from tests.integration.learning import learning, start, stored_models

TASKS, SEGMENT = 200, 50
FAULTY_LEARNER = '''
from services.scheduler.learned_policy import LearnedClusterPolicy
from services.trainer.learner import Learner


class Faulty(Learner):
    name = "faulty"

    def pretrain(self, tasks):
        raise RuntimeError("no pre-training today")

    def learn(self, model, results, new, version):
        raise RuntimeError("no learning today")


class FaultyPolicy(LearnedClusterPolicy):
    """Earliest finish until there is a model, which there never is."""

    name = learner = "faulty"

    def load_model(self, body):
        return body

    def prepare_with(self, model, tasks, spec):
        return model

    def decide(self, tasks, cluster, spec):
        for _ in cluster.arrivals():
            cluster.place(cluster.finish().argmin())
        return cluster.decisions()
'''


def in_lockstep(pretrain: int) -> dict[str, Any]:
    return {**learning(pretrain), "sync": "lockstep", "lockstep_tasks": SEGMENT}


async def versions_used(arena: Arena, run: RunRecord, scheduler: str) -> list[int]:
    """By each task of the run, once all of them have results."""
    rows: list[dict[str, Any]] = await eventually(
        lambda: arena.store.query(
            "SELECT model_version FROM scheduler_results FINAL "
            "WHERE run = {run:String} AND scheduler = {name:String} ORDER BY task_id",
            {"run": run.run, "name": scheduler},
        ),
        f"all results of {scheduler}",
        accept=lambda rows: len(rows) == TASKS,
    )
    return [row["model_version"] for row in rows]


async def test_a_learner_without_pretraining_and_teacher_decides_without_a_model(
    arena: Arena,
) -> None:
    await start(arena, "recorder", "simulator", "trainer", "generator")
    await arena.schedulers(FOREST)
    run = await arena.run(
        schedulers=[FOREST], tasks=TASKS, pace="max", learning=in_lockstep(pretrain=0)
    )
    assert await versions_used(arena, run, FOREST) == [0] * TASKS
    reasons = {model.manifest.reason for model in await stored_models(arena, run, FOREST)}
    assert reasons == {"no model yet: there is nothing to learn from"}


async def test_a_learner_that_fails_holds_up_nobody(arena: Arena, tmp_path: Path) -> None:
    file = tmp_path / "faulty.py"
    file.write_text(FAULTY_LEARNER)
    await start(arena, "recorder", "simulator", "generator")
    await arena.start("trainer", plugins=str(file))
    await arena.start("scheduler", policy=str(file))
    await arena.schedulers(FOREST, ORACLE)
    names = [FOREST, ORACLE, "faulty"]
    run = await arena.run(
        schedulers=names, tasks=TASKS, pace="max", learning=in_lockstep(pretrain=100)
    )
    assert await versions_used(arena, run, "faulty") == [0] * TASKS
    used = await versions_used(arena, run, FOREST)
    assert used == [1] * 2 * SEGMENT + [2] * SEGMENT + [3] * SEGMENT
    first, *later = await stored_models(arena, run, "faulty")
    assert "no pre-training today" in first.manifest.reason
    assert all("no learning today" in model.manifest.reason for model in later)
