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
from shared.messages.runs import RunState
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


async def test_tasks_that_many_submit_at_once_are_all_accepted_once(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    """While the generator sends its own: no task takes the place of another."""
    await whole(arena, "greedy")
    run = await started(http, tasks=1000, pace=1000)
    sizes = [1000.0 + number for number in range(40)]
    answers = await asyncio.gather(
        *(http.post("/api/tasks", json={**TASK, "size": size}) for size in sizes)
    )
    assert [answer.status_code for answer in answers] == [202] * 40
    ids = {answer.json()["task_ids"][0]: size for answer, size in zip(answers, sizes, strict=True)}
    assert len(ids) == 40
    await state_of(http, run, "completed")
    stored = arena.store.query(
        "SELECT task_id, size FROM tasks FINAL WHERE memory_required = 81 AND size >= 1000"
    )
    assert {row["task_id"]: row["size"] for row in stored} == ids
    (row,) = arena.store.query(
        "SELECT count() AS n, max(task_id) AS last FROM scheduler_results FINAL"
    )
    assert row == {"n": 1040, "last": 1039}


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

    async def ends(bus: Bus, run: str) -> Position:
        await arena.runs.move(run, RunState.COMPLETED)
        return await load_position(bus, run)

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
