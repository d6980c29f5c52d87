"""Submitted tasks: accepted once, or refused with a reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import nats.errors
import pytest
from nats.js import JetStreamContext

from services.gateway.tasks import submission
from shared.bus.client import Bus
from shared.bus.task_stream import Position, load_position
from shared.domain.workload import generate
from shared.messages import subjects
from shared.messages.runs import Fork, RunState
from tests.integration.arena import Arena, eventually
from tests.integration.gateway import TASK, assert_problem, started, state_of, whole


async def test_submitted_tasks_get_results_from_every_scheduler(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """1 alone, then 3 in one body: (960/1000)^1.5 / (0.75 + 0.5) is 0.752 s on the CPU."""
    await whole(arena, "cpu_only", "gpu_only")
    run = await started(http, pace=300)
    one = await http.post("/api/tasks", json=TASK)
    assert one.status_code == 202, one.text
    (first,) = one.json()["task_ids"]
    three = [TASK, {**TASK, "arrival_time": 3.5}, {**TASK, "dependencies": [first]}]
    many = await http.post("/api/tasks", json={"run": run, "tasks": three})
    assert many.status_code == 202, many.text
    ids = many.json()["task_ids"]
    assert ids == list(range(ids[0], ids[0] + 3))
    wanted = [first, *ids]

    async def results() -> list[dict[str, Any]] | None:
        rows = arena.store.query(
            "SELECT scheduler, task_id, time FROM scheduler_results FINAL "
            "WHERE task_id IN {ids:Array(Int64)} ORDER BY scheduler, task_id",
            {"ids": wanted},
        )
        return rows if len(rows) == 8 else None

    async def tasks() -> list[dict[str, Any]] | None:
        rows = arena.store.query(
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


CLIENTS = 12


async def test_tasks_that_many_submit_at_once_are_all_accepted_once(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """While the generator sends its own: no task takes the place of another. Each client competes
    with all others for every place: many more of them would wait for minutes on a slow machine."""
    await whole(arena, "greedy")
    run = await started(http, tasks=1000, pace=1000)
    sizes = [1000.0 + number for number in range(CLIENTS)]
    answers = await asyncio.gather(
        *(http.post("/api/tasks", json={**TASK, "size": size}) for size in sizes)
    )
    assert [answer.status_code for answer in answers] == [202] * CLIENTS
    ids = {answer.json()["task_ids"][0]: size for answer, size in zip(answers, sizes, strict=True)}
    assert len(ids) == CLIENTS
    await state_of(http, run, "completed")
    stored = arena.store.query(
        "SELECT task_id, size FROM tasks FINAL WHERE memory_required = 81 AND size >= 1000"
    )
    assert {row["task_id"]: row["size"] for row in stored} == ids
    (row,) = arena.store.query(
        "SELECT count() AS n, max(task_id) AS last FROM scheduler_results FINAL"
    )
    assert row == {"n": 1000 + CLIENTS, "last": 999 + CLIENTS}


async def test_tasks_whose_acknowledgement_is_lost_are_not_sent_twice(
    arena: Arena, submitting: None, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when the stream has gone on meanwhile and was trimmed."""
    run = await started(http, pace=1)
    subject, publish = subjects.tasks(run), JetStreamContext.publish

    async def lose(context: JetStreamContext, to: str, *args: Any, **options: Any) -> Any:
        answer = await publish(context, to, *args, **options)
        if to == subject:
            monkeypatch.setattr(JetStreamContext, "publish", publish)
            await eventually(lambda: arena.store.query("SELECT 1 AS one FROM tasks"))
            position = await load_position(arena.bus, run)
            tasks, cursor = generate((await arena.runs.get(run)).spec, position.cursor, 5)
            later = position.next_message(run, tasks, cursor)
            sequence = await arena.bus.publish_batch(later, after=position.sequence)
            await arena.jetstream.purge_stream(subjects.TASKS, seq=sequence, subject=subject)
            raise nats.errors.TimeoutError
        return answer

    monkeypatch.setattr(JetStreamContext, "publish", lose)
    answer = await http.post("/api/tasks", json=TASK)
    assert (answer.status_code, answer.json()["task_ids"]) == (202, [0])
    assert [batch.envelope.batch for batch in await arena.batches("TASKS", subject)] == [1]


async def test_a_run_that_ends_while_tasks_are_submitted_takes_none(
    arena: Arena, submitting: None, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await started(http, pace=1)

    async def ends(bus: Bus, run: str, fork: Fork | None) -> Position:
        await arena.runs.change_state(run, RunState.COMPLETED)
        return await load_position(bus, run, fork)

    monkeypatch.setattr(submission, "load_position", ends)
    assert_problem(await http.post("/api/tasks", json=TASK), 409, "is completed")
    assert await arena.count_of(subjects.TASKS, subjects.tasks(run)) == 0


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
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(arena, "greedy")
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
    await eventually(
        lambda: arena.store.query(
            "SELECT 1 AS one FROM scheduler_results WHERE task_id = {id:Int64}", {"id": number}
        )
    )
    assert (await http.get(f"/api/runs/{run}")).json()["state"] == "running"
    assert await arena.dead_letters() == []


async def test_a_refused_task_says_what_is_wrong_with_it_and_nothing_else(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """A single task is not blamed for lacking what a list of tasks has, nor the other way."""
    await arena.schedulers("greedy")
    await started(http, pace=1)
    single = await http.post("/api/tasks", json={**TASK, "size": -3})
    assert assert_problem(single, 422)["problems"] == [
        "size: Input should be greater than 0 (got -3)"
    ]
    many = await http.post("/api/tasks", json={"tasks": [TASK, {**TASK, "compute_intensity": 2}]})
    assert assert_problem(many, 422)["problems"] == [
        "tasks.1.compute_intensity: Input should be less than or equal to 1 (got 2)"
    ]


MEASURED = {
    "cluster": {"devices": [{"type": "v100", "count": 2}, {"type": "cpu"}]},
    "physics": {
        "measured": [
            {"kind": "gemm", "type": "v100", "sizes": [1, 1000], "seconds": [2, 2]},
            {"kind": "sort", "type": "cpu", "sizes": [1, 1000], "seconds": [3, 3]},
        ]
    },
}


async def test_generated_and_submitted_tasks_share_a_measured_platform(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await whole(arena, "oracle")
    run = await started(http, **MEASURED, pace=300)
    gemm = {**TASK, "memory_required": 0, "kind": "gemm", "divisible": False, "width": 2}
    accepted = await http.post("/api/tasks", json={**gemm, "home": 0})
    assert accepted.status_code == 202, accepted.text
    (number,) = accepted.json()["task_ids"]

    async def result() -> dict[str, Any] | None:
        rows = arena.store.query(
            "SELECT kind, divisible, width, home, last_child, gpu_time, cpu_time, status "
            "FROM scheduler_results AS result FINAL INNER JOIN tasks AS task "
            f"ON result.task_id = task.task_id WHERE result.run = '{run}' "
            "AND result.task_id = {id:Int64}",
            {"id": number},
        )
        return rows[0] if rows else None

    assert await eventually(result) == {
        "kind": "gemm",
        "divisible": False,
        "width": 2,
        "home": 0,
        "last_child": number + 256,
        "gpu_time": pytest.approx(2),
        "cpu_time": 0,
        "status": "ok",
    }

    async def times_by_kind() -> dict[str, list[float]] | None:
        rows = arena.store.query(
            "SELECT kind, groupUniqArray(round(time, 9)) AS times FROM scheduler_results AS result "
            "INNER JOIN tasks AS task ON result.task_id = task.task_id GROUP BY kind ORDER BY kind"
        )
        return {row["kind"]: row["times"] for row in rows} if len(rows) == 2 else None

    assert await eventually(times_by_kind) == {"gemm": [2], "sort": [3]}


async def test_a_task_that_the_platform_cannot_run_is_refused(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await arena.schedulers("greedy")
    await started(http, **MEASURED, pace=1)
    gemm = {**TASK, "kind": "gemm"}
    bad = [
        (TASK, "kind: missing; allowed: gemm, sort"),
        ({**gemm, "kind": "fft"}, "kind: unknown kind 'fft'; allowed: gemm, sort"),
        (
            {**gemm, "width": 3},
            "width: no device type that can run the task has 3 devices; allowed: 1 to 2",
        ),
        (
            {**gemm, "home": 1},
            "home: no node has the number 1; allowed: 0 to 0, or -1 for data that is on all nodes",
        ),
    ]
    for task, reason in bad:
        answer = await http.post("/api/tasks", json=task)
        assert assert_problem(answer, 422)["problems"] == [reason]
        answer = await http.post("/api/tasks", json={"tasks": [gemm, task]})
        expected = reason.replace("missing", "unknown kind ''")
        assert assert_problem(answer, 422)["problems"] == [f"tasks.1.{expected}"]
    assert (await http.post("/api/tasks", json=gemm)).status_code == 202


async def test_a_submitted_task_may_depend_on_a_generated_one(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """Tasks of a mean size of 20 million take a day: the child waits for its parent."""
    await whole(arena, "cpu_only")
    run = await started(
        http,
        pace=50,
        workload={"mix": {"size": {"kind": "uniform", "low": 1e7, "high": 3e7}}},
    )
    first = (await http.post("/api/tasks", json=TASK)).json()["task_ids"][0]
    answer = await http.post("/api/tasks", json={**TASK, "dependencies": [max(first - 1, 0)]})
    (number,) = answer.json()["task_ids"]
    parent = max(first - 1, 0)

    async def finishes() -> dict[int, float] | None:
        rows = arena.store.query(
            "SELECT task_id, finish, cpu_start FROM scheduler_results FINAL "
            f"WHERE run = '{run}' AND task_id IN ({parent}, {number})"
        )
        found = {row["task_id"]: row for row in rows}
        return found if len(found) == 2 else None

    found = await eventually(finishes)
    assert found[number]["cpu_start"] >= found[parent]["finish"]


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_of_50_mb_is_refused(
    arena: Arena, http: httpx.AsyncClient, announced: bool
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
