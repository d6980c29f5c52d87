"""The gateway over real HTTP, with the other services behind it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from shared.bus.client import Bus
from shared.messages import subjects
from shared.messages.events import ServiceReport
from tests.integration import clickhouse_server, nats_server
from tests.integration.arena import Arena, connect, eventually, policy_file, unchanged
from tests.integration.conftest import settings_for
from tests.integration.gateway import TASK, assert_problem, serving, started, state_of, whole


async def test_health_names_what_is_missing(arena: Arena, http: httpx.AsyncClient) -> None:
    answer = await eventually(
        lambda: http.get("/api/health"),
        accept=lambda answer: answer.json()["missing"] == ["generator", "simulator"],
    )
    health = answer.json()
    assert (answer.status_code, health["status"]) == (503, "degraded")
    assert health["nats"]["ok"]
    assert health["clickhouse"] == {"ok": True, "problem": None}
    await whole(arena, "greedy")
    await arena.run(schedulers=["greedy", "oracle"], pace=1)

    async def only_oracle_missing() -> bool:
        answer = await http.get("/api/health")
        return (answer.status_code, answer.json()["missing"]) == (503, ["scheduler oracle"])

    async def healthy() -> dict[str, Any] | None:
        answer = await http.get("/api/health")
        return answer.json() if answer.status_code == 200 else None

    await eventually(only_oracle_missing)
    await arena.schedulers("oracle")
    health = await eventually(healthy)
    assert health["status"] == "ok"
    present = [(report["service"], report["scheduler"]) for report in health["services"]]
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
    nowhere = arena.settings.model_copy(update={"clickhouse_url": "http://127.0.0.1:1"})
    async with serving(nowhere) as http:
        answer = await http.get("/api/health")
        health = answer.json()
        assert (answer.status_code, health["clickhouse"]["ok"]) == (503, False)
        assert health["clickhouse"]["problem"]
        for path in (f"/api/runs/{run.run}", "/api/status", "/api/full_history"):
            assert_problem(await http.get(path), 503)
        # What needs no store works.
        answer = await http.post("/api/pause")
        assert (answer.status_code, answer.json()["state"]) == (200, "paused")


async def test_without_nats_the_gateway_says_so(
    tmp_path: Path, clickhouse: clickhouse_server.Server
) -> None:
    with nats_server.running(tmp_path) as server:
        settings = settings_for(server.url, clickhouse.url)
        bus = await connect(settings)  # makes the streams
        await bus.broker.stop()
        async with serving(settings) as http:
            assert (await http.get("/api/health")).json()["nats"]["ok"]
            server.kill()

            async def noticed() -> dict[str, Any] | None:
                answer = await http.get("/api/health")
                assert answer.status_code == 503
                return None if answer.json()["nats"]["ok"] else answer.json()

            health = await eventually(noticed)
            assert health["nats"]["problem"]
            assert health["clickhouse"]["ok"]
            assert health["missing"] == ["generator", "recorder", "simulator"]
            answer = await http.get("/api/metrics")
            assert answer.status_code == 200
            assert "hybrid_http_requests_total{" in answer.text
            assert "hybrid_lag_messages{" not in answer.text
            server.start()


async def test_an_arena_without_runs(http: httpx.AsyncClient) -> None:
    assert (await http.get("/")).json()["status"] == "online"
    assert (await http.get("/api/runs")).json() == []
    status = (await http.get("/api/status")).json()
    assert (status["is_running"], status["tasks_processed"], status["run"]) == (False, 0, None)
    for path in ("/api/full_history", "/api/history/comparative", "/api/models"):
        assert (await http.get(path)).json() == []
    assert (await http.delete("/api/history")).json() == {"runs": 0, "left": 0}
    for verb in ("pause", "resume", "stop"):
        assert_problem(await http.post(f"/api/simulation/{verb}"), 404, "no active run")
    assert_problem(await http.post("/api/tasks", json=TASK), 404, "no active run")


async def test_a_run_from_start_to_end(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "greedy", "oracle")
    run = await started(http, tasks=400, pace="max", name="all deployed", seed=7)
    done = await state_of(http, run, "completed")
    assert done["spec"]["schedulers"] == ["greedy", "oracle"]  # all that are deployed
    assert (done["name"], done["tasks"]) == ("all deployed", 400)
    greedy, oracle = done["schedulers"]["greedy"], done["schedulers"]["oracle"]
    assert greedy["results"] == oracle["results"] == 400
    assert oracle["vs_oracle"] == 1
    assert greedy["vs_oracle"] == pytest.approx(greedy["total_time"] / oracle["total_time"])
    assert greedy["vs_oracle"] > 1
    (row,) = arena.store.query(
        "SELECT sum(time) AS total_time, avg(wait) AS avg_wait, avg(energy) AS avg_energy, "
        "avg(cost) AS avg_cost FROM scheduler_results FINAL WHERE scheduler = 'greedy'"
    )
    row["avg_time"] = row["total_time"] / 400
    assert {name: greedy[name] for name in row} == pytest.approx(row, rel=1e-9)
    for path in ("/api/status", "/api/simulation/status"):
        status = (await http.get(path)).json()
        assert (status["run"], status["state"], status["is_running"]) == (run, "completed", False)
        assert status["tasks_processed"] == 400
    assert [row["run"] for row in (await http.get("/api/runs")).json()] == [run]


async def test_a_scheduler_that_is_slow_to_answer_takes_part(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Bus.roll_call

    async def only_greedy_is_quick(
        bus: Bus, timeout: float = 0.4, schedulers: Collection[str] = ()
    ) -> list[ServiceReport]:
        reports = await call(bus, timeout, schedulers)
        return [r for r in reports if timeout > 0.4 or r.scheduler != "oracle"]

    await whole(arena, "greedy", "oracle")
    monkeypatch.setattr(Bus, "roll_call", only_greedy_is_quick)
    async with serving(arena.settings) as http:
        answer = await http.post("/api/runs", json={"tasks": 1})
    assert answer.json()["spec"]["schedulers"] == ["greedy", "oracle"]


async def test_a_run_can_name_a_scheduler_that_is_busy_deciding(
    arena: Arena, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    await whole(arena, "greedy")
    body = "__import__('time').sleep(0.7); return Decisions(gpu_fraction=np.zeros(len(tasks)))"
    arena.process("scheduler", policy=policy_file(tmp_path, "pensive", body))

    async def deployed() -> bool:
        return any(report.scheduler == "pensive" for report in await arena.bus.roll_call())

    await eventually(deployed)
    await started(http, pace=1000, schedulers=["pensive"])
    await eventually(lambda: arena.count("DECISIONS"))
    for _ in range(4):
        await started(http, tasks=1, schedulers=["pensive"])


async def test_pause_resume_and_stop(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "greedy")
    run = await started(http, pace=500)
    arena_run = await arena.runs.get(run)

    async def sent() -> int:
        return await arena.tasks_sent(arena_run)

    await eventually(sent)
    for prefix in ("/api", "/api/simulation"):
        answer = await http.post(f"{prefix}/pause")
        assert (answer.json()["run"], answer.json()["state"]) == (run, "paused")
        held = await unchanged(sent, seconds=0.3)
        answer = await http.post(f"{prefix}/resume", params={"run": run})
        assert answer.json()["state"] == "running"
        await eventually(sent, accept=lambda number, held=held: number > held)
    assert (await http.get("/api/status")).json()["is_running"]
    answer = await http.post("/api/simulation/stop")
    assert answer.json()["state"] == "stopped"
    assert_problem(
        await http.post("/api/resume", params={"run": run}), 409, "is stopped", "running"
    )
    assert_problem(await http.post("/api/tasks", json={"run": run, "tasks": [TASK]}), 409, run)
    assert_problem(await http.post("/api/pause"), 404, "no active run")


@pytest.mark.parametrize("run", ["none", "A%20b", "a.b", "%2e%2e", "x" * 65])
async def test_an_unknown_run_is_a_404(arena: Arena, http: httpx.AsyncClient, run: str) -> None:
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
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await arena.schedulers("greedy")
    bad = {"tasks": -1, "sed": 3, "physics": {"split": "sideways"}, "pace": "fast"}
    problem = assert_problem(await http.post("/api/runs", json=bad), 422)
    fields = {line.partition(":")[0] for line in problem["problems"]}
    assert fields == {"tasks", "sed", "physics.split", "pace"}
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


async def test_an_empty_body_starts_the_default_run(arena: Arena, http: httpx.AsyncClient) -> None:
    await arena.schedulers("greedy")
    answer = await http.post("/api/simulation/start")
    assert answer.status_code == 201
    assert (answer.json()["spec"]["pace"], answer.json()["spec"]["tasks"]) == (20, None)


async def test_metrics_are_prometheus_text(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "greedy")
    await started(http, pace=100)
    await arena.publish_raw("tasks.unknown", b"garbage")
    await eventually(lambda: arena.count(subjects.REJECTED), equals=1)
    await eventually(lambda: arena.jetstream.consumers_info(subjects.DECISIONS))
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
            "events/recorder",
            "runs/recorder",
        }
        letters = {
            sample.labels["service"]: sample.value
            for sample in families["hybrid_dead_letters"].samples
        }
        assert sum(letters.values()) == letters["scheduler"] + letters["recorder"] == 1
        requests = {
            (sample.labels["method"], sample.labels["status"]): sample.value
            for sample in families["hybrid_http_requests"].samples
            if sample.name.endswith("_total")
        }
        assert requests["POST", "201"] == 1


async def test_the_shapes_of_the_history(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "greedy", "oracle")
    run = await started(http, tasks=120, pace="max")
    await state_of(http, run, "completed")
    rows = (await http.get("/api/full_history", params={"limit": 10})).json()
    assert [row["task_id"] for row in rows] == list(range(110, 120))
    rows = (await http.get("/api/history/comparative", params={"limit": 3})).json()
    assert [(row["task_id"], row["scheduler_name"]) for row in rows] == [
        (task, name) for task in (119, 118, 117) for name in ("greedy", "oracle")
    ]
    for row in rows:
        (stored,) = arena.store.query(
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
