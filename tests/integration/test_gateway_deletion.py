"""Deleting the history: runs that are over go with everything they left, and stay away."""

from __future__ import annotations

import httpx
import pytest

from services.gateway.history import deletion
from shared.messages import subjects
from shared.messages.runs import RunState
from shared.store.schema import TABLES
from tests.integration.arena import Arena, eventually, unchanged
from tests.integration.gateway import assert_problem, started, state_of, whole


async def deleted(http: httpx.AsyncClient) -> int:
    """How many runs went, until none with work on its way was left."""
    runs = 0

    async def none_left() -> bool:
        nonlocal runs
        answer = await http.delete("/api/history")
        assert answer.status_code == 200, answer.text
        runs += answer.json()["runs"]
        return bool(answer.json()["left"] == 0)

    await eventually(none_left)
    return runs


async def test_a_run_that_is_deleted_as_soon_as_it_is_stopped_does_not_come_back(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(arena, "greedy", "oracle")
    run = await started(http, pace="max")
    await eventually(lambda: arena.store.query("SELECT run FROM scheduler_results LIMIT 1"))
    await http.post("/api/simulation/stop")
    assert await deleted(http) == 1

    async def left() -> dict[str, int]:
        streams = {
            stream: await arena.count_of(stream, f"{stream.lower()}.{run}.>")
            + await arena.count_of(stream, f"{stream.lower()}.{run}")
            for stream in (subjects.TASKS, subjects.DECISIONS, subjects.RESULTS)
        }
        counted = {
            table: arena.store.query(f"SELECT count() AS rows FROM {table} WHERE run != ''")
            for table in TABLES
        }
        return streams | {table: row[0]["rows"] for table, row in counted.items()}

    assert not any((await unchanged(left)).values())
    assert await deleted(http) == 0


async def test_a_run_whose_work_waits_for_a_scheduler_is_left_for_later(
    arena: Arena, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "WAIT_SECONDS", 1.0)
    (greedy,) = await arena.schedulers("greedy")
    await arena.start("generator")
    run = await started(http, pace="max")

    async def sent() -> int:
        return await arena.tasks_sent(await arena.runs.get(run))

    await eventually(sent)
    await arena.stop(greedy)  # and no simulator takes what it has decided
    await http.post("/api/simulation/stop")
    assert (await http.delete("/api/history")).json() == {"runs": 0, "left": 1}
    assert (await http.get(f"/api/runs/{run}")).status_code == 200
    # In the end nobody waits for it any more.
    monkeypatch.setattr(deletion, "ABANDONED_SECONDS", 0.0)
    assert await deleted(http) == 1
    assert_problem(await http.get(f"/api/runs/{run}"), 404)
    assert await arena.count(subjects.DECISIONS) == 0
    assert arena.store.query("SELECT run FROM tasks") == []


async def test_deleting_the_history_keeps_active_runs(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(arena, "greedy")
    done = await started(http, tasks=100, pace="max")
    await state_of(http, done, "completed")
    paused, running = await started(http, pace=200), await started(http, pace=200)
    await http.post("/api/pause", params={"run": paused})
    await eventually(
        lambda: arena.store.query("SELECT DISTINCT run FROM scheduler_results"),
        accept=lambda rows: {row["run"] for row in rows} == {done, paused, running},
    )
    assert await deleted(http) == 1
    assert_problem(await http.get(f"/api/runs/{done}"), 404)
    for table in ("tasks", "scheduler_results", "standings"):
        rows = arena.store.query(f"SELECT DISTINCT run FROM {table}")
        assert {row["run"] for row in rows} == {paused, running}
    listed = {row["run"]: row["state"] for row in (await http.get("/api/runs")).json()}
    assert listed == {paused: "paused", running: "running"}
    before = await arena.tasks_sent(await arena.runs.get(running))

    async def goes_on() -> bool:
        return await arena.tasks_sent(await arena.runs.get(running)) > before

    await eventually(goes_on)
    assert (await arena.runs.get(paused)).state == RunState.PAUSED
