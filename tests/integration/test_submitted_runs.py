"""Runs with submitted tasks: each task is stored once, however often it is sent."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from shared.bus.task_stream import cursor_of, load_position
from shared.messages import subjects
from shared.messages.batches import TASKS, column
from shared.messages.envelope import Envelope
from shared.messages.runs import RunState
from shared.runtime.gateway_client import ARROW_STREAM, NEXT_TASK
from tests.integration.arena import Arena, eventually, rows_of, unchanged
from tests.integration.gateway import SUBMITTED, started, state_of

pytestmark = pytest.mark.usefixtures("submitting")


def rows(first: int, count: int, **columns: Any) -> pa.RecordBatch:
    """Tasks of size id + 1; each depends on the one before it."""
    ids = np.arange(first, first + count)
    defaults: dict[str, Any] = {
        "size": ids + 1.0,
        "compute_intensity": np.full(count, 0.5),
        "memory_required": np.full(count, 100.0),
        "arrival_time": ids / 10,
        "dependencies": [[int(i) - 1] if i else [] for i in ids],
    }
    return pa.RecordBatch.from_pydict({**defaults, **columns})


def stream(batch: pa.RecordBatch, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


async def send(
    http: httpx.AsyncClient, run: str, first: int, batch: pa.RecordBatch | bytes, last: bool = False
) -> httpx.Response:
    body = batch if isinstance(batch, bytes) else stream(batch)
    return await http.post(
        f"/api/runs/{run}/tasks",
        params={"first": first, "last": last},
        content=body,
        headers={"Content-Type": ARROW_STREAM},
    )


async def sent(arena: Arena, run: str) -> pa.Table:
    return rows_of(await arena.batches(subjects.TASKS, subjects.tasks(run)))


def assert_next_task(answer: httpx.Response, next_task: int) -> None:
    assert answer.status_code == 409, answer.text
    assert answer.headers[NEXT_TASK] == str(next_task)
    assert f"is {next_task}, not" in answer.json()["detail"]


async def test_every_task_is_stored_once_and_the_run_ends_with_its_stream(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await arena.start("simulator")
    await arena.start("generator")
    run = await started(http, **SUBMITTED)
    answer = await send(http, run, 0, rows(0, 120))
    assert answer.status_code == 202, answer.text
    assert answer.json() == {"run": run, "accepted": 120, "next_task": 120, "ended": False}

    async def stored() -> int:
        return (await http.get("/api/status", params={"run": run})).json()["tasks_processed"]

    await eventually(lambda: stored(), equals=120)
    record = await unchanged(lambda: arena.runs.get(run))
    assert record.state == RunState.RUNNING

    done = await send(http, run, 120, rows(120, 7), last=True)
    assert done.json() == {"run": run, "accepted": 7, "next_task": 127, "ended": True}
    completed = await state_of(http, run, "completed")
    assert completed["tasks"] == 127
    (row,) = arena.store.query(
        "SELECT count() AS results, uniqExact(task_id) AS tasks, sum(task_id) AS ids "
        f"FROM scheduler_results FINAL WHERE run = '{run}'"
    )
    assert row == {"results": 127, "tasks": 127, "ids": 127 * 126 // 2}
    (task,) = arena.store.query(
        f"SELECT size, arrival_time, dependencies FROM tasks FINAL "
        f"WHERE run = '{run}' AND task_id = 126"
    )
    assert task == {"size": 127.0, "arrival_time": 12.6, "dependencies": [125]}


async def test_the_generator_generates_nothing(arena: Arena, http: httpx.AsyncClient) -> None:
    await arena.start("generator")
    run = await started(http, **SUBMITTED)
    assert await unchanged(lambda: arena.count_of(subjects.TASKS, subjects.tasks(run))) == 0
    assert (await arena.runs.get(run)).state == RunState.RUNNING


async def test_the_reply_to_a_repeated_request_has_the_next_task(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await started(http, **SUBMITTED)
    assert (await send(http, run, 0, rows(0, 30))).is_success
    assert_next_task(await send(http, run, 0, rows(0, 30)), 30)
    assert_next_task(await send(http, run, 31, rows(31, 5)), 30)
    assert (await send(http, run, 30, rows(30, 5), last=True)).is_success
    assert_next_task(await send(http, run, 30, rows(30, 5), last=True), 35)
    after_the_end = await send(http, run, 35, rows(35, 5))
    assert after_the_end.status_code == 409
    assert "has ended with task 34" in after_the_end.json()["detail"]
    assert column(await sent(arena, run), "size").tolist() == list(range(1, 36))


async def test_of_concurrent_requests_for_the_same_position_one_is_stored(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await started(http, **SUBMITTED)
    answers = await asyncio.gather(*(send(http, run, 0, rows(0, 20 + n)) for n in range(8)))
    (stored,) = [answer.json() for answer in answers if answer.is_success]
    for answer in answers:
        if not answer.is_success:
            assert_next_task(answer, stored["next_task"])
    tasks = await sent(arena, run)
    assert tasks.num_rows == stored["accepted"]
    assert column(tasks, "task_id").tolist() == list(range(stored["accepted"]))


async def test_a_full_arena_accepts_what_it_can_and_then_answers_429(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """Without a simulator the lead over the only scheduler is used up by 24 batches of 50."""
    run = await started(http, **SUBMITTED)
    simulator = await arena.start("simulator")
    await eventually(lambda: arena.jetstream.consumers_info(subjects.DECISIONS))
    await arena.stop(simulator)
    body, place, refused = rows(0, 4000), 0, None
    while refused is None:
        answer = await send(http, run, place, body.slice(place))
        if answer.is_success:
            assert answer.json()["next_task"] == place + answer.json()["accepted"]
            place = answer.json()["next_task"]
        else:
            refused = answer
    assert refused.status_code == 429, refused.text
    assert int(refused.headers["Retry-After"]) >= 1
    assert "as many tasks on their way as it may have" in refused.json()["detail"]
    assert place % arena.settings.batch_tasks == 0
    # The backlog is read at most every half second, so a few batches more are possible.
    assert 24 * 50 <= place <= 30 * 50

    await arena.start("simulator")
    await arena.start("generator")
    while place < 4000:
        answer = await send(http, run, place, body.slice(place), last=True)
        assert answer.status_code in (202, 429), answer.text
        place = answer.json().get("next_task", place)
    await state_of(http, run, "completed")
    (row,) = arena.store.query(
        "SELECT count() AS results, uniqExact(task_id) AS tasks "
        f"FROM scheduler_results FINAL WHERE run = '{run}'"
    )
    assert row == {"results": 4000, "tasks": 4000}


async def test_a_paused_run_accepts_nothing_until_it_is_resumed(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await started(http, **SUBMITTED)
    await http.post("/api/pause", params={"run": run})
    answer = await send(http, run, 0, rows(0, 5))
    assert answer.status_code == 423, answer.text
    assert answer.headers["Retry-After"] == "1"
    assert f"run {run} is paused" in answer.json()["detail"]
    assert await arena.count_of(subjects.TASKS, subjects.tasks(run)) == 0
    await http.post("/api/resume", params={"run": run})
    assert (await send(http, run, 0, rows(0, 5))).is_success


async def test_the_first_task_waits_for_pre_trained_models(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await arena.schedulers("hybrid_ml")
    spec = {**SUBMITTED, "schedulers": ["hybrid_ml"]}
    run = await started(http, **spec, learning={"pretrain_tasks": 100, "forest": {"trees": 2}})
    refused = await send(http, run, 0, rows(0, 5))
    assert refused.status_code == 429
    assert "are being pre-trained" in refused.json()["detail"]
    await arena.start("trainer")
    await eventually(
        lambda: send(http, run, 0, rows(0, 5)),
        "models published and the first tasks accepted",
        accept=lambda answer: answer.is_success,
    )


async def test_a_stopped_or_generated_run_accepts_no_tasks(http: httpx.AsyncClient) -> None:
    stopped = await started(http, **SUBMITTED)
    await http.post("/api/simulation/stop", params={"run": stopped})
    answer = await send(http, stopped, 0, rows(0, 5))
    assert (answer.status_code, NEXT_TASK in answer.headers) == (409, False)
    assert "is stopped: it takes no more tasks" in answer.json()["detail"]
    generated = await started(http, schedulers=["greedy"], tasks=10)
    answer = await send(http, generated, 0, rows(0, 5))
    assert answer.status_code == 409
    assert "workload.source: submitted" in answer.json()["detail"]
    assert (await send(http, "no-such-run", 0, rows(0, 5))).status_code == 404


async def test_single_tasks_are_refused_in_a_submitted_run(http: httpx.AsyncClient) -> None:
    run = await started(http, **SUBMITTED)
    task = {"size": 960, "compute_intensity": 0.75, "memory_required": 81}
    answer = await http.post("/api/tasks", json={"run": run, "tasks": [task]})
    assert answer.status_code == 409
    assert f"POST /api/runs/{run}/tasks" in answer.json()["detail"]


NAN = float("nan")


BAD: list[tuple[bytes, str]] = [
    (b"", "not an Arrow stream"),
    (b"size,compute_intensity\n1,2\n", "not an Arrow stream"),
    (stream(rows(0, 5))[:-200], "not an Arrow stream"),
    (stream(rows(0, 1000), compression="zstd"), "compressed; send it uncompressed"),
    (stream(rows(0, 0)), "a request has 1 to 100000 tasks, not 0"),
    (stream(rows(0, 2).drop_columns(["size"])), "column size is missing"),
    (stream(rows(0, 2, size=["1", "2"])), "column size must be double, not string"),
    (stream(rows(0, 2, size=[1.0, None])), "column size has missing values"),
    (stream(rows(0, 2, size=[1.0, NAN])), "size must be above 0"),
    (stream(rows(0, 2, size=[1.0, -1.0])), "size must be above 0"),
    (stream(rows(0, 2, compute_intensity=[0.5, 1.01])), "compute_intensity must be 0..1"),
    (stream(rows(0, 2, dependencies=[[], [1]])), "1 is not one of the 256 tasks before it"),
    (stream(rows(0, 2, dependencies=[[], [None]])), "column dependencies must be list<"),
    (stream(rows(0, 3, dependencies=[[], [0], [None]])), "dependencies has missing values"),
    (
        stream(rows(0, 2, size=pa.array([1.0, 1.0]).dictionary_encode())),
        "column size must be double, not dictionary",
    ),
]


async def test_bad_tasks_are_refused_with_a_reason(arena: Arena, http: httpx.AsyncClient) -> None:
    run = await started(http, **SUBMITTED)
    for body, reason in BAD:
        answer = await send(http, run, 0, body)
        assert answer.status_code == 422, (reason, answer.text)
        assert reason in answer.json()["detail"]
    assert await arena.count_of(subjects.TASKS, subjects.tasks(run)) == 0


# Two nodes with two v100 and a CPU each. gemm runs on both types, sort on CPUs only.
MEASURED = {
    **SUBMITTED,
    "cluster": {
        "devices": [
            {"type": "v100", "count": 2, "node": "rack", "bandwidth_mb_s": 1000},
            {"type": "cpu", "node": "rack"},
        ],
        "nodes": [{"name": "rack", "count": 2}],
    },
    "physics": {
        "measured": [
            {"kind": "gemm", "type": "v100", "sizes": [1, 1000], "seconds": [2, 2]},
            {"kind": "gemm", "type": "cpu", "sizes": [1, 1000], "seconds": [5, 5]},
            {"kind": "sort", "type": "cpu", "sizes": [1, 1000], "seconds": [3, 3]},
        ]
    },
}


async def test_every_column_of_a_task_is_stored_and_counts(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """`greedy` gives an indivisible task of intensity 0.5 to an accelerator: 2 s and 0.1 s to move
    100 MB. A sort runs on the CPU for 3 s."""
    await arena.start("simulator")
    await arena.start("generator")
    run = await started(http, **MEASURED)
    columns = {
        "kind": ["gemm", "sort", "gemm"],
        "divisible": [False] * 3,
        "width": pa.array([1, 1, 4], pa.int32()),
        "home": pa.array([-1, 1, 0], pa.int32()),
        "last_child": [2, 1, -1],
        "dependencies": [[], [], [0]],
    }
    answer = await send(http, run, 0, rows(0, 3, **columns), last=True)
    assert answer.status_code == 202, answer.text

    async def state() -> str:
        return (await arena.runs.get(run)).state

    await eventually(state, equals=RunState.COMPLETED)
    stored = arena.store.query(
        "SELECT kind, divisible, width, home, last_child FROM tasks FINAL "
        f"WHERE run = '{run}' ORDER BY task_id"
    )
    assert [list(row.values()) for row in stored] == [
        ["gemm", False, 1, -1, 2],
        ["sort", False, 1, 1, 1],
        ["gemm", False, 4, 0, 2 + 256],
    ]
    results = arena.store.query(
        "SELECT gpu_time, cpu_time, status FROM scheduler_results FINAL "
        f"WHERE run = '{run}' ORDER BY task_id"
    )
    assert [row["status"] for row in results] == ["ok"] * 3
    assert [row["gpu_time"] > 0 for row in results] == [True, False, True]
    assert results[0]["gpu_time"] == pytest.approx(2.1)
    assert results[1]["cpu_time"] == pytest.approx(3, abs=0.1)  # and the way to its node


BAD_FOR_THE_PLATFORM: list[tuple[dict[str, Any], str]] = [
    ({}, "row 0, kind: missing; allowed: gemm, sort"),
    ({"kind": ["gemm", "fft"]}, "row 1, kind: unknown kind 'fft'; allowed: gemm, sort"),
    (
        {"kind": ["gemm", "gemm"], "width": [4, 5]},
        "row 1, width: no device type that can run the task has 5 devices; allowed: 1 to 4",
    ),
    (
        {"kind": ["gemm", "sort"], "width": [4, 3]},
        "row 1, width: no device type that can run the task has 3 devices; allowed: 1 to 2",
    ),
    (
        {"kind": ["gemm", "sort"], "home": [1, 2]},
        "row 1, home: no node has the number 2; allowed: 0 to 1",
    ),
    (
        {"kind": ["gemm", "sort"], "last_child": [0, 258]},
        "row 1, last_child: 258 is too far; allowed: up to 257",
    ),
]


async def test_tasks_that_the_platform_cannot_run_are_refused(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await started(http, **MEASURED)
    for columns, reason in BAD_FOR_THE_PLATFORM:
        answer = await send(http, run, 0, rows(0, 2, dependencies=[[], []], **columns))
        assert answer.status_code == 422, (reason, answer.text)
        assert reason in answer.json()["detail"]
    assert await arena.count_of(subjects.TASKS, subjects.tasks(run)) == 0


async def test_a_parent_may_be_as_far_back_as_the_window_of_the_run(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """Task 0 takes (1,000,000/1000)^1.5 / (0.5 + 0.5) = 31,623 s on a CPU; its child in another
    request cannot start before."""
    await arena.start("simulator")
    await arena.start("generator")
    spec = {"workload": {"source": "submitted", "dependencies": {"window": 700}}}
    run = await started(http, **{**SUBMITTED, **spec})
    sizes = [1e6] + [1.0] * 699
    head = rows(0, 700, size=sizes, dependencies=[[]] * 700)
    assert (await send(http, run, 0, head)).is_success
    refused = await send(http, run, 700, rows(700, 2, dependencies=[[0], [0]]), last=True)
    assert refused.status_code == 422
    assert "dependencies of task 701: 0 is not one of the 700 tasks before it" in refused.text
    tail = rows(700, 2, size=[1.0, 1.0], dependencies=[[0], [1]])
    assert (await send(http, run, 700, tail, last=True)).is_success
    await state_of(http, run, "completed")
    parent, child, other = arena.store.query(
        "SELECT finish, least(gpu_start, cpu_start) AS start FROM scheduler_results FINAL "
        f"WHERE run = '{run}' AND task_id IN (0, 700, 701) ORDER BY task_id"
    )
    assert child["start"] >= parent["finish"]
    assert other["start"] < parent["finish"]


async def test_the_type_and_the_size_of_a_body_are_checked(http: httpx.AsyncClient) -> None:
    run = await started(http, **SUBMITTED)
    path = f"/api/runs/{run}/tasks?first=0"
    answer = await http.post(path, json={"size": 1})
    assert answer.status_code == 415
    assert ARROW_STREAM in answer.json()["detail"]
    assert (await send(http, run, 0, b"\0" * 3_000_000)).status_code == 413
    assert (await send(http, run, -1, rows(0, 1))).status_code == 422


async def test_tasks_may_come_as_csv(arena: Arena, http: httpx.AsyncClient) -> None:
    run = await started(http, **SUBMITTED)
    text = (
        "task_id,size,compute_intensity,memory_required,arrival_time,dependencies,divisible,user\n"
        "7,100,0.5,10,0,,1,ada\n8,200,0.25,20,0.5,0,0,bob\n9,300,1,30,2,0;1,1,ada\n"
    )
    path, csv = f"/api/runs/{run}/tasks?first=0&last=true", {"Content-Type": "text/csv"}
    answer = await http.post(path, content=text.replace("200", "many"), headers=csv)
    assert answer.status_code == 422
    assert "many" in answer.text
    answer = await http.post(path, content=text, headers=csv)
    assert answer.status_code == 202, answer.text
    table = await sent(arena, run)
    assert table.column("size").to_pylist() == [100, 200, 300]
    assert table.column("dependencies").to_pylist() == [[], [0], [0, 1]]
    assert table.column("divisible").to_pylist() == [True, False, True]
    assert table.column("arrival_time").to_pylist() == [0, 0.5, 2]


async def test_other_number_types_and_missing_dependencies_are_accepted(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await started(http, **SUBMITTED)
    batch = rows(0, 3, size=pa.array([1, 2, 3], pa.int32())).drop_columns(["dependencies"])
    assert (await send(http, run, 0, batch)).is_success
    tasks = await sent(arena, run)
    assert tasks.schema.names == TASKS.names
    assert column(tasks, "size").tolist() == [1.0, 2.0, 3.0]
    assert (await send(http, run, 3, rows(3, 2, dependencies=[[], []]))).is_success


async def test_the_last_message_has_the_end_and_old_messages_have_none(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    run = await started(http, **SUBMITTED)
    await send(http, run, 0, rows(0, 3), last=True)
    position = await load_position(arena.bus, run)
    assert (position.cursor.next_task, position.cursor.ended) == (3, True)
    assert await unchanged(lambda: arena.count_of(subjects.TASKS, subjects.tasks(run))) == 1
    old = {"cursor": {"generated": 5, "next_task": 6, "clock": 0.5}}
    assert not cursor_of(Envelope("tasks", run, 0, 0.0, state=old)).ended
