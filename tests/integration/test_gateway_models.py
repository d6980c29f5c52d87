"""Models over HTTP: list, download, roll back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from nats.aio.msg import Msg
from pydantic import SecretStr

from shared.bus import model_registry
from shared.messages import models, subjects
from shared.messages.events import Event
from shared.messages.models import Manifest
from tests.integration.arena import Arena, eventually
from tests.integration.gateway import assert_problem, serving

BODIES = {1: b"\x00one\xff", 2: b"two", 3: b"three"}


def manifest(version: int, **fields: Any) -> Manifest:
    values: dict[str, Any] = {
        "run": "some-run",
        "name": "hybrid_ml",
        "version": version,
        "sha256": models.digest(BODIES[version]),
        "format": "onnx",
        "trained_on": 100 * version,
        "created_at": 1.7e9 + version,
        "metrics": {"score": 1.25, "champion_score": 1.5},
        "reason": f"number {version}: nicht schlechter, ≤ 1 %",
    }
    return Manifest(**{**values, **fields})


async def shipped(arena: Arena, *versions: int) -> None:
    after = 0
    for version in versions:
        after = await model_registry.ship(
            arena.bus, manifest(version), BODIES[version], after=after
        )


async def publish_event(arena: Arena, made: Manifest, shipped: bool) -> None:
    event = Event(
        kind="model",
        service="trainer",
        message="",
        data={"manifest": made.model_dump(), "shipped": shipped},
    )
    await arena.bus.publish_event(
        event, message_id=f"{made.run}.{made.name}.{made.version}.{shipped}"
    )


async def answering(arena: Arena, answer: Callable[[Any], Any]) -> list[Any]:
    """A fake trainer; returns the list to which it appends requests."""
    requests: list[Any] = []

    async def respond(message: Msg) -> None:
        requests.append(json.loads(message.data))
        await message.respond(json.dumps(answer(requests[-1])).encode())

    client = arena.bus.broker._connection
    await client.subscribe(subjects.ROLLBACK, cb=respond)
    await client.flush()
    return requests


async def test_models_are_listed_newest_first(arena: Arena, http: httpx.AsyncClient) -> None:
    await publish_event(arena, manifest(1), True)
    await publish_event(arena, manifest(2, created_at=1.7e9 + 1.5), False)
    await publish_event(arena, manifest(2), True)
    await publish_event(arena, manifest(3, run="other-run", name="rl_agent", metrics={}), True)

    async def listed(**parameters: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = (await http.get("/api/models", params=parameters)).json()
        return rows

    await eventually(lambda: listed(), accept=lambda rows: len(rows) == 4)
    rows = await listed()
    listing = [(row["run"], row["version"], row["shipped"]) for row in rows]
    assert listing == [
        ("other-run", 3, True),
        ("some-run", 2, True),
        ("some-run", 2, False),
        ("some-run", 1, True),
    ]
    assert rows[0]["metrics"] == {}
    assert rows[0]["score"] is None
    assert rows[1] == {
        "run": "some-run",
        "name": "hybrid_ml",
        "version": 2,
        "shipped": True,
        "reason": "number 2: nicht schlechter, ≤ 1 %",
        "score": 1.25,
        "champion_score": 1.5,
        "sha256": models.digest(b"two"),
        "format": "onnx",
        "trained_on": 200,
        "first_task": -1,
        "last_task": -1,
        "metrics": {"score": 1.25, "champion_score": 1.5},
        "created_at": "2023-11-14T22:13:22Z",  # 1,700,000,002 s
    }
    assert await listed(run="some-run") == rows[1:]
    assert await listed(name="rl_agent") == rows[:1]
    assert await listed(run="some-run", version=1) == rows[3:]
    assert await listed(run="some-run", limit=1) == rows[1:2]
    assert await listed(run="none") == await listed(name="' OR 1 = 1") == []
    assert_problem(await http.get("/api/models?limit=0"), 422, "limit")


async def test_a_model_is_downloaded_as_it_was_published(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    await shipped(arena, 1, 2)
    for version, number in (("1", 1), ("2", 2), ("newest", 2)):
        answer = await http.get(f"/api/models/some-run/hybrid_ml/{version}")
        assert (answer.status_code, answer.content) == (200, BODIES[number])
        assert answer.headers["content-type"] == "application/octet-stream"
        received = Manifest.model_validate_json(answer.headers["x-model-manifest"])
        assert received == manifest(number)


@pytest.mark.parametrize(
    ("place", "status", "detail"),
    [
        ("some-run/hybrid_ml/9", 404, "version 9 of hybrid_ml in run some-run is not stored"),
        ("some-run/rl_agent/newest", 404, "no model of rl_agent in run some-run"),
        ("other-run/hybrid_ml/1", 404, "not stored"),
        ("some-run/greedy/1", 404, "version 1 of greedy in run some-run is not stored"),
        ("*/hybrid_ml/1", 404, "no run '*'"),
        ("%3E/hybrid_ml/newest", 404, "no run '>'"),
        ("some-run/*/newest", 404, "no learner '*'"),
        ("some-run/hybrid_ml/0", 422, "version"),
        ("some-run/hybrid_ml/oldest", 422, "version"),
    ],
)
async def test_an_unknown_model_is_a_problem(
    arena: Arena, http: httpx.AsyncClient, place: str, status: int, detail: str
) -> None:
    await shipped(arena, 1)
    assert_problem(await http.get(f"/api/models/{place}"), status, detail)


async def test_a_rollback_is_requested_from_the_trainer(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    requests = await answering(arena, lambda _: manifest(3).model_dump())
    answer = await http.post("/api/models/some-run/hybrid_ml/rollback", json={"version": 1})
    assert (answer.status_code, answer.json()) == (200, manifest(3).model_dump())
    assert requests == [{"run": "some-run", "name": "hybrid_ml", "version": 1}]


async def test_a_rollback_without_a_trainer_says_so(http: httpx.AsyncClient) -> None:
    answer = await http.post("/api/models/some-run/hybrid_ml/rollback", json={"version": 1})
    assert_problem(answer, 503, "no trainer answers")


async def test_a_rollback_that_fails_says_why(arena: Arena, http: httpx.AsyncClient) -> None:
    await shipped(arena, 1)
    requests = await answering(arena, lambda _: {"error": "somebody else was first"})
    place = "/api/models/some-run/hybrid_ml/rollback"
    assert_problem(await http.post(place, json={"version": 1}), 409, "somebody else was first")
    assert_problem(await http.post(place, json={"version": 2}), 404, "version 2", "not stored")
    assert len(requests) == 2
    for body in ({}, {"version": 0}, {"version": "newest"}, {"version": 1, "now": True}):
        assert_problem(await http.post(place, json=body), 422)
    answer = await http.post("/api/models/some-run/Greedy/rollback", json={"version": 1})
    assert_problem(answer, 404, "no learner 'Greedy'")
    assert len(requests) == 2


async def test_a_rollback_needs_the_token(arena: Arena) -> None:
    token = SecretStr("secret")
    async with serving(arena.settings.model_copy(update={"gateway_token": token})) as http:
        place = "/api/models/some-run/hybrid_ml/rollback"
        assert_problem(await http.post(place, json={"version": 1}), 401)
        values = {"Authorization": "Bearer secret"}
        assert_problem(await http.post(place, json={"version": 1}, headers=values), 503)
