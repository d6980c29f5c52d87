"""The replaying client against a real gateway: lost answers, pauses, and going on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from services.lab.traces import replay
from services.lab.traces.replay import Progress, Replay, ReplayError, Watcher
from shared.domain.tasks import Tasks
from shared.errors import Unavailable
from shared.messages import subjects
from shared.messages.batches import column
from shared.runtime.gateway_client import GatewayClient
from tests.integration.arena import Arena, eventually, rows_of
from tests.integration.gateway import SUBMITTED, started, state_of

pytestmark = pytest.mark.usefixtures("submitting")


@pytest.fixture(autouse=True)
async def simulated(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "REQUEST_TASKS", 70)
    await arena.start("simulator")


def tasks(first: int, count: int) -> Tasks:
    ids = np.arange(first, first + count)
    ones = np.ones(count)
    return Tasks(
        ids, ids + 1.0, ones / 2, ones, ids * 1.0, [[int(i) - 1] if i else [] for i in ids]
    )


def trace(total: int = 1000, batch: int = 110) -> Iterator[Tasks]:
    for first in range(0, total, batch):
        yield tasks(first, min(batch, total - first))


class Interrupted(Exception):
    """In the place of Ctrl-C, which a thread does not get."""


class Unlucky(GatewayClient):
    """Every third answer is lost, after the gateway has done what it was asked."""

    calls = 0

    def submit(self, run: str, rows: pa.RecordBatch, *, last: bool) -> Any:
        answer = super().submit(run, rows, last=last)
        self.calls += 1
        if self.calls % 3 == 0:
            raise Unavailable("the answer was lost")
        return answer


async def replayed(
    http: httpx.AsyncClient,
    run: str,
    batches: Iterator[Tasks],
    *,
    kind: type[GatewayClient] = GatewayClient,
    start: int = 0,
    pace: float | None = None,
    watch: Watcher = lambda progress: None,
) -> int:
    """Send a trace, and say where the run stands then."""
    with closing(kind(str(http.base_url))) as gateway:
        sender = Replay(gateway, run, pace=pace, watch=watch)
        await asyncio.to_thread(sender.send, batches, start)
        return sender.next_task


async def assert_all_once(arena: Arena, http: httpx.AsyncClient, run: str, total: int) -> None:
    await arena.start("generator")
    assert (await state_of(http, run, "completed"))["tasks"] == total
    (row,) = arena.store.query(
        "SELECT count() AS results, uniqExact(task_id) AS tasks "
        f"FROM scheduler_results FINAL WHERE run = '{run}'"
    )
    assert row == {"results": total, "tasks": total}
    (row,) = arena.store.query(
        f"SELECT count() AS tasks, sum(size) AS sizes FROM tasks FINAL WHERE run = '{run}'"
    )
    assert row == {"tasks": total, "sizes": total * (total + 1) / 2}


async def test_lost_responses_lose_and_duplicate_no_task(
    arena: Arena, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "RETRY_SECONDS", 0.01)
    run = await started(http, **SUBMITTED)
    assert await replayed(http, run, trace(), kind=Unlucky) == 1000
    result = rows_of(await arena.batches(subjects.TASKS, subjects.tasks(run)))
    assert column(result, "size").tolist() == list(range(1, 1001))
    await assert_all_once(arena, http, run, 1000)


async def test_losing_the_last_response_of_a_completed_run_is_no_error(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await arena.start("generator")
    run = await started(http, **SUBMITTED)

    class LostAtTheEnd(GatewayClient):
        def submit(self, run: str, rows: pa.RecordBatch, *, last: bool) -> Any:
            answer = super().submit(run, rows, last=last)
            if last:
                while self.get(f"/api/runs/{run}")["state"] != "completed":
                    time.sleep(0.05)
                raise Unavailable("the answer was lost")
            return answer

    assert await replayed(http, run, trace(150), kind=LostAtTheEnd) == 150


async def test_a_replay_resumes_from_the_next_task_of_the_run(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await started(http, **SUBMITTED)
    seen: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        seen.append(progress)
        if progress.next_task > 400:
            raise Interrupted

    with pytest.raises(Interrupted):
        await replayed(http, run, trace(), watch=interrupt)
    start = (await http.get(f"/api/runs/{run}")).json()["tasks"]
    assert start == seen[-1].next_task > 400
    assert await replayed(http, run, trace(), start=start) == 1000
    await assert_all_once(arena, http, run, 1000)


async def test_a_replay_waits_for_a_paused_run_and_reports_it(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await started(http, **SUBMITTED)
    await http.post("/api/pause", params={"run": run})
    waiting: list[str] = []

    def watch(progress: Progress) -> None:
        waiting.append(progress.waiting)

    work = asyncio.create_task(replayed(http, run, trace(100), watch=watch))

    async def message() -> bool:
        return any(waiting)

    await eventually(message)
    assert f"run {run} is paused" in waiting[0]
    await http.post("/api/resume", params={"run": run})
    assert await work == 100


async def test_the_pace_is_kept(arena: Arena, http: httpx.AsyncClient) -> None:
    run = await started(http, **SUBMITTED)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await replayed(http, run, trace(200), pace=200.0)
    # The first 20 go out at once, so the last do 180 / 200 s later.
    assert loop.time() - began >= 0.85


async def test_a_trace_shorter_than_its_run_is_refused(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await started(http, **SUBMITTED)
    await replayed(http, run, trace(100))
    with pytest.raises(ReplayError, match="has 100 tasks, and the trace only 90"):
        await replayed(http, run, trace(90), start=100)


async def test_retries_end_after_a_while_when_the_arena_stays_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay, "RETRY_FOR_SECONDS", 0.0)
    async with httpx.AsyncClient(base_url="http://127.0.0.1:1") as nobody:
        with pytest.raises(Unavailable, match="no arena answers"):
            await replayed(nobody, "some-run", trace(100))
