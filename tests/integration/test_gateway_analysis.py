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
        "SELECT scheduler, avg(time) AS time, avg(energy) AS energy, avg(cost) AS cost, "
        "avg(turnaround) AS turnaround FROM scheduler_results FINAL GROUP BY scheduler"
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
    assert body["weights"] == {"turnaround": 0, "time": 1, "energy": 0.5, "cost": 0.5}
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
            all(other[m] <= own[m] for m in ("turnaround", "time", "energy", "cost"))
            and other["time"] < own["time"]
            for name, other in average.items()
            if name != "oracle"
        )
        assert not (row["pareto"] and beaten)
    scores = [row["score"] for row in body["ranking"]]
    assert scores == sorted(scores)
    assert [row["rank"] for row in body["ranking"] if row["name"] != "oracle"] == [1, 2, 3]
    by_time = await get(http, f"/api/runs/{run}/ranking", time=1)
    first, second, *_ = by_time["ranking"]
    assert (first["name"], first["score"], first["rank"]) == ("oracle", 1, None)
    assert second["rank"] == 1
    assert_problem(await http.get(f"/api/runs/{run}/ranking?time=0"), 422, "above 0")
    for bad in ("time=-1", "cost=101", "energy=nan", "energy=inf", "time=x"):
        assert_problem(await http.get(f"/api/runs/{run}/ranking?{bad}"), 422)


async def test_without_weights_the_ranking_is_by_turnaround(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """At 14 tasks/s the Oracle's tasks wait longer for the CPU than those of gpu_only for a GPU."""
    await whole(arena, "gpu_only", "oracle")
    run = await completed(http, tasks=2000, workload={"arrival_rate": 14})
    body = await get(http, f"/api/runs/{run}/ranking")
    assert body["weights"] == {"turnaround": 1, "time": 0, "energy": 0, "cost": 0}
    average = {name: row["turnaround"] for name, row in means(arena.store).items()}
    shown = [(row["name"], row["rank"], row["score"]) for row in body["ranking"]]
    ratio = average["oracle"] / average["gpu_only"]
    assert shown == [("gpu_only", 1, 1), ("oracle", None, pytest.approx(ratio, rel=1e-9))]


async def test_every_measure_and_the_failures_are_beside_the_rank(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """Two kinds of GPU with too little memory for some tasks, in two nodes with idle power."""
    await whole(arena, "cpu_only", "gpu_only", "oracle")
    devices = [
        {"type": "v100", "count": 2, "memory_mb": 1000, "speed": 2, "idle_watts": 5},
        {"type": "t4", "memory_mb": 500},
        {"type": "cpu", "idle_watts": 10},
    ]
    cluster = {"devices": devices, "nodes": [{"name": "node", "count": 2}]}
    run = await completed(http, cluster=cluster, physics={"memory_policy": "fail"})
    body = await get(http, f"/api/runs/{run}/ranking")
    rows = {row["name"]: row for row in body["ranking"]}
    stored = arena.store.query(
        "SELECT scheduler, countIf(status = 'failed') AS failed, avg(turnaround) AS mean, "
        "arraySort(groupArray(turnaround))[380] AS p95, max(finish) AS makespan, "
        "sumIf(gpu_time, device < 4) AS v100, sum(cpu_time) AS cpu "
        "FROM scheduler_results FINAL GROUP BY scheduler"
    )
    for own in stored:
        row = rows[own["scheduler"]]
        assert (row["failed"], row["failed_share"]) == (own["failed"], own["failed"] / 400)
        assert row["avg_turnaround"] == pytest.approx(own["mean"], rel=1e-9)
        # 95 % of the 400 tasks are the 380 shortest.
        assert row["turnaround_p95"] == pytest.approx(own["p95"], rel=0.01)
        assert row["avg_slowdown"] >= 1
        assert row["vs_bound"] == pytest.approx(own["makespan"] / body["bound"], rel=1e-9)
        # Devices 0 to 3 are V100 of 5 W; two CPUs of 10 W; the T4 need nothing while idle.
        idle = 40 * own["makespan"] - 5 * own["v100"] - 10 * own["cpu"]
        assert row["avg_idle_energy"] * 400 == pytest.approx(idle, rel=1e-9)
    assert rows["gpu_only"]["failed"] > 0
    assert (rows["oracle"]["failed"], rows["oracle"]["rank"]) == (0, None)
    detail = await get(http, f"/api/runs/{run}")
    assert {name: row["vs_bound"] for name, row in detail["schedulers"].items()} == {
        name: row["vs_bound"] for name, row in rows.items()
    }
    assert [(meter["name"], meter["type"], meter["node"]) for meter in detail["meters"]][-3:] == [
        ("node-1/t4_0", "t4", "node-1"),
        ("node-0/cpu_0", "cpu", "node-0"),
        ("node-1/cpu_0", "cpu", "node-1"),
    ]
    page = await get(http, f"/api/runs/{run}/tasks", scheduler="gpu_only", status="failed")
    task = page["rows"][0]["task_id"]
    explained = (await get(http, f"/api/runs/{run}/tasks/{task}"))["results"]
    (failed,) = (row for row in explained if row["scheduler"] == "gpu_only")
    assert failed["explanation"].startswith("failed: all of it (")
    assert "it was charged as if it had run on the slowest device type" in failed["explanation"]


async def test_progress_is_exact_at_every_point_inside_batches_too(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """400 tasks in batches of 50; most points are not at the end of a batch."""
    await whole(arena, "greedy", "oracle")
    run = await completed(http)
    rows = arena.store.query(
        "SELECT time, turnaround, energy, cost FROM scheduler_results FINAL "
        "WHERE scheduler = 'greedy' ORDER BY task_id"
    )
    sums = {
        field: np.cumsum([row[field] for row in rows])
        for field in ("time", "turnaround", "energy", "cost")
    }
    # Coarse first: what is known of it is used again for the finer one.
    for points, expected in ((9, [64, 128, 192, 256, 320, 384, 400]), (500, [*range(1, 401)])):
        body = await get(http, f"/api/runs/{run}/progress", points=points)
        track = body["schedulers"]["greedy"]
        assert track["tasks"] == expected
        for field, sum_of in sums.items():
            wanted = [sum_of[tasks - 1] for tasks in expected]
            assert track[f"total_{field}"] == pytest.approx(wanted, rel=1e-9)
        assert body["schedulers"]["oracle"]["tasks"] == expected


def busy(rows: list[dict[str, Any]], name: str, start: float, end: float) -> float:
    """Seconds of a device between two moments, part by part. GPUs are devices 0 and 1, the CPUs are
    2 and 3 and take turns by task id."""
    kind, _, number = name.partition("_")
    return sum(
        max(
            0.0,
            min(row[f"{kind}_start"] + row[f"{kind}_time"], end) - max(row[f"{kind}_start"], start),
        )
        for row in rows
        if (row["device"] if kind == "gpu" else row["task_id"] % 2) == int(number)
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
    assert [(device["name"], device["type"]) for device in body["devices"]] == [
        ("gpu_0", "gpu"),
        ("gpu_1", "gpu"),
        ("cpu_0", "cpu"),
        ("cpu_1", "cpu"),
    ]
    for device in body["devices"]:
        whole_window = busy(rows, device["name"], body["start"], body["end"])
        assert device["utilization"] == pytest.approx(whole_window / 30, abs=1e-9)
        assert len(device["busy"]) == 30
        edges = np.linspace(body["start"], body["end"], 31)
        for (low, high), share in zip(itertools.pairwise(edges), device["busy"], strict=True):
            wanted = busy(rows, device["name"], float(low), float(high)) / (high - low)
            assert share == pytest.approx(wanted, abs=1e-6)
    assert body["average"] == pytest.approx(
        np.mean([device["utilization"] for device in body["devices"]])
    )
    for bad in ("seconds=0", "seconds=1e300", "seconds=nan"):
        assert_problem(await http.get(f"/api/runs/{run}/utilization?{bad}"), 422)
    assert_problem(await http.get(f"/api/runs/{run}/utilization?scheduler=other"), 404, "other")


async def test_wide_tasks_of_a_measured_platform_keep_all_their_devices_busy(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(arena, "gpu_only")
    curves = [
        {"kind": "gemm", "type": kind, "sizes": [100, 1000], "seconds": seconds}
        for kind, seconds in (("v100", [0.01, 0.4]), ("cpu", [0.1, 9]))
    ]
    cluster = {"devices": [{"type": "v100", "count": 4}, {"type": "cpu"}]}
    widths = [{"width": 1, "weight": 1}, {"width": 3, "weight": 1}]
    run = await completed(
        http,
        cluster=cluster,
        physics={"measured": curves},
        workload={"divisible": False, "widths": widths},
    )
    body = await get(http, f"/api/runs/{run}/utilization", seconds=3600)
    (stored,) = arena.store.query(
        "SELECT countIf(width = 3) AS wide, sum(width * ("
        "greatest(least(gpu_start + gpu_time, {end:Float64}) - gpu_start, 0) + "
        "greatest(least(cpu_start + cpu_time, {end:Float64}) - cpu_start, 0))) AS busy "
        "FROM (SELECT * FROM scheduler_results FINAL) AS r "
        "JOIN (SELECT * FROM tasks FINAL) AS t USING (task_id)",
        {"end": body["end"]},
    )
    assert 100 < stored["wide"] < 300
    shown = sum(device["utilization"] for device in body["devices"]) * body["end"]
    assert shown == pytest.approx(stored["busy"], rel=1e-6)
    (listed,) = await get(http, "/api/runs")
    assert "measured" not in listed["spec"]["physics"]
    detail = await get(http, f"/api/runs/{run}")
    assert [curve["type"] for curve in detail["spec"]["physics"]["measured"]] == ["v100", "cpu"]
    assert (await get(http, f"/api/runs/{run}/analysis"))["types"] == ["v100", "cpu"]


async def test_the_analysis_agrees_with_sql(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "cpu_only", "greedy", "oracle")
    run = await completed(http, tasks=600)
    body = await get(http, f"/api/runs/{run}/analysis", window=500, wins_by="time")
    store = arena.store
    assert body["window"] == {"first": 100, "last": 600, "tasks": 500}
    assert body["scheduler"] == "oracle"
    (wins,) = store.query(
        "SELECT avg(a.time - b.time > 1e-9) AS lost, avg(b.time - a.time > 1e-9) AS won, "
        "avg(b.turnaround - a.turnaround > 1e-9) AS sooner "
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
    default = (await get(http, f"/api/runs/{run}/analysis", window=500))["wins"]
    assert (body["wins"]["by"], default["by"]) == ("time", "turnaround")
    assert default["matrix"][row][column] == pytest.approx(wins["sooner"])
    assert_problem(await http.get(f"/api/runs/{run}/analysis?wins_by=energy"), 422)
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
        "SELECT sum(gpu_time) AS gpu, sum(cpu_time) AS cpu, countIf(gpu_time > 0) AS tasks, "
        "countIf(gpu_time > cpu_time) AS longest "
        "FROM scheduler_results FINAL WHERE scheduler = 'greedy' AND task_id >= 100"
    )
    assert body["split"]["greedy"] == {
        "gpu_time": pytest.approx(split["gpu"]),
        "cpu_time": pytest.approx(split["cpu"]),
        "gpu_tasks": split["tasks"],
        "tasks": 500,
        "failed": 0,
        "type_time": [pytest.approx(split["gpu"]), pytest.approx(split["cpu"])],
        "type_tasks": [split["longest"], 500 - split["longest"]],
    }
    greedy = await get(http, f"/api/runs/{run}/analysis", window=500, scheduler="greedy")
    found = [cell for line in greedy["heatmap"]["cells"] for cell in line if cell]
    on_gpu = sum(cell["tasks"] * cell["types"][0] for cell in found)
    assert on_gpu == pytest.approx(split["longest"], abs=0.1)
    points = {point["task_id"]: point["type"] for point in greedy["scatter"]}
    for row in store.query(
        "SELECT task_id, gpu_time > cpu_time AS longest FROM scheduler_results FINAL "
        "WHERE scheduler = 'greedy' AND task_id >= 300"
    ):
        assert points[row["task_id"]] == ("gpu" if row["longest"] else "cpu")
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
    assert (await get(http, f"/api/runs/{run}/tasks")) == {
        "rows": [],
        "next_before": None,
        "next_offset": None,
    }
    assert_problem(await http.get(f"/api/runs/{run}/utilization"), 404, "yet")
    assert_problem(await http.get(f"/api/runs/{run}/tasks/0"), 404, "task 0")
    for path in ("ranking", "progress", "utilization", "analysis", "tasks", "tasks/1"):
        assert_problem(await http.get(f"/api/runs/none/{path}"), 404, "no run 'none'")
