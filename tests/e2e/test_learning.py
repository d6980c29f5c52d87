"""The learners in the whole arena: trained while the stream flows, killed, brought back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.counting import once
from tests.e2e.arena import QUICK, ArenaProcess
from tests.waiting import until

COMPETITORS = ("oracle", "greedy", "hybrid_ml", "rl_agent")


@pytest.fixture
def arena(shared_arena: ArenaProcess) -> ArenaProcess:
    return shared_arena


def ratios(arena: ArenaProcess, run: str, first: int) -> dict[str, float]:
    rows = arena.sql(
        "SELECT scheduler, sum(time) AS time FROM scheduler_results FINAL "
        f"WHERE run = '{run}' AND task_id >= {first} GROUP BY scheduler"
    )
    times = {row["scheduler"]: row["time"] for row in rows}
    return {name: spent / times["oracle"] for name, spent in times.items()}


def versions(arena: ArenaProcess, run: str, name: str) -> list[int]:
    rows = arena.sql(
        f"SELECT version FROM models FINAL WHERE run = '{run}' AND name = '{name}' AND shipped "
        "ORDER BY created_at"
    )
    return [row["version"] for row in rows]


def test_learned_schedulers_beat_the_rule_from_the_first_task_on(arena: ArenaProcess) -> None:
    # In lockstep: otherwise a run starts without models when these take longer than a minute.
    learning = {**QUICK, "sync": "lockstep"}
    run = arena.start_run(tasks=4000, pace=1000, seed=31, schedulers=COMPETITORS, learning=learning)
    arena.complete(run)
    found = ratios(arena, run, 0)
    assert found["hybrid_ml"] < 1.05
    assert found["rl_agent"] < 1.10
    assert found["greedy"] > 1.2
    unmodelled = arena.sql(
        f"SELECT count() AS n FROM scheduler_results FINAL WHERE run = '{run}' "
        "AND scheduler IN ('hybrid_ml', 'rl_agent') AND model_version = 0"
    )
    assert unmodelled == [{"n": 0}]  # the first model was there before the first task


@pytest.mark.long
def test_killing_trainer_and_workers_loses_nothing_and_versions_go_on(arena: ArenaProcess) -> None:
    run = arena.start_run(pace=250, seed=32, schedulers=COMPETITORS, learning=QUICK)
    arena.wait_for(run, lambda status: status["tasks_processed"] > 800)
    before = {name: max(versions(arena, run, name)) for name in ("hybrid_ml", "rl_agent")}
    arena.kill("services.trainer")
    arena.kill_worker("rl_agent")
    arena.kill_worker("hybrid_ml")
    until(
        lambda: all(max(versions(arena, run, name)) > before[name] for name in before),
        "newer models",
        every=0.5,
    )
    # Paused, not stopped: of an active run it is known how many tasks were sent.
    sent = arena.pause(run)["tasks_sent"]
    arena.http.post("/api/simulation/stop", params={"run": run})
    assert arena.counted(run) == once(sent, COMPETITORS)
    for name in ("hybrid_ml", "rl_agent"):
        shipped = versions(arena, run, name)
        assert shipped == list(range(1, len(shipped) + 1))


def test_a_cold_start_falls_back_to_greedy_until_the_first_model(arena: ArenaProcess) -> None:
    run = arena.start_run(
        pace=100, seed=33, schedulers=COMPETITORS, learning={**QUICK, "pretrain_tasks": 0}
    )

    def decisions() -> list[dict[str, Any]]:
        return arena.sql(
            "SELECT scheduler, countIf(model_version = 0) AS cold, "
            "countIf(model_version > 0) AS warm, "
            "countIf(model_version = 0 AND gpu_fraction != compute_intensity) AS not_greedy "
            "FROM scheduler_results FINAL INNER JOIN tasks FINAL USING (run, task_id) "
            f"WHERE run = '{run}' AND scheduler IN ('hybrid_ml', 'rl_agent') GROUP BY scheduler"
        )

    until(lambda: [row["warm"] > 0 for row in decisions()] == [True, True], every=0.5)
    arena.http.post("/api/simulation/stop", params={"run": run})
    for row in decisions():
        assert row["cold"] > 0
        assert row["not_greedy"] == 0


def test_the_agent_uses_all_gpus(arena: ArenaProcess) -> None:
    run = arena.start_run(tasks=4000, pace="max", seed=34, schedulers=COMPETITORS, learning=QUICK)
    arena.complete(run)
    rows = arena.sql(
        f"SELECT device, count() AS tasks FROM scheduler_results FINAL WHERE run = '{run}' "
        "AND scheduler = 'rl_agent' AND gpu_fraction > 0 GROUP BY device ORDER BY device"
    )
    assert [row["device"] for row in rows] == [0, 1, 2, 3]
    assert max(row["tasks"] for row in rows) < 0.5 * sum(row["tasks"] for row in rows)
