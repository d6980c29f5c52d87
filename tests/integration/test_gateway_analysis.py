"""The race in figures: every endpoint against an independent query."""

from __future__ import annotations

import itertools
from typing import Any

import httpx
import numpy as np
import pytest

from shared.store.client import Store
from tests.integration.arena import Arena
from tests.integration.gateway import assert_problem, completed, get, whole


def means(store: Store) -> dict[str, dict[str, float]]:
    rows = store.query(
        "SELECT scheduler, avg(time) AS time, avg(energy) AS energy, avg(cost) AS cost "
        "FROM scheduler_results FINAL GROUP BY scheduler"
    )
    return {row["scheduler"]: row for row in rows}


async def test_the_ranking_is_that_of_the_stored_results(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    names = ("cpu_only", "gpu_only", "greedy", "oracle")
    await whole(arena, *names)
    run = await completed(http)
    body = await get(http, f"/api/runs/{run}/ranking", time=1, energy=0.5, cost=0.5)
    average = means(arena.store)
    assert body["weights"] == {"time": 1, "energy": 0.5, "cost": 0.5}
    for row in body["ranking"]:
        own = average[row["name"]]
        assert row["avg_time"] == pytest.approx(own["time"], rel=1e-9)
        assert row["avg_cost"] == pytest.approx(own["cost"], rel=1e-9)
        score = sum(
            weight * own[measure] / min(other[measure] for other in average.values())
            for measure, weight in (("time", 0.5), ("energy", 0.25), ("cost", 0.25))
        )
        assert row["score"] == pytest.approx(score, rel=1e-9)
        beaten = any(
            all(other[m] <= own[m] for m in ("time", "energy", "cost"))
            and other["time"] < own["time"]
            for other in average.values()
        )
        assert not (row["pareto"] and beaten)
    scores = [row["score"] for row in body["ranking"]]
    assert scores == sorted(scores)
    assert [row["rank"] for row in body["ranking"]] == [1, 2, 3, 4]
    by_time = await get(http, f"/api/runs/{run}/ranking")
    assert by_time["ranking"][0]["name"] == "oracle"
    assert by_time["ranking"][0]["score"] == 1
    assert_problem(await http.get(f"/api/runs/{run}/ranking?time=0"), 422, "above 0")
    for bad in ("time=-1", "cost=101", "energy=nan", "energy=inf", "time=x"):
        assert_problem(await http.get(f"/api/runs/{run}/ranking?{bad}"), 422)


async def test_progress_ends_with_the_newest_totals(arena: Arena, http: httpx.AsyncClient) -> None:
    """400 tasks in batches of 50 are 8 batches."""
    await whole(arena, "greedy", "oracle")
    run = await completed(http)
    body = await get(http, f"/api/runs/{run}/progress", points=500)
    track = body["schedulers"]["greedy"]
    (row,) = arena.store.query(
        "SELECT sum(time) AS time, sum(energy) AS energy, sum(cost) AS cost "
        "FROM scheduler_results FINAL WHERE scheduler = 'greedy'"
    )
    assert track["tasks"][-1] == 400
    assert track["total_time"][-1] == pytest.approx(row["time"], rel=1e-9)
    assert track["total_energy"][-1] == pytest.approx(row["energy"], rel=1e-9)
    assert track["total_cost"][-1] == pytest.approx(row["cost"], rel=1e-9)
    for tasks, total in zip(track["tasks"], track["total_time"], strict=True):
        (row,) = arena.store.query(
            "SELECT sum(time) AS time FROM scheduler_results FINAL "
            "WHERE scheduler = 'greedy' AND task_id < {t:Int64}",
            {"t": tasks},
        )
        assert total == pytest.approx(row["time"], rel=1e-9)
    few = await get(http, f"/api/runs/{run}/progress", points=3)
    shown = few["schedulers"]["oracle"]["tasks"]
    assert len(shown) == 3
    assert (shown, shown[-1]) == (sorted(shown), 400)
    for points in (1, 501):
        assert_problem(await http.get(f"/api/runs/{run}/progress?points={points}"), 422)


def busy(rows: list[dict[str, Any]], kind: str, device: int, start: float, end: float) -> float:
    """Seconds of a device between two moments, part by part."""
    return sum(
        max(
            0.0,
            min(row[f"{kind}_start"] + row[f"{kind}_time"], end) - max(row[f"{kind}_start"], start),
        )
        for row in rows
        if (row["gpu"] if kind == "gpu" else row["task_id"] % 2) == device
    )


@pytest.mark.parametrize("rate", [4, 40])
async def test_utilisation_is_what_ran_on_each_device(
    arena: Arena, http: httpx.AsyncClient, rate: float
) -> None:
    """At 40 tasks a second the CPUs fall far behind: what runs now arrived long ago."""
    await whole(arena, "round_robin")
    run = await completed(
        http, tasks=2000, cluster={"cpus": 2, "gpus": 2}, workload={"arrival_rate": rate}
    )
    body = await get(http, f"/api/runs/{run}/utilization", scheduler="round_robin", seconds=30)
    (newest,) = arena.store.query("SELECT max(arrival_time) AS at FROM tasks")
    assert body["end"] == newest["at"]
    assert body["start"] == pytest.approx(newest["at"] - 30)
    assert body["step"] == pytest.approx(1)
    rows = arena.store.query("SELECT * FROM scheduler_results FINAL")
    assert [device["name"] for device in body["devices"]] == ["cpu_0", "cpu_1", "gpu_0", "gpu_1"]
    for device in body["devices"]:
        kind, number = device["name"].split("_")
        whole_window = busy(rows, kind, int(number), body["start"], body["end"])
        assert device["utilization"] == pytest.approx(whole_window / 30, abs=1e-9)
        assert len(device["busy"]) == 30
        edges = np.linspace(body["start"], body["end"], 31)
        for (low, high), share in zip(itertools.pairwise(edges), device["busy"], strict=True):
            wanted = busy(rows, kind, int(number), float(low), float(high)) / (high - low)
            assert share == pytest.approx(wanted, abs=1e-6)
    assert body["average"] == pytest.approx(
        np.mean([device["utilization"] for device in body["devices"]])
    )
    for bad in ("seconds=0", "seconds=3601", "seconds=nan"):
        assert_problem(await http.get(f"/api/runs/{run}/utilization?{bad}"), 422)
    assert_problem(await http.get(f"/api/runs/{run}/utilization?scheduler=other"), 404, "other")


async def test_the_analysis_agrees_with_sql(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "cpu_only", "greedy", "oracle")
    run = await completed(http, tasks=600)
    body = await get(http, f"/api/runs/{run}/analysis", window=500)
    store = arena.store
    assert body["window"] == {"first": 100, "last": 600, "tasks": 500}
    assert body["scheduler"] == "oracle"
    (wins,) = store.query(
        "SELECT avg(a.time - b.time > 1e-9) AS lost, avg(b.time - a.time > 1e-9) AS won "
        "FROM (SELECT * FROM scheduler_results FINAL WHERE scheduler = 'cpu_only') AS a "
        "JOIN (SELECT * FROM scheduler_results FINAL WHERE scheduler = 'greedy') AS b "
        "USING (task_id) WHERE task_id >= 100"
    )
    names = body["wins"]["names"]
    row, column = names.index("cpu_only"), names.index("greedy")
    assert body["wins"]["matrix"][row][column] == pytest.approx(wins["won"])
    assert body["wins"]["matrix"][column][row] == pytest.approx(wins["lost"])
    assert body["wins"]["ties"][row][column] == pytest.approx(1 - wins["won"] - wins["lost"])
    assert body["wins"]["matrix"][row][row] is None
    (pearson,) = store.query(
        "SELECT corr(size, time) AS a, corr(compute_intensity, gpu_fraction) AS b, "
        "corr(energy, cost) AS c FROM "
        "(SELECT * FROM scheduler_results FINAL WHERE scheduler = 'oracle') AS r "
        "JOIN (SELECT * FROM tasks FINAL) AS t USING (task_id) WHERE task_id >= 100"
    )
    at = {name: place for place, name in enumerate(body["correlation"]["names"])}
    matrix = body["correlation"]["matrix"]
    assert matrix[at["size"]][at["time"]] == pytest.approx(pearson["a"])
    assert matrix[at["gpu_fraction"]][at["compute_intensity"]] == pytest.approx(pearson["b"])
    assert matrix[at["energy"]][at["cost"]] == pytest.approx(pearson["c"])
    (share,) = store.query(
        "SELECT avg(gpu_fraction) AS mean FROM scheduler_results FINAL "
        "WHERE scheduler = 'oracle' AND task_id >= 100"
    )
    cells = [cell for line in body["heatmap"]["cells"] for cell in line if cell]
    assert sum(cell["tasks"] for cell in cells) == sum(body["sizes"]["counts"]) == 500
    mean = sum(cell["tasks"] * cell["gpu_share"] for cell in cells) / 500
    assert mean == pytest.approx(share["mean"])
    (split,) = store.query(
        "SELECT sum(gpu_time) AS gpu, sum(cpu_time) AS cpu, countIf(gpu_time > 0) AS tasks "
        "FROM scheduler_results FINAL WHERE scheduler = 'greedy' AND task_id >= 100"
    )
    assert body["split"]["greedy"] == {
        "gpu_time": pytest.approx(split["gpu"]),
        "cpu_time": pytest.approx(split["cpu"]),
        "gpu_tasks": split["tasks"],
        "tasks": 500,
    }
    assert [point["task_id"] for point in body["scatter"]] == list(range(300, 600))
    other = await get(http, f"/api/runs/{run}/analysis", scheduler="cpu_only")
    assert {point["gpu_fraction"] for point in other["scatter"]} == {0.0}
    assert other["correlation"]["matrix"][at["gpu_fraction"]] == [None] * 7
    for bad in ("window=0", "window=10001"):
        assert_problem(await http.get(f"/api/runs/{run}/analysis?{bad}"), 422)


async def test_a_run_without_results_has_empty_figures(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = (await arena.run(schedulers=["greedy"], pace=1)).run
    assert (await get(http, f"/api/runs/{run}/ranking"))["ranking"] == []
    assert (await get(http, f"/api/runs/{run}/progress"))["schedulers"] == {}
    assert (await get(http, f"/api/runs/{run}/analysis"))["window"]["tasks"] == 0
    assert (await get(http, f"/api/runs/{run}/tasks")) == {"rows": [], "next_before": None}
    assert_problem(await http.get(f"/api/runs/{run}/utilization"), 404, "yet")
    assert_problem(await http.get(f"/api/runs/{run}/tasks/0"), 404, "task 0")
    for path in ("ranking", "progress", "utilization", "analysis", "tasks", "tasks/1"):
        assert_problem(await http.get(f"/api/runs/none/{path}"), 404, "no run 'none'")
