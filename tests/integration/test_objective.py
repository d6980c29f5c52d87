"""A new objective in a running run: the learners follow."""

from __future__ import annotations

import httpx
import numpy as np
import pytest
from safetensors.numpy import load, save

from services.trainer import learner_registry
from services.trainer.learner import Learner, Results, Update
from services.trainer.learner_registry import LearnerRegistry
from shared.bus import model_registry
from shared.domain.tasks import Tasks
from shared.messages.runs import RunState
from tests.integration.arena import Arena, eventually
from tests.integration.gateway import assert_problem
from tests.integration.publishing import publish_run

NAME = "follower"
ENERGY = {"turnaround": 1.0, "energy": 0.5, "cost": 0.0}


class Follower(Learner):
    """Its model is the weight of energy."""

    name = NAME

    def pretrain(self, tasks: Tasks) -> Update:
        return self._model()

    def learn(self, model: bytes | None, results: Results, new: int, version: int) -> Update:
        return self._model()

    def is_due(self, model: bytes | None, results: Results, new: int) -> bool:
        return False  # only because of the objective

    def _model(self) -> Update:
        return Update(save({"energy": np.array([self.spec.objective.energy])}), "made")


class OnlyFollower(LearnerRegistry):
    def __init__(self, plugins: str) -> None:
        self.learners, self._fingerprints = {NAME: Follower}, {}


async def test_learners_follow_a_new_objective(
    arena: Arena, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner_registry, "LearnerRegistry", OnlyFollower)
    await arena.start("trainer")
    run = await arena.run(schedulers=[NAME], learning={"pretrain_tasks": 100})

    async def newest() -> float | None:
        model = await model_registry.read_newest(arena.bus, run.run, NAME)
        return None if model is None else float(load(model.body)["energy"][0])

    await eventually(newest, equals=0.0)
    await publish_run(arena, run, count=1)
    answer = await http.put(f"/api/runs/{run.run}/objective", json=ENERGY)
    assert answer.status_code == 200
    assert answer.json()["spec"]["objective"] == ENERGY
    assert (await arena.runs.get(run.run)).spec.objective.energy == 0.5
    await eventually(newest, equals=0.5)
    (event,) = [each for each in await arena.events("run") if "now minimise" in each]
    assert "turnaround 1, energy 0.5, cost 0" in event


async def test_an_objective_that_cannot_be_set_says_why(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await arena.run(schedulers=["eft"], tasks=100)
    place = f"/api/runs/{run.run}/objective"
    assert_problem(await http.put(place, json=ENERGY), 409, "learns in lockstep")
    free = await arena.run(schedulers=["eft"])
    place = f"/api/runs/{free.run}/objective"
    for wrong in ({"turnaround": 0}, {"energy": -1}, {"speed": 1}):
        assert_problem(await http.put(place, json=wrong), 422)
    await arena.runs.change_state(free.run, RunState.STOPPED)
    assert_problem(await http.put(place, json=ENERGY), 409, "learn no more")
    assert_problem(await http.put("/api/runs/nope/objective", json=ENERGY), 404)
