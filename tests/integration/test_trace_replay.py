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
from shared import subjects
from shared.batches import column
from shared.errors import Unavailable
from shared.gateway import Gateway
from shared.tasks import Tasks
from tests.integration.arena import Arena, eventually, rows_of
from tests.integration.gateway import SUBMITTED, started, state_of

pytestmark = pytest.mark.usefixtures("submitting")


@pytest.fixture(autouse=True)
async def simulated(full_arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "REQUEST_TASKS", 70)
    await full_arena.start("simulator")


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


class Unlucky(Gateway):
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
    kind: type[Gateway] = Gateway,
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


async def test_lost_answers_cost_and_double_no_task(
    full_arena: Arena, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "AWAY_SECONDS", 0.01)
    run = await started(http, **SUBMITTED)
    assert await replayed(http, run, trace(), kind=Unlucky) == 1000
    found = rows_of(await full_arena.batches(subjects.TASKS, subjects.tasks(run)))
    assert column(found, "size").tolist() == list(range(1, 1001))
    await assert_all_once(full_arena, http, run, 1000)


async def test_a_lost_last_answer_of_a_run_that_has_completed_since_is_no_error(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    await full_arena.start("generator")
    run = await started(http, **SUBMITTED)

    class LostAtTheEnd(Gateway):
        def submit(self, run: str, rows: pa.RecordBatch, *, last: bool) -> Any:
            answer = super().submit(run, rows, last=last)
            if last:
                while self.get(f"/api/runs/{run}")["state"] != "completed":
                    time.sleep(0.05)
                raise Unavailable("the answer was lost")
            return answer

    assert await replayed(http, run, trace(150), kind=LostAtTheEnd) == 150


async def test_a_replay_goes_on_where_the_run_stands(
    full_arena: Arena, http: httpx.AsyncClient
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
    await assert_all_once(full_arena, http, run, 1000)


async def test_a_paused_run_is_waited_for_and_said_to_be(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await started(http, **SUBMITTED)
    await http.post("/api/pause", params={"run": run})
    waiting: list[str] = []

    def watch(progress: Progress) -> None:
        waiting.append(progress.waiting)

    work = asyncio.create_task(replayed(http, run, trace(100), watch=watch))

    async def said() -> bool:
        return any(waiting)

    await eventually(said)
    assert f"run {run} is paused" in waiting[0]
    await http.post("/api/resume", params={"run": run})
    assert await work == 100


async def test_the_pace_is_kept(full_arena: Arena, http: httpx.AsyncClient) -> None:
    run = await started(http, **SUBMITTED)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await replayed(http, run, trace(200), pace=200.0)
    # The first 20 go out at once, so the last do 180 / 200 s later.
    assert 0.85 <= loop.time() - began < 10


async def test_a_trace_that_is_shorter_than_its_run_is_not_its_trace(
    full_arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await started(http, **SUBMITTED)
    await replayed(http, run, trace(100))
    with pytest.raises(ReplayError, match="has 100 tasks, and the trace only 90"):
        await replayed(http, run, trace(90), start=100)


async def test_an_arena_that_is_away_is_waited_for_in_vain_only_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay, "PATIENCE_SECONDS", 0.0)
    async with httpx.AsyncClient(base_url="http://127.0.0.1:1") as nobody:
        with pytest.raises(Unavailable, match="no arena answers"):
            await replayed(nobody, "some-run", trace(100))
