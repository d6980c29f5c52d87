"""Messages of the WebSocket, on a real bus, compared with the store."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from services.gateway.live import race
from shared.messages.events import Event
from tests.integration.arena import Arena, eventually, policy_file
from tests.integration.gateway import completed, serving, started, whole
from tests.integration.watching import by_name, watching

NEWEST = """
    SELECT scheduler, argMax(tasks, batch) AS tasks, argMax(total_time, batch) AS total_time,
           argMax(total_energy, batch) AS total_energy, argMax(total_wait, batch) AS total_wait,
           argMax(total_turnaround, batch) AS total_turnaround,
           argMax(turnaround_p95, batch) AS turnaround_p95,
           argMax(total_slowdown, batch) AS total_slowdown
    FROM standings WHERE run = {run:String} GROUP BY scheduler
"""


async def test_the_first_message_is_a_snapshot_that_agrees_with_the_store(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(arena, "greedy", "oracle")
    run = await completed(http, tasks=300, name="watched")
    async with watching(http) as watcher:
        message = await watcher.next()
    expected = {"type": "simulation_update", "snapshot": True, "run": run, "state": "completed"}
    expected |= {"tasks_sent": 300, "tasks_processed": 300}
    assert message | expected == message
    assert (message["rejected"], message["spec"]["name"]) == (0, "watched")
    rows = by_name(message)
    stored = {row["scheduler"]: row for row in arena.store.query(NEWEST, {"run": run})}
    assert set(rows) == set(stored) == {"greedy", "oracle"}
    for name, row in rows.items():
        assert (row["tasks"], row["failed"]) == (300, 0)
        assert row["total_time"] == pytest.approx(stored[name]["total_time"], rel=1e-5)
        assert row["avg_energy"] == pytest.approx(stored[name]["total_energy"] / 300, rel=1e-5)
        assert row["avg_wait"] == pytest.approx(stored[name]["total_wait"] / 300, rel=1e-5)
        assert row["turnaround_p95"] == pytest.approx(stored[name]["turnaround_p95"], rel=1e-5)
        assert row["avg_slowdown"] == pytest.approx(stored[name]["total_slowdown"] / 300, rel=1e-5)
    ratio = stored["greedy"]["total_time"] / stored["oracle"]["total_time"]
    assert rows["greedy"]["vs_oracle"] == pytest.approx(ratio, rel=1e-5)
    turnaround = {name: row["total_turnaround"] for name, row in stored.items()}
    assert turnaround["greedy"] > turnaround["oracle"]
    score = turnaround["greedy"] / turnaround["oracle"]
    assert rows["greedy"]["score"] == pytest.approx(score, rel=1e-5)
    assert [(row["name"], row["rank"]) for row in message["comparison"]] == [
        ("oracle", None),
        ("greedy", 1),
    ]
    (task,) = arena.store.query("SELECT * FROM tasks FINAL WHERE task_id = 299")
    assert (message["task"]["id"], message["task"]["size"]) == (
        299,
        pytest.approx(task["size"], 1e-5),
    )
    for result in arena.store.query("SELECT * FROM scheduler_results WHERE task_id = 299"):
        shown = message["latest_results"][result["scheduler"]]
        assert shown["time"] == pytest.approx(result["time"], rel=1e-5)
        assert shown["gpu_fraction"] == pytest.approx(result["gpu_fraction"], rel=1e-5)
        assert (shown["device"], shown["cpu"], shown["status"]) == (result["device"], 4, "ok")
        used = f"gpu_{result['device']}" if result["gpu_time"] else None
        assert shown["device_name"] == used
        assert shown["cpu_name"] == ("cpu_0" if result["cpu_time"] else None)
    assert [meter["name"] for meter in message["meters"]] == [
        "gpu_0", "gpu_1", "gpu_2", "gpu_3", "cpu_0"
    ]  # fmt: skip
    assert message["types"] == [
        {"name": "gpu", "accelerator": True, "count": 4},
        {"name": "cpu", "accelerator": False, "count": 1},
    ]
    notifications = [note["message"] for note in message["notifications"]]
    assert notifications[0] == f"run {run} is complete: every task has its results"
    assert f"run {run} started with greedy, oracle" in notifications


async def test_utilisation_is_the_work_of_the_last_simulated_minute(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """Also of a run that was not watched: what lies before comes from the store."""
    await whole(arena, "cpu_only")
    run = await completed(http, tasks=2000)
    rows = arena.store.query(
        "SELECT clock, busy[5] AS busy FROM standings FINAL WHERE run = {run:String} "
        "ORDER BY batch",
        {"run": run},
    )
    end = rows[-1]
    start = [row for row in rows if row["clock"] <= end["clock"] - 60][-1]
    wanted = min((end["busy"] - start["busy"]) / (end["clock"] - start["clock"]), 1)
    async with watching(http, run) as watcher:
        used = (await watcher.next())["utilization"]
    assert used["cpu_0"]["utilization"] == pytest.approx(wanted, abs=1e-4)
    assert used["gpu_3"]["utilization"] == 0
    assert used["schedulers"]["cpu_only"]["devices"]["cpu_0"] == pytest.approx(wanted, abs=1e-4)
    assert used["average_utilization"] == pytest.approx(wanted / 5, abs=1e-4)


async def test_updates_follow_one_another_and_reach_the_end(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(arena, "greedy", "oracle")
    run = await started(http, pace=200, tasks=500)
    await http.post("/api/pause")
    async with watching(http, run) as watcher:
        first = await watcher.next()
        assert first["snapshot"]
        assert first["tasks_processed"] < 500
        await http.post("/api/resume")
        sequence, done = first["sequence"], first["tasks_processed"]
        snapshots = {}
        while done < 500:
            message = await watcher.update()
            assert not message["snapshot"]
            assert message["sequence"] == sequence + 1
            assert message["tasks_processed"] >= done
            sequence, done = message["sequence"], message["tasks_processed"]
            snapshots |= by_name(message)
        assert message["tasks_sent"] == 500
    assert {name: row["tasks"] for name, row in snapshots.items()} == {"greedy": 500, "oracle": 500}


async def test_an_update_holds_only_what_has_changed(
    arena: Arena, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Oracle's worker goes: once greedy is so far ahead that they are compared over different
    tasks, only greedy moves, and nobody else's score."""
    monkeypatch.setattr(race, "KEPT_BATCHES", 16)
    await whole(arena, "greedy", "oracle")
    workers = [s for s in arena._services if s.scheduler == "oracle"]
    run = await started(http, pace=100)
    async with watching(http, run) as watcher:
        await watcher.until(lambda message: message.get("tasks_processed", 0) > 20)
        await arena.stop(*workers)
        message = await watcher.until(
            lambda message: [row["name"] for row in message.get("comparison", [])] == ["greedy"]
        )
        assert set(message["utilization"]["schedulers"]) == {"greedy"}
        assert set(message["latest_results"]) == {"greedy", "oracle"}
        assert by_name(message)["greedy"]["tasks"] > message["tasks_processed"]
        lagging = await watcher.until(
            lambda message: "tasks/scheduler-oracle" in message.get("lag", {})
        )
        assert lagging["lag"]["tasks/scheduler-oracle"] > 0


async def test_a_restarted_gateway_shows_the_same_figures(arena: Arena) -> None:
    await arena.start("recorder")
    snapshots = []
    async with serving(arena.settings) as http:
        await whole(arena, "greedy", "oracle")
        run = await started(http, pace=400)
        async with watching(http, run) as watcher:
            await watcher.until(lambda message: message.get("tasks_processed", 0) > 300)
            await http.post("/api/pause")
            # Quiet: what is on its way has arrived.
            await watcher.until(lambda message: message["type"] == "heartbeat")
        async with watching(http, run) as watcher:
            snapshots.append(await watcher.next())
    async with serving(arena.settings) as http, watching(http, run) as watcher:
        snapshots.append(await watcher.next())
    before, after = snapshots
    for key in ("state", "tasks_sent", "tasks_processed", "task", "latest_results", "comparison"):
        assert after[key] == before[key], key
    assert after["state"] == "paused"


async def test_a_paused_run_sends_heartbeats(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "greedy")
    run = await started(http, pace=100)
    async with watching(http, run) as watcher:
        await watcher.until(lambda message: message.get("tasks_processed", 0) > 0)
        await http.post("/api/pause")
        await watcher.until(lambda message: message.get("state") == "paused")
        beat = await watcher.until(lambda message: message["type"] == "heartbeat")
        assert (beat["run"], beat["state"]) == (run, "paused")
        assert set(beat) == {"type", "at", "run", "state"}
        await http.post("/api/resume")
        message = await watcher.until(lambda message: message.get("state") == "running")
        assert message["type"] == "simulation_update"


async def test_notifications_of_the_run_and_of_no_run_are_passed_on(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = (await arena.run(schedulers=["greedy"], pace=1)).run
    async with watching(http, run) as watcher:
        assert (await watcher.next())["comparison"] == []
        for number, about in enumerate(("another-run", run, "")):
            note = Event(kind="service", service="test", run=about, message=f"number {number}")
            await arena.bus.publish_event(note, message_id=f"test.{number}")
        notifications = [
            await watcher.until(lambda message: message["type"] == "notification") for _ in range(2)
        ]
    assert [(note["message"], note["run"]) for note in notifications] == [
        ("number 1", run),
        ("number 2", ""),
    ]
    assert (notifications[0]["kind"], notifications[0]["service"]) == ("service", "test")


async def test_weights_change_the_ranking_of_the_one_who_sent_them(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """On GPU-friendly work gpu_only is fastest and cpu_only cheapest."""
    await whole(arena, "cpu_only", "gpu_only")
    run = await completed(http, tasks=200, workload={"preset": "gpu_friendly"})
    async with watching(http, run) as one, watching(http, run) as other:
        for watcher in (one, other):
            assert [row["name"] for row in (await watcher.next())["comparison"]] == [
                "gpu_only",
                "cpu_only",
            ]
        await one.connection.send("nonsense")
        await one.weigh(time=0, energy=0, cost=1)
        message = await one.update()
        assert message["snapshot"]
        assert [(row["name"], row["rank"]) for row in message["comparison"]] == [
            ("cpu_only", 1),
            ("gpu_only", 2),
        ]
        cost = {row["name"]: row["avg_cost"] for row in message["comparison"]}
        assert message["comparison"][1]["score"] == pytest.approx(
            cost["gpu_only"] / cost["cpu_only"], rel=1e-4
        )
        assert all(row["pareto"] for row in message["comparison"])
        assert not (await other.next()).get("snapshot")


async def test_a_finished_run_whose_messages_are_gone_comes_from_the_store(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(arena, "greedy", "oracle")
    run = await completed(http, tasks=120)
    await eventually(lambda: arena.count_of("RESULTS", f"results.{run}.*"), equals=0)
    async with watching(http, run) as watcher:
        message = await watcher.next()
    tasks = {name: row["tasks"] for name, row in by_name(message).items()}
    assert tasks == {"greedy": 120, "oracle": 120}
    assert message["task"]["id"] == 119
    assert set(message["latest_results"]) == {"greedy", "oracle"}


async def test_a_scheduler_that_is_plugged_in_appears(
    arena: Arena, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    own = policy_file(tmp_path, "third_each", "return Decisions(np.full(len(tasks), 1 / 3))")
    await whole(arena, "oracle", own)
    listed = {row["name"]: row for row in (await http.get("/api/schedulers")).json()}
    assert listed["third_each"] == {"name": "third_each", "deployed": 1, "description": ""}
    assert "least execution time" in listed["oracle"]["description"]
    await started(http, pace=100)
    async with watching(http) as watcher:
        message = await watcher.until(
            lambda message: "third_each" in message.get("latest_results", {})
        )
        assert message["latest_results"]["third_each"]["gpu_fraction"] == pytest.approx(1 / 3, 1e-5)
