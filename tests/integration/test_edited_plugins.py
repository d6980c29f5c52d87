"""A plug-in's file that is edited while its worker runs: the next run uses it, and no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from services.trainer import learner_registry
from services.trainer.learner_registry import LearnerRegistry
from shared.bus import suspension
from shared.messages.runs import RunRecord
from tests.integration.arena import Arena, eventually, policy_file

SHARES = """
    SELECT DISTINCT gpu_fraction FROM scheduler_results FINAL
    WHERE run = {run:String} AND scheduler = 'own'
"""
LEARNER = """
from services.trainer.learner import Learner, Update


class OwnLearner(Learner):
    name = "own"

    def pretrain(self, tasks):
        return Update(b"%s")

    def learn(self, model, results, new, version):
        return Update(model)
"""


def write_rule(folder: Path, share: float) -> str:
    return policy_file(
        folder, "own", f"return Decisions(gpu_fraction=np.full(len(tasks), {share}))"
    )


def write_cluster_rule(folder: Path, share: float) -> str:
    path = folder / "own.py"
    path.write_text(f"""
from services.scheduler.policy import ClusterPolicy


class Own(ClusterPolicy):
    name = "own"

    def decide(self, tasks, cluster, spec):
        for _ in cluster.arrivals():
            cluster.place(spec.platform.accelerators[0], share={share}, cpu=spec.platform.cpus[0])
        return cluster.decisions()
""")
    return str(path)


async def shares(arena: Arena, run: RunRecord) -> list[float]:
    return [row["gpu_fraction"] for row in arena.store.query(SHARES, {"run": run.run})]


def stored(arena: Arena, run: RunRecord) -> int:
    sql = "SELECT count() AS results FROM scheduler_results WHERE run = {run:String}"
    return int(arena.store.query(sql, {"run": run.run})[0]["results"])


async def start(arena: Arena, policy: str) -> None:
    for service in ("generator", "simulator", "recorder"):
        await arena.start(service)
    await arena.schedulers(policy)


@pytest.mark.parametrize("write", [write_rule, write_cluster_rule])
async def test_the_next_run_uses_the_edited_file_and_a_running_one_does_not(
    arena: Arena, tmp_path: Path, write: Callable[[Path, float], str]
) -> None:
    await start(arena, write(tmp_path, 0.25))
    running = await arena.run(schedulers=["own"], pace=100)
    await eventually(lambda: shares(arena, running), equals=[0.25])
    write(tmp_path, 0.75)
    after = await arena.run(schedulers=["own"], tasks=200)
    await arena.completed(after)
    await eventually(lambda: shares(arena, after), equals=[0.75])
    (event,) = await arena.events("policy_loaded")
    assert f"own decides run {after.run} with its file as it is now" in event
    counted = stored(arena, running)
    await eventually(lambda: stored(arena, running), accept=lambda now: now > counted)
    assert await shares(arena, running) == [0.25]


async def test_a_file_that_cannot_be_loaded_any_more_suspends_the_next_run(
    arena: Arena, tmp_path: Path
) -> None:
    await start(arena, write_rule(tmp_path, 0.25))
    running = await arena.run(schedulers=["own"], pace=100)
    await eventually(lambda: shares(arena, running), equals=[0.25])
    policy_file(tmp_path, "own", "return 1 +")
    after = await arena.run(schedulers=["own"], pace=100)

    async def reason() -> str:
        found = (await arena.runs.get(after.run)).suspended.get("own")
        return "" if found is None else found.reason

    assert "cannot be loaded: SyntaxError" in await eventually(reason)
    assert not (await arena.runs.get(running.run)).suspended
    write_rule(tmp_path, 0.5)
    await suspension.retry(arena.bus, arena.runs, after.run, "own")
    await eventually(lambda: shares(arena, after), equals=[0.5])
    assert await shares(arena, running) == [0.25]


def test_learners_of_an_edited_file_are_loaded_for_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner_registry, "LEARNERS", ())
    path = tmp_path / "own.py"
    path.write_text(LEARNER % "one")
    registry = LearnerRegistry(str(path))
    first = registry.learners["own"]
    registry.load_changed()
    assert registry.learners["own"] is first
    path.write_text(LEARNER % "two")
    registry.load_changed()
    assert registry.learners["own"].pretrain(None, None).body == b"two"  # type: ignore[arg-type]
    path.write_text("return 1 +")
    registry.load_changed()
    assert registry.learners["own"].pretrain(None, None).body == b"two"  # type: ignore[arg-type]
