"""Dead letters over HTTP: listed, looked into, removed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx
import numpy as np
import pytest

from shared.domain.tasks import Tasks
from shared.messages import batches, subjects
from shared.messages.batches import Envelope
from tests.integration.arena import Arena
from tests.integration.gateway import assert_problem, get, serving


@pytest.fixture
async def http(arena: Arena) -> AsyncIterator[httpx.AsyncClient]:
    """A gateway alone: dead letters need no ClickHouse."""
    async with serving(arena.settings) as client:
        yield client


async def put_aside(
    arena: Arena, count: int, service: str = "test", subject: str = "tasks.x", body: bytes = b"?"
) -> None:
    arena.bus.service = service
    for _ in range(count):
        place = await arena.count(subjects.REJECTED) + 1
        await arena.bus.reject(subject, subjects.TASKS, place, body, f"reason {place}")


async def numbers(http: httpx.AsyncClient, **parameters: object) -> list[int]:
    return [
        letter["sequence"] for letter in (await get(http, "/api/rejected", **parameters))["letters"]
    ]


async def test_dead_letters_are_listed_newest_first_page_by_page(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    assert await get(http, "/api/rejected") == {
        "letters": [],
        "next_before": None,
        "total": 0,
        "services": {},
    }
    await put_aside(arena, 5)
    first = await get(http, "/api/rejected", limit=2)
    assert [letter["sequence"] for letter in first["letters"]] == [5, 4]
    assert (first["next_before"], first["total"], first["services"]) == (4, 5, {"test": 5})
    newest = first["letters"][0]
    assert newest.pop("at") > 1e9
    assert newest == {
        "sequence": 5,
        "service": "test",
        "subject": "tasks.x",
        "stream": "TASKS",
        "origin": 5,
        "reason": "reason 5",
        "size": 1,
        "replay_obstacle": None,
    }
    second = await get(http, "/api/rejected", limit=2, before=4)
    assert [letter["sequence"] for letter in second["letters"]] == [3, 2]
    third = await get(http, "/api/rejected", limit=2, before=2)
    assert [letter["sequence"] for letter in third["letters"]] == [1]
    assert third["next_before"] is None


async def test_a_page_skips_removed_dead_letters(arena: Arena, http: httpx.AsyncClient) -> None:
    """More sequence numbers than the first windows have, most of them of letters removed."""
    for number in range(300):
        await arena.publish_raw("rejected.a", b"%d" % number)
    await arena.publish_raw("rejected.b", b"")
    await arena.jetstream.purge_stream(subjects.REJECTED, seq=299, subject="rejected.a")
    assert await numbers(http, limit=2) == [301, 300]
    assert await numbers(http) == [301, 300, 299]
    assert await numbers(http, service="a") == [300, 299]
    assert await numbers(http, service="nobody") == []


async def test_filters(arena: Arena, http: httpx.AsyncClient) -> None:
    await put_aside(arena, 2, "recorder", "results.r.greedy")
    await put_aside(arena, 1, "recorder", "events.run")
    await put_aside(arena, 1, "simulator", "decisions.r.greedy")
    assert await numbers(http, service="recorder") == [3, 2, 1]
    assert await numbers(http, subject="results.r.greedy") == [2, 1]
    assert await numbers(http, subject="*.r.greedy") == [4, 2, 1]
    assert await numbers(http, subject="results.>", service="recorder") == [2, 1]
    assert await numbers(http, subject="results.>", service="simulator") == []
    assert await numbers(http, subject="results") == []
    for bad in ("a.b", "*", "a b", ""):
        assert_problem(await http.get("/api/rejected", params={"service": bad}), 422, "service")


def a_batch(size: float) -> bytes:
    rows = batches.task_rows(
        Tasks(np.arange(3), np.full(3, size), np.full(3, 0.5), np.ones(3), np.zeros(3))
    )
    return batches.encode(Envelope("tasks", "x", 4, 1e9), rows)


async def test_the_body_is_made_readable(arena: Arena, http: httpx.AsyncClient) -> None:
    bodies = {
        "batch": a_batch(float("nan")),
        "json": b'{"a": [1, 2]}',
        "text": "grüß dich".encode(),
        "bytes": b"\x00\x01hello world, all\xff",
    }
    for body in bodies.values():
        await put_aside(arena, 1, body=body)
    details = {
        kind: await get(http, f"/api/rejected/{place}", rows=2)
        for place, kind in enumerate(bodies, start=1)
    }
    assert {kind: detail["kind"] for kind, detail in details.items()} == {
        kind: kind for kind in bodies
    }
    batch = details["batch"]
    assert (batch["count"], len(batch["rows"])) == (3, 2)
    assert batch["rows"][1] == {
        "task_id": 1,
        "size": "nan",
        "compute_intensity": 0.5,
        "memory_required": 1.0,
        "arrival_time": 0.0,
    }
    assert json.loads(batch["envelope"])["batch"] == 4
    assert details["json"]["text"] == '{"a": [1, 2]}'
    assert details["text"]["text"] == "grüß dich"
    assert details["bytes"]["text"].splitlines() == [
        "000000  00 01 68 65 6c 6c 6f 20 77 6f 72 6c 64 2c 20 61  ..hello world, a",
        "000010  6c 6c ff                                         ll.",
    ]
    assert details["bytes"]["headers"]["Hybrid-Reason"] == "reason 4"
    assert_problem(await http.get("/api/rejected/99"), 404, "no dead letter 99")


async def test_any_body_can_be_shown(arena: Arena, http: httpx.AsyncClient) -> None:
    """Whoever may write to REJECTED need not have gone through us."""
    strange = {
        "Hybrid-Sequence": "x",
        "Hybrid-Size": "-1",
        "Hybrid-Stream": "TASKS",
        "Status": "404",
        "Nats-Sequence": "77",
        "Nats-Time-Stamp": "yesterday",
        "Nats-Subject": "rejected.y",
    }
    await arena.jetstream.publish("rejected.x", b"", headers=strange)
    await arena.jetstream.publish("rejected.x", b"[" * 100_000)
    await arena.publish_raw("rejected.x", b"\xff" * 100_000)
    assert await numbers(http) == [3, 2, 1]
    for number, kind in ((1, "bytes"), (2, "text"), (3, "bytes")):
        detail = await get(http, f"/api/rejected/{number}")
        assert (detail["kind"], detail["replay_obstacle"]) == (
            kind,
            "it does not say where it came from",
        )
        answer = await http.post(f"/api/rejected/{number}/replay")
        assert_problem(answer, 409, "it does not say where it came from")


async def test_purging(arena: Arena, http: httpx.AsyncClient) -> None:
    await put_aside(arena, 3, "recorder", "results.r.greedy")
    await put_aside(arena, 2, "recorder", "events.run")
    await put_aside(arena, 3, "simulator", "decisions.r.greedy")

    async def purge(**parameters: object) -> object:
        answer = await http.delete("/api/rejected", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    answer = await http.delete("/api/rejected/8")
    assert answer.json() == {"purged": 1, "complete": True}
    assert_problem(await http.delete("/api/rejected/8"), 404, "no dead letter 8")
    assert_problem(await http.delete("/api/rejected"), 422, "up_to")
    assert await purge(up_to=99, subject="results.*.greedy") == {"purged": 3, "complete": True}
    assert await numbers(http) == [7, 6, 5, 4]
    assert_problem(await http.delete("/api/rejected/1"), 404, "no dead letter 1")
    assert await purge(up_to=99, service="recorder") == {"purged": 2, "complete": True}
    assert await numbers(http) == [7, 6]
    assert await purge(up_to=6) == {"purged": 1, "complete": True}
    assert await numbers(http) == [7]
    assert await purge(up_to=2**62, service="nobody") == {"purged": 0, "complete": True}
    assert await purge(up_to=2**62) == {"purged": 1, "complete": True}
    assert await numbers(http) == []
