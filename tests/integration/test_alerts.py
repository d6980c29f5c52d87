"""Events that a user is alerted by: a run that is stuck, and a workload that changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shared.messages.runs import RunRecord
from tests.integration.arena import Arena, eventually

STUCK_AFTER = timedelta(seconds=5)  # for two batches, on a busy machine


async def events(arena: Arena, run: RunRecord, kind: str) -> list[dict[str, Any]]:
    return arena.store.query(
        "SELECT message, data FROM events FINAL WHERE run = {run:String} AND kind = {kind:String} "
        "ORDER BY at",
        {"run": run.run, "kind": kind},
    )


async def test_a_run_without_a_worker_of_one_scheduler_is_stuck_there(arena: Arena) -> None:
    for service in ("simulator", "recorder"):
        await arena.start(service)
    await arena.start("generator", stuck_after=STUCK_AFTER)
    await arena.schedulers("greedy")
    run = await arena.run(schedulers=["greedy", "random"], tasks=100, pace="max")

    (event,) = await eventually(lambda: events(arena, run, "stuck"), "the run is stuck")
    assert "no new results of random for 5 s" in event["message"]
    assert event["data"] == '{"schedulers": ["random"]}'

    await arena.schedulers("random")
    await eventually(lambda: arena.state(run), equals="completed")
    assert len(await events(arena, run, "stuck")) == 1


async def test_a_change_of_the_workload_is_an_event(arena: Arena) -> None:
    for service in ("simulator", "recorder", "generator"):
        await arena.start(service)
    await arena.schedulers("greedy")
    drift = [{"after": 70, "preset": "cpu_friendly"}, {"after": 500, "preset": "hpc"}]
    run = await arena.run(schedulers=["greedy"], tasks=200, pace="max", workload={"drift": drift})
    await eventually(lambda: arena.state(run), equals="completed")
    (event,) = await eventually(lambda: events(arena, run, "drift"), "the drift")
    assert event["message"] == f"run {run.run}: the workload is cpu_friendly from task 70 on"
