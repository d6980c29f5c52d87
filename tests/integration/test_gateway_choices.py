"""Why a learner chose what it chose, and how far its expected times were off."""

from __future__ import annotations

import json
import math
from statistics import median
from typing import Any

import httpx
import pytest

from tests.integration.arena import Arena
from tests.integration.gateway import assert_problem, completed, get, started, whole

TASKS = 1000
TYPES = ("gpu", "gpu", "gpu", "gpu", "cpu")  # of the devices of the default cluster
PREDICTIVE = "scheduler = 'predictive'"


async def a_run_that_learns(arena: Arena, http: httpx.AsyncClient) -> str:
    """In lockstep, the later tasks by newer versions than the first; 30 % hidden noise."""
    await arena.start("trainer")
    await whole(arena, "predictive", "eft", "greedy")
    return await completed(
        http,
        tasks=TASKS,
        physics={"noise": 0.3},
        learning={"pretrain_tasks": 200, "lockstep_tasks": 200, "predictive": {"explore": 0.05}},
    )


def results(arena: Arena, condition: str) -> list[dict[str, Any]]:
    return arena.store.query(
        "SELECT * FROM (SELECT * FROM scheduler_results FINAL) AS r "
        "JOIN (SELECT task_id, arrival_time FROM tasks FINAL) AS t USING (task_id) "
        f"WHERE {condition} ORDER BY task_id"
    )


def device_of(row: dict[str, Any]) -> int:
    return int(row["device"] if row["gpu_time"] > 0 else row["cpu"])


def queued(rows: list[dict[str, Any]], device: int, at: float) -> float:
    """Seconds that these tasks, all of them on one device, leave it to do after a moment."""
    ends = [
        (row["finish"] - row["time"], row["finish"]) for row in rows if device_of(row) == device
    ]
    return sum(max(end - max(begin, at), 0.0) for begin, end in ends)


async def test_a_choice_has_what_was_compared_and_the_model(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await a_run_that_learns(arena, http)
    rows = results(arena, PREDICTIVE)
    explored = next(row["task_id"] for row in rows if row["explored"])
    for task in (explored, 700, TASKS - 1):
        row = rows[task]
        # The other two schedulers do not say what they compared.
        (choice,) = (await get(http, f"/api/runs/{run}/tasks/{task}/choices"))["choices"]
        assert choice["scheduler"] == "predictive"
        assert (choice["compared"], choice["overruled"]) == (5, False)
        assert choice["explored"] == row["explored"]
        assert choice["probability"] == row["probability"]
        scores = [device["score"] for device in choice["devices"]]
        assert scores == sorted(row["scores"])
        detail = await get(http, f"/api/runs/{run}/tasks/{task}")
        known = {each["type"]: each["expected_seconds"] for each in detail["physics"]["types"]}
        for device in choice["devices"]:
            number = ("gpu_0", "gpu_1", "gpu_2", "gpu_3", "cpu_0").index(device["device"])
            assert device["type"] == TYPES[number]
            assert device["score"] == row["scores"][number]
            assert device["predicted"] == row["predicted"][number == 4]
            assert device["expected"] == known[device["type"]]
            assert device["chosen"] == (number == device_of(row))
            waiting = queued(rows[:task], number, row["arrival_time"])
            assert device["queued"] == pytest.approx(waiting, abs=1e-6)
        assert row["explored"] or choice["devices"][0]["chosen"]
        (model,) = arena.store.query(
            "SELECT version, metrics FROM models FINAL WHERE name = 'predictive' AND shipped "
            "AND version = {version:UInt32}",
            {"version": row["model_version"]},
        )
        assert choice["model"]["metrics"] == json.loads(model["metrics"])
        assert {"price_gpu", "price_cpu", "error_gpu"} <= set(choice["model"]["metrics"])
    assert rows[0]["model_version"] < rows[-1]["model_version"]
    assert_problem(await http.get(f"/api/runs/{run}/tasks/{TASKS}/choices"), 404, "no results")

    shown = (await get(http, f"/api/runs/{run}/errors"))["schedulers"]
    assert set(shown) == {"predictive", "eft"}  # greedy expects no times
    for name, track in shown.items():
        # At least 50 tasks in each.
        assert (track["first"], track["exact"]) == (list(range(0, TASKS, 50)), True)
        assert track["last"] == list(range(50, TASKS + 50, 50))
        own = results(arena, f"scheduler = '{name}'")
        for kind, errors in track["types"].items():
            for at, (error, count) in enumerate(zip(errors["error"], errors["tasks"], strict=True)):
                ratios = [
                    max(row["time"] / row["expected_time"], row["expected_time"] / row["time"])
                    for row in own[50 * at : 50 * at + 50]
                    if TYPES[device_of(row)] == kind
                ]
                assert count == len(ratios)
                if ratios:
                    wanted = math.exp(median(math.log(ratio) for ratio in ratios)) - 1
                    assert error == pytest.approx(wanted, rel=1e-9)
                else:
                    assert error is None
    one = await get(http, f"/api/runs/{run}/errors", scheduler="eft")
    assert one["schedulers"] == {"eft": shown["eft"]}
    assert_problem(await http.get(f"/api/runs/{run}/errors?scheduler=nope"), 404)


async def test_a_run_says_whether_it_learns_in_lockstep(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await arena.schedulers("eft", "predictive")
    counted = await started(http, tasks=100, pace="max")
    endless = await started(http, schedulers=["eft"])
    body = await get(http, f"/api/runs/{counted}")
    assert (body["lockstep"], body["learning_schedulers"]) == (True, ["predictive"])
    body = await get(http, f"/api/runs/{endless}")
    assert (body["lockstep"], body["learning_schedulers"]) == (False, [])
