"""Error messages, and the limits of a request body."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.gateway.http.body_limit import BodyLimit
from services.gateway.http.problems import explain


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"loc": ("body", "one", "size"), "msg": "too small", "input": -3},
         "size: too small (got -3)"),
        ({"loc": ("body", "many", "tasks", 1, "size"), "msg": "no", "input": "x"},
         "tasks.1.size: no (got 'x')"),
        ({"loc": ("query", "limit"), "msg": "no", "input": None}, "query.limit: no"),
        ({"loc": ("body",), "msg": "Field required", "input": {"a": 1}}, "Field required"),
    ],
)  # fmt: skip
def test_a_problem_names_the_field_and_what_was_given(entry: Any, expected: str) -> None:
    assert explain(entry) == expected


def test_a_problem_does_not_repeat_a_long_body() -> None:
    assert len(explain({"loc": ("body", "x"), "msg": "no", "input": "x" * 10**6})) == 300


class Exchange:
    """One request through the middleware, without a server."""

    def __init__(self, pieces: list[bytes], length: bytes | None) -> None:
        self.pieces = list(pieces)
        self.taken = 0
        self.body: bytes | None = None  # what the application got
        self.status = 0
        self.scope = {
            "type": "http",
            "headers": [] if length is None else [(b"content-length", length)],
        }

    async def receive(self) -> Any:
        self.taken += 1
        body = self.pieces.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(self.pieces)}

    async def send(self, message: Any) -> None:
        self.status = message.get("status", self.status)

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        self.body = (await receive())["body"]
        await send({"type": "http.response.start", "status": 200})


def through(pieces: list[bytes], length: bytes | None = None) -> Exchange:
    exchange = Exchange(pieces, length)
    limit = BodyLimit(exchange.application, max_bytes=10)
    asyncio.run(limit(exchange.scope, exchange.receive, exchange.send))
    return exchange


@pytest.mark.parametrize("pieces", [[b""], [b"1234567890"], [b"12345", b"", b"67890"]])
def test_a_body_within_the_limit_arrives_complete(pieces: list[bytes]) -> None:
    exchange = through(pieces)
    assert (exchange.status, exchange.body) == (200, b"".join(pieces))


def test_a_body_is_refused_as_soon_as_it_exceeds_the_limit() -> None:
    exchange = through([b"12345", b"67890", b"1", b"never read"])
    assert (exchange.status, exchange.body, exchange.taken) == (413, None, 3)


@pytest.mark.parametrize("length", [b"11", b"99999999999999999999", b"-1", b"ten", b""])
def test_a_body_that_announces_too_much_or_nonsense_is_not_read(length: bytes) -> None:
    exchange = through([b"1"], length)
    assert (exchange.status, exchange.body, exchange.taken) == (413, None, 0)


def test_a_body_that_is_longer_than_announced_is_refused() -> None:
    assert through([b"1" * 11], length=b"1").status == 413
