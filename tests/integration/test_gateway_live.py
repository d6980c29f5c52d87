"""The WebSocket: real clients, a real bus, and figures checked against what is stored."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from websockets.asyncio.client import ClientConnection

from services.gateway.live import feeds, message
from services.gateway.live import socket as live_socket
from shared.events import Event
from tests.integration.arena import Arena, eventually, policy_file
from tests.integration.test_gateway import serving, started, state_of, whole

Message = dict[str, Any]

NEWEST = """
    SELECT scheduler, argMax(tasks, batch) AS tasks, argMax(total_time, batch) AS total_time,
           argMax(total_energy, batch) AS total_energy, argMax(total_wait, batch) AS total_wait
    FROM standings WHERE run = {run:String} GROUP BY scheduler
"""


@pytest.fixture
async def http(full_arena: Arena) -> AsyncIterator[httpx.AsyncClient]:
    await full_arena.start("recorder")
    async with serving(full_arena.settings) as client:
        yield client


class Watcher:
    """A client, and what it was told."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.largest = 0

    async def next(self) -> Message:
        text = await asyncio.wait_for(self.connection.recv(), 20)
        self.largest = max(self.largest, len(text.encode() if isinstance(text, str) else text))
        said: Message = json.loads(text)
        return said

    async def until(self, wanted: Callable[[Message], Any]) -> Message:
        for _ in range(60):
            said = await self.next()
            if wanted(said):
                return said
        raise AssertionError("never said")

    async def update(self) -> Message:
        return await self.until(lambda said: said["type"] == "simulation_update")

    async def closed(self) -> int:
        """With which code the gateway closes it; reads what comes before."""
        try:
            while True:
                await self.next()
        except websockets.ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 1006

    async def weigh(self, **weights: float) -> None:
        await self.connection.send(json.dumps({"type": "weights", **weights}))


@asynccontextmanager
async def watching(
    http: httpx.AsyncClient, run: str | None = None, **options: Any
) -> AsyncIterator[Watcher]:
    address = str(http.base_url).replace("http", "ws").rstrip("/") + "/ws"
    if run is not None:
        address += f"?run={run}"
    async with websockets.connect(address, max_size=10**6, **options) as connection:
        yield Watcher(connection)


def by_name(said: Message) -> dict[str, Message]:
    return {row["name"]: row for row in said["comparison"]}


async def finished(http: httpx.AsyncClient, **spec: Any) -> str:
    run = await started(http, pace="max", **spec)
    await state_of(http, run, "completed")
    return run


async def test_the_first_message_is_a_snapshot_that_agrees_with_the_store(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(full_arena, "greedy", "oracle")
    run = await finished(http, tasks=300, name="seen")
    async with watching(http) as watcher:
        said = await watcher.next()
    assert (said["type"], said["snapshot"], said["run"]) == ("simulation_update", True, run)
    assert (said["state"], said["tasks_sent"], said["tasks_processed"]) == ("completed", 300, 300)
    assert (said["rejected"], said["spec"]["name"]) == (0, "seen")
    rows = by_name(said)
    stored = {row["scheduler"]: row for row in full_arena.store.query(NEWEST, {"run": run})}
    assert set(rows) == set(stored) == {"greedy", "oracle"}
    for name, row in rows.items():
        assert (row["tasks"], row["failed"]) == (300, 0)
        assert row["total_time"] == pytest.approx(stored[name]["total_time"], rel=1e-5)
        assert row["avg_energy"] == pytest.approx(stored[name]["total_energy"] / 300, rel=1e-5)
        assert row["avg_wait"] == pytest.approx(stored[name]["total_wait"] / 300, rel=1e-5)
    ratio = stored["greedy"]["total_time"] / stored["oracle"]["total_time"]
    assert rows["greedy"]["vs_oracle"] == rows["greedy"]["score"] == pytest.approx(ratio, rel=1e-5)
    assert [(row["name"], row["rank"]) for row in said["comparison"]] == [
        ("oracle", 1),
        ("greedy", 2),
    ]
    (task,) = full_arena.store.query("SELECT * FROM tasks FINAL WHERE task_id = 299")
    assert (said["task"]["id"], said["task"]["size"]) == (299, pytest.approx(task["size"], 1e-5))
    for result in full_arena.store.query("SELECT * FROM scheduler_results WHERE task_id = 299"):
        shown = said["latest_results"][result["scheduler"]]
        assert shown["time"] == pytest.approx(result["time"], rel=1e-5)
        assert shown["gpu_fraction"] == pytest.approx(result["gpu_fraction"], rel=1e-5)
        assert (shown["gpu"], shown["status"]) == (result["gpu"], "ok")
    told = [note["message"] for note in said["notifications"]]
    assert told[0] == f"run {run} is complete: every task has its results"
    assert f"run {run} started with greedy, oracle" in told


async def test_utilisation_is_the_work_of_the_last_simulated_minute(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    """Also of a run that was not watched: what lies before comes from the store."""
    await whole(full_arena, "cpu_only")
    run = await finished(http, tasks=2000)
    rows = full_arena.store.query(
        "SELECT clock, cpu_busy[1] AS busy FROM standings FINAL WHERE run = {run:String} "
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
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(full_arena, "greedy", "oracle")
    run = await started(http, pace=200, tasks=500)
    async with watching(http, run) as watcher:
        first = await watcher.next()
        assert first["snapshot"]
        sequence, done = first["sequence"], first["tasks_processed"]
        seen = {}
        while done < 500:
            said = await watcher.update()
            assert not said["snapshot"]
            assert said["sequence"] == sequence + 1
            assert said["tasks_processed"] >= done
            sequence, done = said["sequence"], said["tasks_processed"]
            seen |= by_name(said)
        assert said["tasks_sent"] == 500
    assert {name: row["tasks"] for name, row in seen.items()} == {"greedy": 500, "oracle": 500}


async def test_an_update_holds_only_what_has_changed(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    """The Oracle's worker goes: from then on only greedy moves, and nobody else's score."""
    await whole(full_arena, "greedy", "oracle")
    workers = [s for s in full_arena._services if s.scheduler == "oracle"]
    run = await started(http, pace=100)
    async with watching(http, run) as watcher:
        await watcher.until(lambda said: said.get("tasks_processed", 0) > 20)
        await full_arena.stop(*workers)
        said = await watcher.until(
            lambda said: [row["name"] for row in said.get("comparison", [])] == ["greedy"]
        )
        assert set(said["utilization"]["schedulers"]) == {"greedy"}
        assert set(said["latest_results"]) == {"greedy", "oracle"}
        assert by_name(said)["greedy"]["tasks"] > said["tasks_processed"]
        lagging = await watcher.until(lambda said: "tasks/scheduler-oracle" in said.get("lag", {}))
        assert lagging["lag"]["tasks/scheduler-oracle"] > 0


async def test_a_restarted_gateway_shows_the_same_figures(full_arena: Arena) -> None:
    await full_arena.start("recorder")
    seen = []
    async with serving(full_arena.settings) as http:
        await whole(full_arena, "greedy", "oracle")
        run = await started(http, pace=400)
        async with watching(http, run) as watcher:
            await watcher.until(lambda said: said.get("tasks_processed", 0) > 300)
            await http.post("/api/pause")
            # Quiet: what is on its way has arrived.
            await watcher.until(lambda said: said["type"] == "heartbeat")
        async with watching(http, run) as watcher:
            seen.append(await watcher.next())
    async with serving(full_arena.settings) as http, watching(http, run) as watcher:
        seen.append(await watcher.next())
    before, after = seen
    for key in ("state", "tasks_sent", "tasks_processed", "task", "latest_results", "comparison"):
        assert after[key] == before[key], key
    assert after["state"] == "paused"


async def test_a_paused_run_sends_heartbeats(full_arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(full_arena, "greedy")
    run = await started(http, pace=100)
    async with watching(http, run) as watcher:
        await watcher.until(lambda said: said.get("tasks_processed", 0) > 0)
        await http.post("/api/pause")
        await watcher.until(lambda said: said.get("state") == "paused")
        beat = await watcher.until(lambda said: said["type"] == "heartbeat")
        assert (beat["run"], beat["state"]) == (run, "paused")
        assert set(beat) == {"type", "at", "run", "state"}
        await http.post("/api/resume")
        said = await watcher.until(lambda said: said.get("state") == "running")
        assert said["type"] == "simulation_update"


async def test_notifications_of_the_run_and_of_no_run_are_passed_on(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    run = (await full_arena.run(schedulers=["greedy"], pace=1)).run
    async with watching(http, run) as watcher:
        assert (await watcher.next())["comparison"] == []
        for number, about in enumerate(("another-run", run, "")):
            note = Event(kind="service", service="test", run=about, message=f"number {number}")
            await full_arena.bus.tell(note, message_id=f"test.{number}")
        told = [await watcher.until(lambda said: said["type"] == "notification") for _ in range(2)]
    assert [(note["message"], note["run"]) for note in told] == [
        ("number 1", run),
        ("number 2", ""),
    ]
    assert (told[0]["kind"], told[0]["service"]) == ("service", "test")


async def test_weights_change_the_ranking_of_the_one_who_sent_them(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    """On GPU-friendly work gpu_only is fastest and cpu_only cheapest."""
    await whole(full_arena, "cpu_only", "gpu_only")
    run = await finished(http, tasks=200, workload={"preset": "gpu_friendly"})
    async with watching(http, run) as one, watching(http, run) as other:
        for watcher in (one, other):
            assert [row["name"] for row in (await watcher.next())["comparison"]] == [
                "gpu_only",
                "cpu_only",
            ]
        await one.connection.send("nonsense")
        await one.weigh(time=0, energy=0, cost=1)
        said = await one.update()
        assert said["snapshot"]
        assert [(row["name"], row["rank"]) for row in said["comparison"]] == [
            ("cpu_only", 1),
            ("gpu_only", 2),
        ]
        cost = {row["name"]: row["avg_cost"] for row in said["comparison"]}
        assert said["comparison"][1]["score"] == pytest.approx(
            cost["gpu_only"] / cost["cpu_only"], rel=1e-4
        )
        assert all(row["pareto"] for row in said["comparison"])
        assert not (await other.next()).get("snapshot")


async def test_an_unknown_run_is_an_error_and_4404(http: httpx.AsyncClient) -> None:
    for run, why in (("none", "no run 'none'"), (None, "no run yet")):
        async with watching(http, run) as watcher:
            assert await watcher.next() == {"type": "error", "message": why}
            assert await watcher.closed() == 4404


async def test_a_run_that_is_deleted_while_it_is_watched(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(full_arena, "greedy")
    run = await finished(http, tasks=50)
    async with watching(http, run) as watcher:
        await watcher.next()
        await http.delete("/api/history")
        said = await watcher.until(lambda said: said["type"] == "error")
        assert run in said["message"]
        assert await watcher.closed() == 4404


async def test_a_finished_run_whose_messages_are_gone_comes_from_the_store(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(full_arena, "greedy", "oracle")
    run = await finished(http, tasks=120)

    async def trimmed() -> bool:
        return await full_arena.count_of("RESULTS", f"results.{run}.*") == 0

    await eventually(trimmed)
    async with watching(http, run) as watcher:
        said = await watcher.next()
    assert {name: row["tasks"] for name, row in by_name(said).items()} == {
        "greedy": 120,
        "oracle": 120,
    }
    assert said["task"]["id"] == 119
    assert set(said["latest_results"]) == {"greedy", "oracle"}


async def test_a_scheduler_that_is_plugged_in_appears(
    full_arena: Arena, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    own = policy_file(tmp_path, "third_each", "return Decisions(np.full(len(tasks), 1 / 3))")
    await whole(full_arena, "oracle", own)
    listed = {row["name"]: row for row in (await http.get("/api/schedulers")).json()}
    assert listed["third_each"] == {"name": "third_each", "deployed": 1, "description": ""}
    assert "least execution time" in listed["oracle"]["description"]
    await started(http, pace=100)
    async with watching(http) as watcher:
        said = await watcher.until(lambda said: "third_each" in said.get("latest_results", {}))
        assert said["latest_results"]["third_each"]["gpu_fraction"] == pytest.approx(1 / 3, 1e-5)


async def test_200_clients_get_the_same(full_arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(full_arena, "greedy", "oracle")
    run = await started(http, pace=100)
    async with AsyncExitStack() as stack:
        watchers = [await stack.enter_async_context(watching(http, run)) for _ in range(200)]
        firsts = await asyncio.gather(*(watcher.next() for watcher in watchers))
        assert all(first["snapshot"] for first in firsts)
        common = max(first["sequence"] for first in firsts) + 3

        async def at(watcher: Watcher) -> Message:
            return await watcher.until(lambda said: said.get("sequence") == common)

        said = await asyncio.gather(*(at(watcher) for watcher in watchers))
        assert all(each == said[0] for each in said)
        metrics = (await http.get("/metrics")).text
        assert "hybrid_live_clients 200.0" in metrics
        assert max(watcher.largest for watcher in watchers) < message.MOST_BYTES

    async def all_left() -> bool:
        return "hybrid_live_clients 0.0" in (await http.get("/metrics")).text

    await eventually(all_left)


@pytest.mark.parametrize(("patience", "code"), [(20.0, 1013), (0.0, 1006)])
async def test_a_client_that_does_not_read_is_dropped_and_hurts_nobody(
    full_arena: Arena,
    http: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    patience: float,
    code: int,
) -> None:
    """Its buffers are small and the notes that fill them large, so that it takes no minutes.

    It learns why if it reads again in time; after that its connection is cut.
    """
    monkeypatch.setattr(live_socket, "FAREWELL_SECONDS", patience)
    run = (await full_arena.run(schedulers=["greedy"], pace=1)).run
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.connect((http.base_url.host, http.base_url.port))
    slow_options = {"sock": small, "max_queue": 1, "compression": None}
    async with watching(http, run) as reader, watching(http, run, **slow_options) as slow:
        slow.connection.transport.pause_reading()

        async def dropped() -> bool:
            for number in range(50):
                note = Event(kind="service", service="test", message="x" * 1900,
                             data={"filler": "y" * 15_000})  # fmt: skip
                await full_arena.bus.publish(
                    "events.service",
                    note.model_dump_json().encode(),
                    stream="EVENTS",
                    message_id=f"{dropped}.{number}.{asyncio.get_running_loop().time()}",
                )
            return "hybrid_live_clients_dropped_total 1.0" in (await http.get("/metrics")).text

        async def read() -> int:
            count = 0
            while True:
                count += (await reader.next())["type"] == "notification"

        reading = asyncio.create_task(read())
        await eventually(dropped)
        assert not reading.done()
        reading.cancel()
        slow.connection.transport.resume_reading()
        assert await slow.closed() == code
        assert (await reader.until(lambda said: said["type"] != "notification"))["run"] == run


async def test_a_foreign_page_may_not_listen_nor_change_anything(
    full_arena: Arena,
) -> None:
    run = (await full_arena.run(schedulers=["greedy"], pace=1)).run
    allowed = full_arena.settings.model_copy(update={"gateway_origins": "https://lab.example"})
    async with serving(allowed) as http:
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with watching(http, run, origin="http://evil.example"):
                pass
        assert refused.value.response.status_code == 403
        own = f"http://{http.base_url.host}:{http.base_url.port}"
        for origin in (own, "https://lab.example"):
            async with watching(http, run, origin=origin) as watcher:
                assert (await watcher.next())["run"] == run
        answer = await http.post("/api/pause", headers={"origin": "http://evil.example"})
        assert answer.status_code == 403
        assert (await full_arena.runs.get(run)).state == "running"
        assert (await http.post("/api/pause", headers={"origin": own})).status_code == 200


async def test_a_feed_ends_a_while_after_its_last_client(
    full_arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "LINGER_SECONDS", 0.2)
    monkeypatch.setattr(feeds, "SWEEP_SECONDS", 0.05)
    before = len(asyncio.all_tasks())
    run = (await full_arena.run(schedulers=["greedy"], pace=1)).run
    async with serving(full_arena.settings) as http:
        (await http.get("/api/runs")).raise_for_status()
        idle = len(asyncio.all_tasks())
        for _ in range(3):
            async with watching(http, run) as watcher:
                await watcher.next()
                assert len(asyncio.all_tasks()) > idle

        async def ended() -> bool:
            return len(asyncio.all_tasks()) <= idle

        await eventually(ended)
        # One that is watched when the gateway stops ends with it.
        async with watching(http, run) as watcher:
            await watcher.next()
            connection = watcher.connection
            connection.transport.abort()

    async def nothing_left() -> bool:
        return len(asyncio.all_tasks()) <= before

    await eventually(nothing_left)


async def test_clients_are_told_when_the_gateway_stops(full_arena: Arena) -> None:
    run = (await full_arena.run(schedulers=["greedy"], pace=1)).run
    before = len(asyncio.all_tasks())
    stack = AsyncExitStack()
    async with serving(full_arena.settings) as http:
        watcher = await stack.enter_async_context(watching(http, run))
        await watcher.next()
    assert await watcher.closed() == 1012
    await stack.aclose()

    async def nothing_left() -> bool:
        return len(asyncio.all_tasks()) <= before

    await eventually(nothing_left)
