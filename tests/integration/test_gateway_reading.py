"""Tasks, events and runs page by page; checking a spec; what is deployed."""

from __future__ import annotations

import csv
import io
from typing import Any

import httpx
import pytest

from shared.messages.events import Event
from tests.integration.arena import Arena, eventually
from tests.integration.gateway import assert_problem, completed, get, started, whole

TASK = {"size": 1000, "compute_intensity": 0.5, "memory_required": 1600}


async def test_tasks_are_paged_newest_first_without_gaps(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(arena, "greedy", "oracle")
    run = await completed(http, tasks=120)
    detail: list[tuple[int, str]] = []
    before: int | None = None
    while True:
        parameters = {} if before is None else {"before": before}
        page = await get(http, f"/api/runs/{run}/tasks", limit=50, **parameters)
        detail += [(row["task_id"], row["scheduler_name"]) for row in page["rows"]]
        before = page["next_before"]
        if before is None:
            break
    assert detail == [(task, name) for task in range(119, -1, -1) for name in ("greedy", "oracle")]
    page = await get(http, f"/api/runs/{run}/tasks", limit=3, scheduler="greedy", before=100)
    assert [row["task_id"] for row in page["rows"]] == [99, 98, 97]
    row = page["rows"][0]
    (stored,) = arena.store.query(
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


async def test_a_sorted_ledger_covers_the_whole_run(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "greedy", "oracle")
    run = await completed(http)
    both = arena.store.query(
        "SELECT r.wait AS wait, t.size AS size, r.time / o.time AS vs_oracle "
        "FROM (SELECT * FROM scheduler_results FINAL) AS r "
        "JOIN (SELECT * FROM tasks FINAL) AS t USING (task_id) "
        "JOIN (SELECT * FROM scheduler_results FINAL WHERE scheduler = 'oracle') AS o "
        "USING (task_id)"
    )
    for column in ("wait", "size", "vs_oracle"):
        shown: list[float] = []
        offset: int | None = 0
        while offset is not None:
            body = await get(
                http,
                f"/api/runs/{run}/tasks",
                sort=column,
                descending=True,
                limit=300,
                offset=offset,
            )
            shown += [row[column] for row in body["rows"]]
            offset = body["next_offset"]
        expected = sorted((row[column] for row in both), reverse=True)
        assert shown == pytest.approx(expected, rel=1e-9)
    own = await get(http, f"/api/runs/{run}/tasks", sort="time", scheduler="greedy", limit=5)
    assert {row["scheduler_name"] for row in own["rows"]} == {"greedy"}
    assert_problem(await http.get(f"/api/runs/{run}/tasks?sort=1"), 422)


async def test_the_ledger_is_exported_with_every_row(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "greedy", "oracle")
    run = await completed(http)
    answer = await http.get(f"/api/runs/{run}/ledger.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 800
    (stored,) = arena.store.query("SELECT sum(turnaround) AS t FROM scheduler_results FINAL")
    assert sum(float(row["turnaround"]) for row in rows) == pytest.approx(stored["t"], rel=1e-9)
    assert {row["scheduler"] for row in rows} == {"greedy", "oracle"}
    assert all(float(row["size"]) > 0 for row in rows)


async def test_failed_tasks_are_found_among_many(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "cpu_only", "gpu_only")
    run = await completed(http, tasks=1500, physics={"memory_policy": "fail"})
    failed = [
        row["task_id"]
        for row in arena.store.query(
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


async def test_one_task_is_explained(arena: Arena, http: httpx.AsyncClient) -> None:
    """1 s on the CPU; on a GPU 0.4 s of compute and 0.1 s of transfer."""
    await whole(arena, "cpu_only", "round_robin", "oracle")
    run = await started(http, pace=200)
    (task,) = (await http.post("/api/tasks", json=TASK)).json()["task_ids"]

    async def known() -> Any:
        answer = await http.get(f"/api/runs/{run}/tasks/{task}")
        return answer.json() if len(answer.json().get("results", [])) == 3 else None

    detail = await eventually(known)
    assert detail["task"]["size"] == 1000
    assert detail["physics"]["cpu_seconds"] == pytest.approx(1)
    assert detail["physics"]["gpu_seconds"] == pytest.approx(0.5)
    assert (detail["physics"]["best_share"], detail["physics"]["fits_gpu_memory"]) == (1, True)
    rows = {row["scheduler_name"]: row for row in detail["results"]}
    assert rows["oracle"]["actual_time"] == pytest.approx(0.5)
    assert "no decision is faster" in rows["oracle"]["explanation"]
    assert rows["cpu_only"]["vs_oracle"] == pytest.approx(2)
    assert rows["cpu_only"]["explanation"].startswith("all of it ran on cpu_0: 1 s")
    assert rows["cpu_only"]["explanation"].endswith(
        f"the Oracle's decision, all of it on gpu_{task % 4}, would have taken 500 ms"
    )
    stored = arena.store.query(
        "SELECT gpu_start, cpu_start, finish, cost_electricity FROM scheduler_results FINAL "
        "WHERE scheduler = 'oracle' AND task_id = {t:Int64}",
        {"t": task},
    )
    assert {key: rows["oracle"][key] for key in stored[0]} == stored[0]
    assert_problem(await http.get(f"/api/runs/{run}/tasks/999999999"), 404)
    assert_problem(await http.get(f"/api/runs/{run}/tasks/-1"), 422)
    assert_problem(await http.get(f"/api/runs/{run}/tasks/many"), 422)


async def test_events_are_paged_newest_first(arena: Arena, http: httpx.AsyncClient) -> None:
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
        await arena.bus.publish_event(note, message_id=f"test.{number}")
    await eventually(
        lambda: get(http, "/api/events", limit=7),
        accept=lambda body: [event["service"] for event in body["events"]] == ["test"] * 7,
    )
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


async def test_runs_are_paged(arena: Arena, http: httpx.AsyncClient) -> None:
    made = [(await arena.run(schedulers=["greedy"], pace=1)).run for _ in range(5)]
    first = await get(http, "/api/runs", limit=2)
    assert [run["run"] for run in first] == [made[4], made[3]]
    rest = await get(http, "/api/runs", before=made[3])
    assert [run["run"] for run in rest] == [made[2], made[1], made[0]]
    assert_problem(await http.get("/api/runs?before=none"), 404)


async def test_runs_are_found_by_what_people_wrote_about_them(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await arena.schedulers("greedy")
    first = await started(http, name="Friday", workload={"preset": "readme"})
    second = await started(http)
    written = {"tags": ["paper", " paper ", "Figure 2"], "notes": "the GPU was slow"}
    answer = await http.put(f"/api/runs/{second}/notes", json=written)
    assert (answer.json()["tags"], answer.json()["notes"]) == (
        ["paper", "Figure 2"],
        "the GPU was slow",
    )

    async def found(search: str) -> list[str]:
        return [row["run"] for row in await get(http, "/api/runs", search=search)]

    assert await found("figure SLOW") == [second]
    assert await found("friday") == await found("readme running") == [first]
    assert await found("") == [second, first]
    assert await found("friday paper") == []
    # A later change of the state keeps them.
    await http.post("/api/simulation/stop", params={"run": second})
    assert (await get(http, f"/api/runs/{second}"))["tags"] == ["paper", "Figure 2"]
    assert_problem(await http.put("/api/runs/nobody/notes", json=written), 404)
    assert_problem(await http.put(f"/api/runs/{first}/notes", json={"tags": [""]}), 422)


async def test_a_run_has_its_load(arena: Arena, http: httpx.AsyncClient) -> None:
    """Twice the tasks in the same time are twice the load."""
    await arena.schedulers("greedy")
    loads = []
    for rate in (4, 8):
        run = await started(http, tasks=2000, workload={"arrival_rate": rate})
        loads.append((await get(http, f"/api/runs/{run}"))["load"])
    assert loads[1] == pytest.approx(2 * loads[0], rel=1e-6)
    assert 0.05 < loads[0] < 5


async def test_a_spec_is_checked_without_starting_it(arena: Arena, http: httpx.AsyncClient) -> None:
    empty = (await http.post("/api/runs/check", json={})).json()
    assert empty["ok"] is False
    assert "deploy at least one worker" in empty["problems"][0]
    await arena.schedulers("greedy", "oracle")
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


async def test_schedulers_presets_schema_and_config(arena: Arena, http: httpx.AsyncClient) -> None:
    await arena.schedulers("greedy", "greedy", "oracle")
    body = {row["name"]: row["deployed"] for row in await get(http, "/api/schedulers")}
    assert body == {"greedy": 2, "oracle": 1}
    presets = {row["name"]: row["description"] for row in await get(http, "/api/presets")}
    assert presets["readme"] == (
        "sizes 500 to 1500; intensity 0.1 to 0.9; memory 50 to 150 MB; 4 tasks/s"
    )
    assert set(presets) == {"hpc", "documented", "readme", "gpu_friendly", "cpu_friendly"}
    platforms = {row["name"]: row for row in await get(http, "/api/platforms")}
    assert set(platforms) == {"seeds", "workstation", "dgx", "rack"}
    assert platforms["dgx"]["sources"]
    assert platforms["dgx"]["spec"]["cluster"]["devices"][0]["type"] == "h100"
    schema = await get(http, "/api/spec/schema")
    assert schema["properties"]["seed"]["default"] == 42
    config = await get(http, "/api/config")
    assert config["token_required"] is False
    assert config["version"]


async def test_every_response_is_described(http: httpx.AsyncClient) -> None:
    described = await get(http, "/openapi.json")
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert operation.get("description"), f"{method} {path}"
            assert "application/problem+json" in operation["responses"]["default"]["content"]
