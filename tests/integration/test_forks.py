"""Forks of runs: what the gateway accepts, and tasks that come from the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.integration.arena import Arena, eventually
from tests.integration.gateway import completed, serving, started, state_of, whole
from tests.integration.test_submitted_runs import rows, send

FINISHES = """
    SELECT scheduler, groupBitXor(cityHash64(* EXCEPT (run, batch))) AS results, count() AS tasks
    FROM scheduler_results FINAL WHERE run = {run:String} GROUP BY scheduler ORDER BY scheduler
"""


@pytest.fixture
async def http(arena: Arena) -> AsyncIterator[httpx.AsyncClient]:
    await arena.start("recorder")
    await whole(arena, "greedy", "heft")
    async with serving(arena.settings) as client:
        yield client


async def fork(http: httpx.AsyncClient, run: str, at: int, *changes: str, **more: Any) -> Any:
    body = {"at": at, "changes": list(changes), **more}
    return await http.post(f"/api/runs/{run}/fork", json=body)


async def test_a_fork_of_submitted_tasks_gets_them_from_the_store(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    submitted = {"workload": {"source": "submitted"}, "schedulers": ["greedy", "heft"]}
    run = await started(http, **submitted, pace="max")
    assert (await send(http, run, 0, rows(0, 90))).is_success
    assert (await send(http, run, 90, rows(90, 60), last=True)).is_success
    await state_of(http, run, "completed")
    answer = await fork(http, run, 70)
    assert answer.status_code == 201, answer.text
    branch = answer.json()["run"]
    await state_of(http, branch, "completed")
    assert arena.store.query(FINISHES, {"run": branch}) == arena.store.query(FINISHES, {"run": run})


async def test_a_workflow_is_not_divided(arena: Arena, http: httpx.AsyncClient) -> None:
    shape = {"shape": "fork_join", "workflow_tasks": 12}
    run = await completed(http, tasks=240, workload={"dependencies": shape})
    answer = await fork(http, run, 100)
    assert answer.json()["fork"]["at"] == 96
    await state_of(http, answer.json()["run"], "completed")
    assert arena.store.query(FINISHES, {"run": answer.json()["run"]}) == arena.store.query(
        FINISHES, {"run": run}
    )


async def test_what_cannot_be_forked_is_refused_with_the_reason(http: httpx.AsyncClient) -> None:
    run = await completed(http, tasks=100)
    refused = {
        (100,): "has the tasks 0 to 99, and no task 100",
        (50, "cluster.gpuss=5"): "did you mean gpus?",
        (50, "cluster.gpus=0"): "cluster.gpus: Input should be greater than or equal to 1",
        (50, "tasks=40"): "tasks: must be above 50",
        (50, "workload.source=submitted", "tasks=null"): "its tasks are generated",
        (50, "schedulers=greedy,eft"): "eft takes no part in run",
    }
    for (at, *changes), reason in refused.items():
        answer = await fork(http, run, at, *changes)
        assert answer.status_code in (409, 422), answer.text
        assert reason in answer.text
    assert (await fork(http, "nosuch", 5)).status_code == 404
    answer = await fork(http, run, 5, takes_over={"heft": "nobody"})
    assert "nobody takes no part" in answer.text
    assert len((await http.get("/api/runs")).json()) == 1  # nothing was started


async def test_a_run_with_added_tasks_is_not_forked(http: httpx.AsyncClient) -> None:
    run = await started(http, tasks=100, pace=200, schedulers=["greedy"])
    task = {"size": 960, "compute_intensity": 0.75, "memory_required": 81}
    assert (await http.post("/api/tasks", json={"run": run, "tasks": [task]})).is_success
    await state_of(http, run, "completed")
    answer = await fork(http, run, 90)
    assert answer.status_code == 409
    assert "were submitted to run" in answer.text


async def test_a_fork_at_a_task_without_results_says_who_lags(http: httpx.AsyncClient) -> None:
    run = await started(http, tasks=10_000, pace=50, schedulers=["greedy"])
    answer = await fork(http, run, 9_000)
    assert answer.status_code == 409
    assert "greedy has" in answer.text
    await http.post("/api/simulation/stop", params={"run": run})


async def test_a_parent_is_not_deleted_while_its_fork_is_active(
    http: httpx.AsyncClient,
) -> None:
    run = await completed(http, tasks=100)
    answer = await fork(http, run, 50, "tasks=100000", "pace=10")
    assert answer.status_code == 201, answer.text
    await http.delete("/api/history")
    assert (await http.get(f"/api/runs/{run}")).status_code == 200
    await http.post("/api/simulation/stop", params={"run": answer.json()["run"]})

    async def deleted() -> bool:
        await http.delete("/api/history")
        return (await http.get(f"/api/runs/{run}")).status_code == 404

    await eventually(deleted)
