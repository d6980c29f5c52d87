from __future__ import annotations

import pytest

from services.gateway.http.access import Origins

ELSEWHERE = Origins("https://lab.example, http://10.0.0.5:3000/")


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        (None, "localhost:8000", True),  # a program
        ("http://localhost:8000", "localhost:8000", True),
        ("https://Arena.example", "arena.example", True),
        ("https://lab.example", "localhost:8000", True),
        ("http://10.0.0.5:3000", "localhost:8000", True),
        ("http://localhost:3000", "localhost:8000", False),
        ("http://evil.example", "localhost:8000", False),
        ("http://lab.example", "localhost:8000", False),
        ("https://lab.example.evil.example", "localhost:8000", False),
        ("null", "localhost:8000", False),
        ("null", "", False),
        ("", "localhost:8000", False),
        ("http://[", "localhost:8000", False),
        ("http://[::1", "[::1", False),
    ],
)
def test_pages_of_other_hosts_are_kept_out(origin: str | None, host: str, allowed: bool) -> None:
    headers = {"host": host} | ({} if origin is None else {"origin": origin})
    assert ELSEWHERE.allow(headers) is allowed


def test_nothing_named_allows_only_its_own() -> None:
    for nothing in ("", " ", ", /"):
        assert not Origins(nothing).allow({"origin": "", "host": "localhost"})
    assert Origins("").allow({"origin": "http://localhost", "host": "localhost"})
