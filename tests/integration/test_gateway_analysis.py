"""The race in figures: every endpoint against an independent query, and that none reads a run."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from services.gateway.queries import Queries
from services.gateway.windows import Windows
from shared.events import Event
from shared.store.client import Store
from tests.integration import clickhouse_server
from tests.integration.arena import Arena, eventually
from tests.integration.conftest import settings_for
from tests.integration.test_gateway import assert_problem, serving, started, state_of, whole
from tests.integration.test_store import GRANULE, Reads

TASK = {"size": 1000, "compute_intensity": 0.5, "memory_required": 1600}


@pytest.fixture
async def http(full_arena: Arena) -> AsyncIterator[httpx.AsyncClient]:
    await full_arena.start("recorder")
    async with serving(full_arena.settings) as client:
        yield client


async def completed(http: httpx.AsyncClient, **spec: Any) -> str:
    run = await started(http, **{"pace": "max", "tasks": 400, **spec})
    await state_of(http, run, "completed")
    return run


async def get(http: httpx.AsyncClient, path: str, **parameters: Any) -> Any:
    answer = await http.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def means(store: Store) -> dict[str, dict[str, float]]:
    rows = store.query(
        "SELECT scheduler, avg(time) AS time, avg(energy) AS energy, avg(cost) AS cost "
        "FROM scheduler_results FINAL GROUP BY scheduler"
    )
    return {row["scheduler"]: row for row in rows}


async def test_the_ranking_is_that_of_the_stored_results(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    names = ("cpu_only", "gpu_only", "greedy", "oracle")
    await whole(full_arena, *names)
    run = await completed(http)
    found = await get(http, f"/api/runs/{run}/ranking", time=1, energy=0.5, cost=0.5)
    average = means(full_arena.store)
    assert found["weights"] == {"time": 1, "energy": 0.5, "cost": 0.5}
    for row in found["ranking"]:
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
    scores = [row["score"] for row in found["ranking"]]
    assert scores == sorted(scores)
    assert [row["rank"] for row in found["ranking"]] == [1, 2, 3, 4]
    by_time = await get(http, f"/api/runs/{run}/ranking")
    assert by_time["ranking"][0]["name"] == "oracle"
    assert by_time["ranking"][0]["score"] == 1
    assert_problem(await http.get(f"/api/runs/{run}/ranking?time=0"), 422, "above 0")
    for bad in ("time=-1", "cost=101", "energy=nan", "energy=inf", "time=x"):
        assert_problem(await http.get(f"/api/runs/{run}/ranking?{bad}"), 422)


async def test_progress_ends_with_the_newest_totals(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    """400 tasks in batches of 50 are 8 batches."""
    await whole(full_arena, "greedy", "oracle")
    run = await completed(http)
    found = await get(http, f"/api/runs/{run}/progress", points=500)
    track = found["schedulers"]["greedy"]
    (row,) = full_arena.store.query(
        "SELECT sum(time) AS time, sum(energy) AS energy, sum(cost) AS cost "
        "FROM scheduler_results FINAL WHERE scheduler = 'greedy'"
    )
    assert track["tasks"][-1] == 400
    assert track["total_time"][-1] == pytest.approx(row["time"], rel=1e-9)
    assert track["total_energy"][-1] == pytest.approx(row["energy"], rel=1e-9)
    assert track["total_cost"][-1] == pytest.approx(row["cost"], rel=1e-9)
    for tasks, total in zip(track["tasks"], track["total_time"], strict=True):
        (row,) = full_arena.store.query(
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
    full_arena: Arena, http: httpx.AsyncClient, rate: float
) -> None:
    """At 40 tasks a second the CPUs fall far behind: what runs now arrived long ago."""
    await whole(full_arena, "round_robin")
    run = await completed(
        http, tasks=2000, cluster={"cpus": 2, "gpus": 2}, workload={"arrival_rate": rate}
    )
    found = await get(http, f"/api/runs/{run}/utilization", scheduler="round_robin", seconds=30)
    (newest,) = full_arena.store.query("SELECT max(arrival_time) AS at FROM tasks")
    assert found["end"] == newest["at"]
    assert found["start"] == pytest.approx(newest["at"] - 30)
    assert found["step"] == pytest.approx(1)
    rows = full_arena.store.query("SELECT * FROM scheduler_results FINAL")
    assert [device["name"] for device in found["devices"]] == ["cpu_0", "cpu_1", "gpu_0", "gpu_1"]
    for device in found["devices"]:
        kind, number = device["name"].split("_")
        whole_window = busy(rows, kind, int(number), found["start"], found["end"])
        assert device["utilization"] == pytest.approx(whole_window / 30, abs=1e-9)
        assert len(device["busy"]) == 30
        edges = np.linspace(found["start"], found["end"], 31)
        for (low, high), share in zip(itertools.pairwise(edges), device["busy"], strict=True):
            wanted = busy(rows, kind, int(number), float(low), float(high)) / (high - low)
            assert share == pytest.approx(wanted, abs=1e-6)
    assert found["average"] == pytest.approx(
        np.mean([device["utilization"] for device in found["devices"]])
    )
    for bad in ("seconds=0", "seconds=3601", "seconds=nan"):
        assert_problem(await http.get(f"/api/runs/{run}/utilization?{bad}"), 422)
    assert_problem(await http.get(f"/api/runs/{run}/utilization?scheduler=other"), 404, "other")


async def test_the_analysis_agrees_with_sql(full_arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(full_arena, "cpu_only", "greedy", "oracle")
    run = await completed(http, tasks=600)
    found = await get(http, f"/api/runs/{run}/analysis", window=500)
    store = full_arena.store
    assert found["window"] == {"first": 100, "last": 600, "tasks": 500}
    assert found["scheduler"] == "oracle"
    (wins,) = store.query(
        "SELECT avg(a.time - b.time > 1e-9) AS lost, avg(b.time - a.time > 1e-9) AS won "
        "FROM (SELECT * FROM scheduler_results FINAL WHERE scheduler = 'cpu_only') AS a "
        "JOIN (SELECT * FROM scheduler_results FINAL WHERE scheduler = 'greedy') AS b "
        "USING (task_id) WHERE task_id >= 100"
    )
    names = found["wins"]["names"]
    row, column = names.index("cpu_only"), names.index("greedy")
    assert found["wins"]["matrix"][row][column] == pytest.approx(wins["won"])
    assert found["wins"]["matrix"][column][row] == pytest.approx(wins["lost"])
    assert found["wins"]["ties"][row][column] == pytest.approx(1 - wins["won"] - wins["lost"])
    assert found["wins"]["matrix"][row][row] is None
    (pearson,) = store.query(
        "SELECT corr(size, time) AS a, corr(compute_intensity, gpu_fraction) AS b, "
        "corr(energy, cost) AS c FROM "
        "(SELECT * FROM scheduler_results FINAL WHERE scheduler = 'oracle') AS r "
        "JOIN (SELECT * FROM tasks FINAL) AS t USING (task_id) WHERE task_id >= 100"
    )
    at = {name: place for place, name in enumerate(found["correlation"]["names"])}
    matrix = found["correlation"]["matrix"]
    assert matrix[at["size"]][at["time"]] == pytest.approx(pearson["a"])
    assert matrix[at["gpu_fraction"]][at["compute_intensity"]] == pytest.approx(pearson["b"])
    assert matrix[at["energy"]][at["cost"]] == pytest.approx(pearson["c"])
    (share,) = store.query(
        "SELECT avg(gpu_fraction) AS mean FROM scheduler_results FINAL "
        "WHERE scheduler = 'oracle' AND task_id >= 100"
    )
    cells = [cell for line in found["heatmap"]["cells"] for cell in line if cell]
    assert sum(cell["tasks"] for cell in cells) == sum(found["sizes"]["counts"]) == 500
    mean = sum(cell["tasks"] * cell["gpu_share"] for cell in cells) / 500
    assert mean == pytest.approx(share["mean"])
    (split,) = store.query(
        "SELECT sum(gpu_time) AS gpu, sum(cpu_time) AS cpu, countIf(gpu_time > 0) AS tasks "
        "FROM scheduler_results FINAL WHERE scheduler = 'greedy' AND task_id >= 100"
    )
    assert found["split"]["greedy"] == {
        "gpu_time": pytest.approx(split["gpu"]),
        "cpu_time": pytest.approx(split["cpu"]),
        "gpu_tasks": split["tasks"],
        "tasks": 500,
    }
    assert [point["task_id"] for point in found["scatter"]] == list(range(300, 600))
    other = await get(http, f"/api/runs/{run}/analysis", scheduler="cpu_only")
    assert {point["gpu_fraction"] for point in other["scatter"]} == {0.0}
    assert other["correlation"]["matrix"][at["gpu_fraction"]] == [None] * 7
    for bad in ("window=0", "window=10001"):
        assert_problem(await http.get(f"/api/runs/{run}/analysis?{bad}"), 422)


async def test_a_run_without_results_has_empty_figures(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    run = (await full_arena.run(schedulers=["greedy"], pace=1)).run
    assert (await get(http, f"/api/runs/{run}/ranking"))["ranking"] == []
    assert (await get(http, f"/api/runs/{run}/progress"))["schedulers"] == {}
    assert (await get(http, f"/api/runs/{run}/analysis"))["window"]["tasks"] == 0
    assert (await get(http, f"/api/runs/{run}/tasks")) == {"rows": [], "next_before": None}
    assert_problem(await http.get(f"/api/runs/{run}/utilization"), 404, "yet")
    assert_problem(await http.get(f"/api/runs/{run}/tasks/0"), 404, "task 0")
    for path in ("ranking", "progress", "utilization", "analysis", "tasks", "tasks/1"):
        assert_problem(await http.get(f"/api/runs/none/{path}"), 404, "no run 'none'")


async def test_tasks_are_paged_newest_first_without_gaps(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(full_arena, "greedy", "oracle")
    run = await completed(http, tasks=120)
    seen: list[tuple[int, str]] = []
    before: int | None = None
    while True:
        given = {} if before is None else {"before": before}
        page = await get(http, f"/api/runs/{run}/tasks", limit=50, **given)
        seen += [(row["task_id"], row["scheduler_name"]) for row in page["rows"]]
        before = page["next_before"]
        if before is None:
            break
    assert seen == [(task, name) for task in range(119, -1, -1) for name in ("greedy", "oracle")]
    page = await get(http, f"/api/runs/{run}/tasks", limit=3, scheduler="greedy", before=100)
    assert [row["task_id"] for row in page["rows"]] == [99, 98, 97]
    row = page["rows"][0]
    (stored,) = full_arena.store.query(
        "SELECT g.time AS time, g.wait AS wait, g.cost AS cost, g.time / o.time AS ratio, "
        "t.size AS size "
        "FROM (SELECT * FROM scheduler_results FINAL WHERE scheduler = 'greedy') AS g "
        "JOIN (SELECT * FROM scheduler_results FINAL WHERE scheduler = 'oracle') AS o "
        "ON g.task_id = o.task_id JOIN (SELECT * FROM tasks FINAL) AS t ON t.task_id = g.task_id "
        "WHERE g.task_id = 99"
    )
    assert (row["actual_time"], row["wait"], row["execution_cost"], row["size"]) == (
        stored["time"],
        stored["wait"],
        stored["cost"],
        stored["size"],
    )
    assert row["vs_oracle"] == pytest.approx(stored["ratio"])
    for bad in ("limit=0", "limit=501", "status=odd", "before=-1"):
        assert_problem(await http.get(f"/api/runs/{run}/tasks?{bad}"), 422)
    assert_problem(await http.get(f"/api/runs/{run}/tasks?scheduler=other"), 404)


async def test_failed_tasks_are_found_among_many(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(full_arena, "cpu_only", "gpu_only")
    run = await completed(http, tasks=1500, physics={"memory_policy": "fail"})
    failed = [
        row["task_id"]
        for row in full_arena.store.query(
            "SELECT task_id FROM scheduler_results FINAL WHERE status = 'failed' "
            "ORDER BY task_id DESC"
        )
    ]
    assert len(failed) > 4
    page = await get(http, f"/api/runs/{run}/tasks", status="failed", limit=3)
    assert [row["task_id"] for row in page["rows"]] == failed[:3]
    assert {row["status"] for row in page["rows"]} == {"failed"}
    assert {row["vs_oracle"] for row in page["rows"]} == {None}
    rest = await get(
        http, f"/api/runs/{run}/tasks", status="failed", limit=500, before=page["next_before"]
    )
    assert [row["task_id"] for row in rest["rows"]] == failed[3:]
    assert rest["next_before"] is None


async def test_one_task_is_explained(full_arena: Arena, http: httpx.AsyncClient) -> None:
    """1 s on the CPU; on a GPU 0.4 s of compute and 0.1 s of transfer."""
    await whole(full_arena, "cpu_only", "round_robin", "oracle")
    run = await started(http, pace=200)
    (task,) = (await http.post("/api/tasks", json=TASK)).json()["task_ids"]

    async def known() -> Any:
        answer = await http.get(f"/api/runs/{run}/tasks/{task}")
        return answer.json() if len(answer.json().get("results", [])) == 3 else None

    seen = await eventually(known)
    assert seen["task"]["size"] == 1000
    assert seen["physics"]["cpu_seconds"] == pytest.approx(1)
    assert seen["physics"]["gpu_seconds"] == pytest.approx(0.5)
    assert (seen["physics"]["best_share"], seen["physics"]["fits_gpu_memory"]) == (1, True)
    rows = {row["scheduler_name"]: row for row in seen["results"]}
    assert rows["oracle"]["actual_time"] == pytest.approx(0.5)
    assert "no share is faster" in rows["oracle"]["explanation"]
    assert rows["cpu_only"]["vs_oracle"] == pytest.approx(2)
    assert rows["cpu_only"]["explanation"].startswith("all of it ran on the CPU: 1 s")
    assert rows["cpu_only"]["explanation"].endswith(
        "the Oracle's share of 100 % would have taken 500 ms"
    )
    stored = full_arena.store.query(
        "SELECT gpu_start, cpu_start, finish, cost_electricity FROM scheduler_results FINAL "
        "WHERE scheduler = 'oracle' AND task_id = {t:Int64}",
        {"t": task},
    )
    assert {key: rows["oracle"][key] for key in stored[0]} == stored[0]
    assert_problem(await http.get(f"/api/runs/{run}/tasks/999999999"), 404)
    assert_problem(await http.get(f"/api/runs/{run}/tasks/-1"), 422)
    assert_problem(await http.get(f"/api/runs/{run}/tasks/many"), 422)


async def test_events_are_paged_newest_first(full_arena: Arena, http: httpx.AsyncClient) -> None:
    for number in range(7):
        run, kind = ("one", "model") if number % 2 else ("other", "run")
        note = Event(
            kind=kind,
            service="test",
            run=run,
            message=f"{number}",
            at=2e9 + number,
            data={"n": number},
        )
        await full_arena.bus.tell(note, message_id=f"test.{number}")

    async def stored() -> bool:
        found = await get(http, "/api/events", limit=7)
        return [event["service"] for event in found["events"]] == ["test"] * 7

    await eventually(stored)
    first = await get(http, "/api/events", limit=3)
    assert [event["message"] for event in first["events"]] == ["6", "5", "4"]
    assert first["events"][0]["at"] == 2e9 + 6
    assert first["events"][0]["data"] == {"n": 6}
    second = await get(http, "/api/events", limit=3, before=first["next_before"])
    assert [event["message"] for event in second["events"]] == ["3", "2", "1"]
    of_run = await get(http, "/api/events", run="one")
    assert [event["message"] for event in of_run["events"]] == ["5", "3", "1"]
    assert of_run["next_before"] is None
    of_kind = await get(http, "/api/events", kind="run", limit=2)
    assert [event["message"] for event in of_kind["events"]] == ["6", "4"]
    assert (await get(http, "/api/events", before=10**15))["events"] == []
    assert_problem(await http.get("/api/events?limit=1001"), 422)


async def test_runs_are_paged(full_arena: Arena, http: httpx.AsyncClient) -> None:
    made = [(await full_arena.run(schedulers=["greedy"], pace=1)).run for _ in range(5)]
    first = await get(http, "/api/runs", limit=2)
    assert [run["run"] for run in first] == [made[4], made[3]]
    rest = await get(http, "/api/runs", before=made[3])
    assert [run["run"] for run in rest] == [made[2], made[1], made[0]]
    assert_problem(await http.get("/api/runs?before=none"), 404)


async def test_a_spec_is_checked_without_starting_it(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    empty = (await http.post("/api/runs/check", json={})).json()
    assert empty["ok"] is False
    assert "deploy at least one worker" in empty["problems"][0]
    await full_arena.schedulers("greedy", "oracle")
    good = (await http.post("/api/runs/check", json={"seed": 9})).json()
    assert (good["ok"], good["problems"]) == (True, [])
    assert (good["spec"]["seed"], good["spec"]["pace"]) == (9, 20)
    assert good["spec"]["schedulers"] == ["greedy", "oracle"]
    bad = (await http.post("/api/runs/check", json={"seed": -1, "pice": 3})).json()
    assert (bad["ok"], bad["spec"]) == (False, None)
    assert {line.partition(":")[0] for line in bad["problems"]} == {"seed", "pice"}
    missing = (await http.post("/api/runs/check", json={"schedulers": ["mine"]})).json()
    assert missing["problems"] == ["schedulers: mine not deployed; deployed: greedy, oracle"]
    assert await get(http, "/api/runs") == []


async def test_what_a_page_asks_first(full_arena: Arena, http: httpx.AsyncClient) -> None:
    await full_arena.schedulers("greedy", "greedy", "oracle")
    found = {row["name"]: row["deployed"] for row in await get(http, "/api/schedulers")}
    assert found == {"greedy": 2, "oracle": 1}
    presets = {row["name"]: row["description"] for row in await get(http, "/api/presets")}
    assert presets["readme"] == "sizes 500 to 1500; intensity 0.1 to 0.9; memory 50 to 150 MB"
    assert set(presets) == {"hpc", "documented", "readme", "gpu_friendly", "cpu_friendly"}
    schema = await get(http, "/api/spec/schema")
    assert schema["properties"]["seed"]["default"] == 42
    config = await get(http, "/api/config")
    assert config["token_required"] is False
    assert config["version"]


async def test_every_answer_is_described(http: httpx.AsyncClient) -> None:
    described = await get(http, "/openapi.json")
    for path, methods in described["paths"].items():
        for method, said in methods.items():
            assert said.get("description"), f"{method} {path}"
            assert "application/problem+json" in said["responses"]["default"]["content"]
            for answer in said["responses"].values():
                schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
                name = (schema.get("items") or schema).get("$ref", "").rpartition("/")[2]
                shape = described["components"]["schemas"].get(name, {"example": {}})
                assert "example" in shape or name == "Manifest", f"{method} {path}: {name}"


class ReadsTables(Reads):
    """Also what is read as columns; the driver tells how much only of rows."""

    def table(self, sql: str, parameters: Any = None) -> pa.Table:
        self.query(sql, parameters)
        return super().table(sql, parameters)


@pytest.fixture(scope="module")
def runs(clickhouse: clickhouse_server.Server) -> Iterator[ReadsTables]:
    """Runs of 1,000 and 1,000,000 tasks, two schedulers, a batch for every 10 tasks."""
    store = ReadsTables(settings_for("nats://127.0.0.1:1", clickhouse.url))
    store.migrate()
    for run, tasks in (("short", 1000), ("long", 1_000_000)):
        for scheduler in ("greedy", "oracle"):
            store.command(
                "INSERT INTO standings (run, scheduler, batch, tasks, total_time, clock, cpu_busy, "
                f"gpu_busy) SELECT '{run}', '{scheduler}', number, (number + 1) * 10, number, "
                f"number * 2.5, [number], [number] FROM numbers({tasks // 10})"
            )
            store.command(
                "INSERT INTO scheduler_results (run, scheduler, batch, task_id, time, status, "
                "gpu_start, cpu_start, cpu_time, finish) "
                f"SELECT '{run}', '{scheduler}', intDiv(number, 10), number, 0.1, 'ok', "
                f"number / 4, number / 4, 0.1, number / 4 + 0.1 FROM numbers({tasks})"
            )
        store.command(
            "INSERT INTO tasks (run, task_id, size, compute_intensity, memory_required) "
            f"SELECT '{run}', number, number + 1, 0.5, 10 FROM numbers({tasks})"
        )
    for table in ("standings", "scheduler_results", "tasks"):
        store.command(f"OPTIMIZE TABLE {table} FINAL")
    yield store
    store.close()


BOTH = ["greedy", "oracle"]


def looks(windows: Windows, queries: Queries, run: str) -> dict[str, int]:
    """Everything that a watched dashboard asks, and how many rows came of it."""
    first, last = windows.common(run, BOTH, 500)
    end = queries.newest_standings(run, ["greedy"])["greedy"]["clock"]
    return {
        "results": windows.results(run, BOTH, first, last).num_rows,
        "features": windows.features(run, first, last).num_rows,
        "progress": len(windows.progress(run, BOTH, 10)["greedy"]),
        "parts": windows.parts(run, "greedy", end - 20, end).num_rows,
        "page": len(windows.page(run, BOTH, BOTH, None, 50, None)[0]),
        "before": len(queries.busy_before(run, {"greedy": (90, 100.0), "oracle": (90, 100.0)})),
        "task": len(queries.results_of_task(run, BOTH, 990)),
    }


def test_a_look_costs_the_same_after_a_million_tasks(runs: ReadsTables) -> None:
    queries = Queries(runs)
    windows = Windows(runs, queries)
    looks(windows, queries, "short")
    runs.read_rows.clear()
    found = looks(windows, queries, "long")
    assert found == {
        "results": 1000,
        "features": 500,
        "progress": 10,
        "parts": 2480,  # four a second for 20 seconds and the longest part before them
        "page": 100,
        "before": 2,
        "task": 2,
    }
    # Of 2,000,000 results, 1,000,000 tasks and 200,000 standings each query reads a granule or two
    # of each scheduler; progress one for each of its ten points.
    assert len(runs.read_rows) == 13
    *others, progress = sorted(runs.read_rows)
    assert max(others) <= 4 * GRANULE
    assert progress <= 2 * 11 * GRANULE
