"""The gateway over real HTTP, with the other services behind it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

import services.gateway.app
from shared import subjects
from shared.runs import RunState
from shared.settings import Settings
from tests.integration.arena import Arena, eventually, unchanged

TASK = {"size": 960, "compute_intensity": 0.75, "memory_required": 81}


class Server(uvicorn.Server):
    """Leaves the test runner's signal handlers alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    # Whether somebody built a dashboard beside the source must not decide a test.
    folder = settings.dashboard_dir or Path("no dashboard")
    _, app = services.gateway.app.make(settings.model_copy(update={"dashboard_dir": folder}))
    server = Server(uvicorn.Config(app, log_config=None, lifespan="on"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        work = asyncio.create_task(server.serve(sockets=[listening]))

        async def started() -> bool:
            return server.started or work.done()

        await eventually(started)
        try:
            address = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=address, timeout=30) as client:
                yield client
        finally:
            server.should_exit = True
            await work


@pytest.fixture
async def http(full_arena: Arena) -> AsyncIterator[httpx.AsyncClient]:
    """A gateway with a recorder behind it; workers as the test starts them."""
    await full_arena.start("recorder")
    async with serving(full_arena.settings) as client:
        yield client


async def whole(arena: Arena, *policies: str) -> None:
    await arena.schedulers(*policies)
    await arena.start("simulator")
    await arena.start("generator")


async def started(http: httpx.AsyncClient, **spec: Any) -> str:
    answer = await http.post("/api/runs", json=spec)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["run"])


async def state_of(http: httpx.AsyncClient, run: str, state: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = (await http.get(f"/api/runs/{run}")).json()
        return found if found["state"] == state else None

    return dict(await eventually(look, f"run {run} {state}"))


def assert_problem(answer: httpx.Response, status: int, *said: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["title"]
    for text in said:
        assert text in body["detail"]
    return body


async def test_health_names_what_is_missing(full_arena: Arena, http: httpx.AsyncClient) -> None:
    answer = await http.get("/api/health")
    health = answer.json()
    assert (answer.status_code, health["status"]) == (503, "degraded")
    assert health["missing"] == ["generator", "simulator"]
    assert health["nats"]["ok"]
    assert health["clickhouse"] == {"ok": True, "problem": None}
    await whole(full_arena, "greedy")
    await full_arena.run(schedulers=["greedy", "oracle"], pace=1)
    answer = await http.get("/api/health")
    assert (answer.status_code, answer.json()["missing"]) == (503, ["scheduler oracle"])
    await full_arena.schedulers("oracle")
    answer = await http.get("/api/health")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    present = [(report["service"], report["scheduler"]) for report in answer.json()["services"]]
    assert present == [
        ("gateway", ""),
        ("generator", ""),
        ("recorder", ""),
        ("scheduler", "greedy"),
        ("scheduler", "oracle"),
        ("simulator", ""),
    ]
    assert (await http.get("/health")).status_code == 200


async def test_without_clickhouse_the_gateway_says_so(arena: Arena) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(schedulers=["greedy"], pace=1)
    async with serving(arena.settings) as http:
        answer = await http.get("/api/health")
        health = answer.json()
        assert (answer.status_code, health["clickhouse"]["ok"]) == (503, False)
        assert health["clickhouse"]["problem"]
        for path in (f"/api/runs/{run.run}", "/api/status", "/api/full_history"):
            assert_problem(await http.get(path), 503)
        # What needs no store works.
        answer = await http.post("/api/pause")
        assert (answer.status_code, answer.json()["state"]) == (200, "paused")


async def test_an_arena_without_runs(http: httpx.AsyncClient) -> None:
    assert (await http.get("/")).json()["status"] == "online"
    assert (await http.get("/api/runs")).json() == []
    status = (await http.get("/api/status")).json()
    assert (status["is_running"], status["tasks_processed"], status["run"]) == (False, 0, None)
    for path in ("/api/full_history", "/api/history/comparative", "/api/models"):
        assert (await http.get(path)).json() == []
    assert (await http.delete("/api/history")).json() == {"runs": 0}
    for verb in ("pause", "resume", "stop"):
        assert_problem(await http.post(f"/api/simulation/{verb}"), 404, "no active run")
    assert_problem(await http.post("/api/tasks", json=TASK), 404, "no active run")


async def test_a_run_from_start_to_end(full_arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(full_arena, "greedy", "oracle")
    run = await started(http, tasks=400, pace="max", name="all deployed", seed=7)
    done = await state_of(http, run, "completed")
    assert done["spec"]["schedulers"] == ["greedy", "oracle"]  # all that are deployed
    assert (done["name"], done["tasks"]) == ("all deployed", 400)
    greedy, oracle = done["schedulers"]["greedy"], done["schedulers"]["oracle"]
    assert greedy["results"] == oracle["results"] == 400
    assert oracle["vs_oracle"] == 1
    assert greedy["vs_oracle"] == pytest.approx(greedy["total_time"] / oracle["total_time"])
    assert greedy["vs_oracle"] > 1
    (row,) = full_arena.store.query(
        "SELECT sum(time) AS time, avg(wait) AS wait, avg(energy) AS energy, avg(cost) AS cost "
        "FROM scheduler_results FINAL WHERE scheduler = 'greedy'"
    )
    assert greedy["total_time"] == pytest.approx(row["time"], rel=1e-9)
    assert greedy["avg_time"] == pytest.approx(row["time"] / 400, rel=1e-9)
    assert greedy["avg_wait"] == pytest.approx(row["wait"], rel=1e-9)
    assert greedy["avg_energy"] == pytest.approx(row["energy"], rel=1e-9)
    assert greedy["avg_cost"] == pytest.approx(row["cost"], rel=1e-9)
    for path in ("/api/status", "/api/simulation/status"):
        status = (await http.get(path)).json()
        assert (status["run"], status["state"], status["is_running"]) == (run, "completed", False)
        assert status["tasks_processed"] == 400
    assert [found["run"] for found in (await http.get("/api/runs")).json()] == [run]


async def test_pause_resume_and_stop(full_arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(full_arena, "greedy")
    run = await started(http, pace=500)
    arena_run = await full_arena.runs.get(run)

    async def sent() -> int:
        return await full_arena.tasks_sent(arena_run)

    await eventually(sent)
    for prefix in ("/api", "/api/simulation"):
        answer = await http.post(f"{prefix}/pause")
        assert (answer.json()["run"], answer.json()["state"]) == (run, "paused")
        held = await unchanged(sent, seconds=0.3)
        answer = await http.post(f"{prefix}/resume", params={"run": run})
        assert answer.json()["state"] == "running"

        async def more(than: int = held) -> bool:
            return await sent() > than

        await eventually(more)
    assert (await http.get("/api/status")).json()["is_running"]
    answer = await http.post("/api/simulation/stop")
    assert answer.json()["state"] == "stopped"
    assert_problem(
        await http.post("/api/resume", params={"run": run}), 409, "is stopped", "running"
    )
    assert_problem(await http.post("/api/tasks", json={"run": run, "tasks": [TASK]}), 409, run)
    assert_problem(await http.post("/api/pause"), 404, "no active run")


@pytest.mark.parametrize("run", ["none", "A%20b", "a.b", "%2e%2e", "x" * 65])
async def test_an_unknown_run_is_a_404(
    full_arena: Arena, http: httpx.AsyncClient, run: str
) -> None:
    assert_problem(await http.get(f"/api/runs/{run}"), 404)
    if len(run) <= 64:
        for path in ("/api/status", "/api/full_history", "/api/history/comparative"):
            assert_problem(await http.get(f"{path}?run={run}"), 404, "no run")
        assert_problem(await http.post(f"/api/pause?run={run}"), 404, "no run")
    answer = await http.post("/api/tasks", json={"run": "none", "tasks": [TASK]})
    assert_problem(answer, 404, "no run 'none'")


async def test_an_unknown_path_or_method_is_a_problem_too(http: httpx.AsyncClient) -> None:
    assert_problem(await http.get("/api/nothing"), 404)
    assert_problem(await http.put("/api/runs", json={}), 405)


async def test_a_bad_spec_is_a_422_that_names_every_field(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    await full_arena.schedulers("greedy")
    bad = {"tasks": -1, "sed": 3, "physics": {"split": "sideways"}, "pace": "fast"}
    problem = assert_problem(await http.post("/api/runs", json=bad), 422)
    said = {line.partition(":")[0] for line in problem["problems"]}
    assert said == {"tasks", "sed", "physics.split", "pace"}
    assert "did you mean seed?" in problem["detail"]
    missing = await http.post("/api/simulation/start", json={"schedulers": ["greedy", "mine"]})
    assert_problem(missing, 422, "schedulers: mine not deployed; deployed: greedy")
    assert_problem(await http.post("/api/runs", json=[1]), 422, "mapping")
    malformed = await http.post(
        "/api/runs", content=b'{"tasks": ', headers={"content-type": "application/json"}
    )
    assert_problem(malformed, 422)
    assert (await http.get("/api/runs")).json() == []


async def test_without_workers_a_run_cannot_start(http: httpx.AsyncClient) -> None:
    assert_problem(await http.post("/api/runs"), 503, "deploy at least one worker")


async def test_an_empty_body_starts_the_default_run(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    await full_arena.schedulers("greedy")
    answer = await http.post("/api/simulation/start")
    assert answer.status_code == 201
    assert (answer.json()["spec"]["pace"], answer.json()["spec"]["tasks"]) == (20, None)


async def test_submitted_tasks_get_results_from_every_scheduler(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    """1 alone, then 3 in one body: (960/1000)^1.5 / (0.75 + 0.5) is 0.752 s on the CPU."""
    await whole(full_arena, "cpu_only", "gpu_only")
    run = await started(http, pace=300)
    one = await http.post("/api/tasks", json=TASK)
    assert one.status_code == 202, one.text
    (first,) = one.json()["task_ids"]
    given = [TASK, {**TASK, "arrival_time": 3.5}, {**TASK, "dependencies": [first]}]
    many = await http.post("/api/tasks", json={"run": run, "tasks": given})
    assert many.status_code == 202, many.text
    ids = many.json()["task_ids"]
    assert ids == list(range(ids[0], ids[0] + 3))
    wanted = [first, *ids]

    async def results() -> list[dict[str, Any]] | None:
        rows = full_arena.store.query(
            "SELECT scheduler, task_id, time FROM scheduler_results FINAL "
            "WHERE task_id IN {ids:Array(Int64)} ORDER BY scheduler, task_id",
            {"ids": wanted},
        )
        return rows if len(rows) == 8 else None

    async def tasks() -> list[dict[str, Any]] | None:
        rows = full_arena.store.query(
            "SELECT task_id, arrival_time, dependencies FROM tasks FINAL "
            "WHERE task_id IN {ids:Array(Int64)} ORDER BY task_id",
            {"ids": wanted},
        )
        return rows if len(rows) == 4 else None

    rows = await eventually(results)
    on_cpu = 0.96**1.5 / 1.25
    on_gpu = on_cpu / 3.25 + 81 / 16000
    assert [(row["scheduler"], row["task_id"]) for row in rows] == [
        (name, number) for name in ("cpu_only", "gpu_only") for number in wanted
    ]
    assert [row["time"] for row in rows] == pytest.approx([on_cpu] * 4 + [on_gpu] * 4)
    stored = await eventually(tasks)
    assert stored[2]["arrival_time"] == 3.5
    assert stored[3]["dependencies"] == [first]


async def test_tasks_that_many_submit_at_once_are_all_accepted_once(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    """While the generator sends its own: nobody's tasks take the place of another's."""
    await whole(full_arena, "greedy")
    run = await started(http, tasks=1000, pace=1000)
    sizes = [1000.0 + number for number in range(40)]
    answers = await asyncio.gather(
        *(http.post("/api/tasks", json={**TASK, "size": size}) for size in sizes)
    )
    assert [answer.status_code for answer in answers] == [202] * 40
    ids = {answer.json()["task_ids"][0]: size for answer, size in zip(answers, sizes, strict=True)}
    assert len(ids) == 40
    await state_of(http, run, "completed")
    stored = full_arena.store.query(
        "SELECT task_id, size FROM tasks FINAL WHERE memory_required = 81 AND size >= 1000"
    )
    assert {row["task_id"]: row["size"] for row in stored} == ids
    (row,) = full_arena.store.query(
        "SELECT count() AS n, max(task_id) AS last FROM scheduler_results FINAL"
    )
    assert row == {"n": 1040, "last": 1039}


BAD_TASKS: dict[str, tuple[bytes | dict[str, Any] | list[Any], str]] = {
    "nan": (b'{"size": NaN, "compute_intensity": 0.5, "memory_required": 1}', "size"),
    "nan intensity": (
        b'{"size": 1, "compute_intensity": NaN, "memory_required": 1}',
        "compute_intensity",
    ),
    "infinite": (b'{"size": 1, "compute_intensity": 0, "memory_required": 1e999}', "memory"),
    "negative": ({**TASK, "size": -3}, "size"),
    "zero": ({**TASK, "size": 0}, "size"),
    "intensity": ({**TASK, "compute_intensity": 2}, "compute_intensity"),
    "unknown field": ({**TASK, "colour": "red"}, "colour"),
    "wrong type": ({**TASK, "size": "large"}, "size"),
    "missing": ({"size": 1}, "memory_required"),
    "late parent": ({**TASK, "dependencies": [10**12]}, "dependencies"),
    "negative parent": ({**TASK, "dependencies": [-1]}, "dependencies"),
    "huge parent": ({**TASK, "dependencies": [10**30]}, "dependencies"),
    "own child": ({"tasks": [{**TASK, "dependencies": [10**9]}]}, "dependencies"),
    "empty list": ({"tasks": []}, "tasks"),
    "too many": ({"tasks": [TASK] * 2001}, "tasks"),
    "one of many": ({"tasks": [TASK, {**TASK, "size": -1}]}, "tasks.1.size"),
    "a list": ([TASK], ""),
    "a number": (b"3", ""),
    "null": (b"null", ""),
    "nothing": (b"", ""),
    "malformed": (b'{"size": 1, ', ""),
    "not text": (b"\xff\xfe\x00", ""),
    "deep": (b"[" * 100_000, ""),
}


async def test_bad_tasks_are_refused_with_a_reason_and_the_arena_goes_on(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(full_arena, "greedy")
    run = await started(http, pace=300)
    for name, (body, field) in BAD_TASKS.items():
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await http.post(
            "/api/tasks", content=content, headers={"content-type": "application/json"}
        )
        assert answer.status_code in (400, 422), f"{name}: {answer.status_code} {answer.text}"
        problem = assert_problem(answer, answer.status_code)
        assert field in problem["detail"], name
        assert len(problem["detail"]) < 1000, name
    accepted = await http.post("/api/tasks", json=TASK)
    assert accepted.status_code == 202
    (number,) = accepted.json()["task_ids"]

    async def result() -> list[dict[str, Any]]:
        return full_arena.store.query(
            "SELECT 1 AS one FROM scheduler_results WHERE task_id = {id:Int64}", {"id": number}
        )

    await eventually(result)
    assert (await http.get(f"/api/runs/{run}")).json()["state"] == "running"
    assert await full_arena.dead_letters() == []


async def test_a_refused_task_says_what_is_wrong_with_it_and_nothing_else(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    """A single task is not blamed for lacking what a list of tasks has, nor the other way."""
    await full_arena.schedulers("greedy")
    await started(http, pace=1)
    single = await http.post("/api/tasks", json={**TASK, "size": -3})
    assert assert_problem(single, 422)["problems"] == [
        "size: Input should be greater than 0 (got -3)"
    ]
    many = await http.post("/api/tasks", json={"tasks": [TASK, {**TASK, "compute_intensity": 2}]})
    assert assert_problem(many, 422)["problems"] == [
        "tasks.1.compute_intensity: Input should be less than or equal to 1 (got 2)"
    ]


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_of_50_mb_is_refused(
    full_arena: Arena, http: httpx.AsyncClient, announced: bool
) -> None:
    piece = b"[" * (1 << 20)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield piece

    content: Any = piece * 50 if announced else pieces()
    answer = await http.post(
        "/api/tasks", content=content, headers={"content-type": "application/json"}
    )
    assert_problem(answer, 413, "2097152 bytes at most")
    assert (await http.get("/api/runs")).status_code == 200


MUTATING = [
    ("POST", "/api/runs"),
    ("POST", "/api/simulation/start"),
    ("POST", "/api/simulation/pause"),
    ("POST", "/api/simulation/resume"),
    ("POST", "/api/simulation/stop"),
    ("POST", "/api/pause"),
    ("POST", "/api/resume"),
    ("POST", "/api/tasks"),
    ("POST", "/api/models/{run}/{name}/rollback"),
    ("DELETE", "/api/history"),
]


async def test_calls_that_change_something_need_the_token(full_arena: Arena) -> None:
    await full_arena.start("recorder")
    await full_arena.schedulers("greedy")
    settings = full_arena.settings.model_copy(update={"gateway_token": SecretStr("s3cret")})
    wrong = ["", "Bearer", "Bearer wrong", "Bearer s3cre", "Basic s3cret", "s3cret2"]
    async with serving(settings) as http:
        for method, path in MUTATING:
            for given in (None, *wrong):
                headers = {} if given is None else {"authorization": given}
                answer = await http.request(method, path, headers=headers)
                assert_problem(answer, 401, "Bearer <token>")
                assert answer.headers["www-authenticate"] == "Bearer"
        assert (await http.get("/api/runs")).json() == []  # reading needs none
        right = {"authorization": "Bearer s3cret"}
        answer = await http.post("/api/runs", headers=right, json={"pace": 1})
        assert answer.status_code == 201
        answer = await http.delete("/api/history", headers=right)
        assert answer.status_code == 200


async def test_every_call_that_is_no_get_is_guarded(full_arena: Arena) -> None:
    """The list above is all there is."""
    async with serving(full_arena.settings) as http:
        paths = (await http.get("/openapi.json")).json()["paths"]
    found = {
        (method.upper(), path)
        for path, methods in paths.items()
        for method in methods
        if method != "get"
    }
    # Checking a spec changes nothing.
    assert found == {*MUTATING, ("POST", "/api/runs/check")}


async def test_metrics_are_prometheus_text(full_arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(full_arena, "greedy")
    await started(http, pace=100)
    await full_arena.publish_raw("tasks.unknown", b"garbage")

    async def rejected() -> bool:
        return await full_arena.count(subjects.REJECTED) == 1

    await eventually(rejected)

    async def lane_open() -> bool:
        return bool(await full_arena.stream.consumers_info(subjects.DECISIONS))

    await eventually(lane_open)
    for path in ("/api/metrics", "/metrics"):
        answer = await http.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain")
        families = {family.name: family for family in text_string_to_metric_families(answer.text)}
        readers = {sample.labels["reader"] for sample in families["hybrid_lag_messages"].samples}
        assert readers == {
            "tasks/recorder",
            "tasks/scheduler-greedy",
            "decisions/simulator-greedy",
            "results/recorder",
        }
        (letters,) = families["hybrid_dead_letters"].samples
        assert letters.value == 1
        requests = {
            (sample.labels["method"], sample.labels["status"]): sample.value
            for sample in families["hybrid_http_requests"].samples
            if sample.name.endswith("_total")
        }
        assert requests["POST", "201"] == 1


async def test_the_shapes_of_the_history(full_arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(full_arena, "greedy", "oracle")
    run = await started(http, tasks=120, pace="max")
    await state_of(http, run, "completed")
    rows = (await http.get("/api/full_history", params={"limit": 10})).json()
    assert [row["task_id"] for row in rows] == list(range(110, 120))
    assert set(rows[0]) == {
        "run",
        "task_id",
        "size",
        "compute_intensity",
        "memory_required",
        "optimal_gpu_fraction",
        "optimal_time",
    }
    rows = (await http.get("/api/history/comparative", params={"limit": 3})).json()
    assert [(row["task_id"], row["scheduler_name"]) for row in rows] == [
        (task, name) for task in (119, 118, 117) for name in ("greedy", "oracle")
    ]
    assert set(rows[0]) >= {
        "gpu_fraction",
        "actual_time",
        "energy_consumption",
        "execution_cost",
        "size",
        "compute_intensity",
        "memory_required",
        "status",
    }
    for row in rows:
        (stored,) = full_arena.store.query(
            "SELECT time, energy, cost FROM scheduler_results FINAL "
            "WHERE task_id = {t:Int64} AND scheduler = {s:String}",
            {"t": row["task_id"], "s": row["scheduler_name"]},
        )
        assert (row["actual_time"], row["energy_consumption"], row["execution_cost"]) == (
            stored["time"],
            stored["energy"],
            stored["cost"],
        )
    for path, limit in (("full_history", 10_001), ("history/comparative", 0)):
        assert_problem(await http.get(f"/api/{path}?limit={limit}"), 422, "limit")


async def test_deleting_the_history_keeps_active_runs(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    arena = full_arena
    await whole(arena, "greedy")
    done = await started(http, tasks=100, pace="max")
    await state_of(http, done, "completed")
    paused, running = await started(http, pace=200), await started(http, pace=200)
    await http.post("/api/pause", params={"run": paused})

    async def stored() -> bool:
        rows = arena.store.query("SELECT DISTINCT run FROM scheduler_results")
        return {row["run"] for row in rows} == {done, paused, running}

    await eventually(stored)
    answer = await http.delete("/api/history")
    assert (answer.status_code, answer.json()) == (200, {"runs": 1})
    assert_problem(await http.get(f"/api/runs/{done}"), 404)
    for table in ("tasks", "scheduler_results", "standings"):
        rows = arena.store.query(f"SELECT DISTINCT run FROM {table}")
        assert {row["run"] for row in rows} == {paused, running}
    listed = {found["run"]: found["state"] for found in (await http.get("/api/runs")).json()}
    assert listed == {paused: "paused", running: "running"}
    before = await arena.tasks_sent(await arena.runs.get(running))

    async def goes_on() -> bool:
        return await arena.tasks_sent(await arena.runs.get(running)) > before

    await eventually(goes_on)
    assert (await arena.runs.get(paused)).state == RunState.PAUSED
