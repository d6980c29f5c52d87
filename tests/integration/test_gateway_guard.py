"""Token, request rates, host names, origins, and limits of slow or large requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket

import httpx
import pytest
import websockets
from pydantic import SecretStr

from services.gateway.http import body_limit, server
from tests.integration.arena import Arena
from tests.integration.gateway import assert_problem, serving
from tests.integration.watching import watching

MUTATING = [
    ("POST", "/api/runs"),
    ("POST", "/api/runs/{run}/fork"),
    ("POST", "/api/advice"),
    ("POST", "/api/simulation/start"),
    ("POST", "/api/simulation/pause"),
    ("POST", "/api/simulation/resume"),
    ("POST", "/api/simulation/stop"),
    ("POST", "/api/pause"),
    ("POST", "/api/resume"),
    ("POST", "/api/tasks"),
    ("POST", "/api/runs/{run}/tasks"),
    ("PUT", "/api/runs/{run}/objective"),
    ("PUT", "/api/runs/{run}/notes"),
    ("POST", "/api/runs/{run}/schedulers/{scheduler}/retry"),
    ("POST", "/api/runs/{run}/schedulers/{scheduler}/leave-out"),
    ("POST", "/api/models/{run}/{name}/rollback"),
    ("DELETE", "/api/history"),
    ("POST", "/api/rejected/{sequence}/replay"),
    ("DELETE", "/api/rejected/{sequence}"),
    ("DELETE", "/api/rejected"),
]


async def test_calls_that_change_something_need_the_token(arena: Arena) -> None:
    await arena.start("recorder")
    await arena.schedulers("greedy")
    settings = arena.settings.model_copy(update={"gateway_token": SecretStr("s3cret")})
    wrong = ["", "Bearer", "Bearer wrong", "Bearer s3cre", "Basic s3cret", "s3cret2"]
    async with serving(settings) as http:
        for method, path in MUTATING:
            for value in (None, *wrong):
                headers = {} if value is None else {"authorization": value}
                answer = await http.request(method, path, headers=headers)
                assert_problem(answer, 401, "Bearer <token>")
                assert answer.headers["www-authenticate"] == "Bearer"
        assert (await http.get("/api/runs")).json() == []  # reading needs none
        right = {"authorization": "Bearer s3cret"}
        answer = await http.post("/api/runs", headers=right, json={"pace": 1})
        assert answer.status_code == 201
        answer = await http.delete("/api/history", headers=right)
        assert answer.status_code == 200


async def test_every_call_that_is_no_get_is_guarded(arena: Arena) -> None:
    """The list above is complete."""
    async with serving(arena.settings) as http:
        paths = (await http.get("/openapi.json")).json()["paths"]
    routes = {
        (method.upper(), path)
        for path, methods in paths.items()
        for method in methods
        if method != "get"
    }
    # Checking a spec changes nothing.
    assert routes == {*MUTATING, ("POST", "/api/runs/check")}


def opened(http: httpx.AsyncClient) -> socket.socket:
    return socket.create_connection((http.base_url.host, http.base_url.port), timeout=10)


async def until_cut(connection: socket.socket) -> bytes:
    """What is received until the gateway closes the connection."""
    connection.setblocking(False)
    loop, received = asyncio.get_running_loop(), b""
    with connection, contextlib.suppress(ConnectionResetError):
        async with asyncio.timeout(20):
            while piece := await loop.sock_recv(connection, 65_536):
                received += piece
    return received


async def test_a_client_over_its_rate_gets_retry_after(arena: Arena) -> None:
    limits = {"gateway_reads_per_second": 1.0, "gateway_changes_per_second": 0.5}
    async with serving(arena.settings.model_copy(update=limits)) as http:
        answers = await asyncio.gather(*(http.get("/api/config") for _ in range(40)))
        refused = [answer for answer in answers if answer.status_code != 200]
        assert 4 <= len(answers) - len(refused) < 40
        assert assert_problem(refused[0], 429, "too fast")["title"] == "Too many"
        assert refused[0].headers["retry-after"] == "1"
        assert refused[0].headers["x-content-type-options"] == "nosniff"
        # Changes have a bucket of their own, and this one waits longer.
        answers = await asyncio.gather(*(http.post("/api/pause") for _ in range(10)))
        refused = [answer for answer in answers if answer.status_code == 429]
        assert [answer.status_code for answer in answers].count(404) == 10 - len(refused)
        assert 2 <= 10 - len(refused) < 10
        assert int(refused[0].headers["retry-after"]) in (1, 2)
        # A WebSocket is a call that reads.
        while (await http.get("/api/config")).status_code == 200:
            pass
        with pytest.raises(websockets.InvalidStatus) as refusal:
            async with watching(http):
                pass
        assert refusal.value.response.status_code == 429
        await asyncio.sleep(2)
        assert (await http.get("/api/config")).status_code == 200
        counted = await http.get("/metrics")
        metric = f'hybrid_http_requests_total{{method="POST",status="429"}} {len(refused)}.0'
        assert metric in counted.text


async def test_open_websockets_per_client_are_limited(arena: Arena) -> None:
    run = (await arena.run(schedulers=["greedy"], pace=1)).run
    settings = arena.settings.model_copy(update={"gateway_sockets_per_client": 2})
    async with serving(settings) as http:
        async with watching(http, run) as one, watching(http, run) as two:
            await one.next()
            await two.next()
            with pytest.raises(websockets.InvalidStatus) as refusal:
                async with watching(http, run):
                    pass
            assert refusal.value.response.status_code == 429
            body = refusal.value.response.body
            assert "2 WebSockets open" in json.loads(body)["detail"]
        async with watching(http, run) as again:
            assert (await again.next())["run"] == run


async def test_unknown_host_names_are_refused(arena: Arena) -> None:
    """DNS rebinding: the page's origin and the host it calls are the same, and not ours."""
    async with serving(arena.settings) as http:
        for method, path in (("GET", "/api/runs"), ("POST", "/api/pause"), ("GET", "/")):
            headers = {"host": "evil.example", "origin": "http://evil.example"}
            answer = await http.request(method, path, headers=headers)
            assert_problem(answer, 421, "HYBRID_GATEWAY_HOSTS")
        with pytest.raises(websockets.InvalidStatus) as refusal:
            async with watching(http, None, additional_headers={"Host": "evil.example"}):
                pass
        assert refusal.value.response.status_code in (400, 421)


def preflight(origin: str) -> dict[str, str]:
    """What a browser asks before a page of that origin may start a run."""
    return {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
    }


async def test_a_page_that_the_settings_name_may_call_and_no_other(arena: Arena) -> None:
    lab, allowed = "https://lab.example", "access-control-allow-origin"
    async with serving(arena.settings.model_copy(update={"gateway_origins": lab})) as http:
        answer = await http.options("/api/runs", headers=preflight(lab))
        assert (answer.status_code, answer.headers[allowed]) == (200, lab)
        assert "DELETE" in answer.headers["access-control-allow-methods"]
        assert "authorization" in answer.headers["access-control-allow-headers"].lower()
        assert "access-control-allow-credentials" not in answer.headers
        answer = await http.get("/api/runs", headers={"origin": lab})
        assert (answer.status_code, answer.headers[allowed]) == (200, lab)
        assert (await http.post("/api/pause", headers={"origin": lab})).status_code == 404
        for other in ("https://evil.example", "https://lab.example.evil.example", "null"):
            answer = await http.options("/api/runs", headers=preflight(other))
            assert (answer.status_code, allowed in answer.headers) == (400, False)
            answer = await http.get("/api/runs", headers={"origin": other})
            assert allowed not in answer.headers
    async with serving(arena.settings) as http:
        answer = await http.options("/api/runs", headers=preflight(lab))
        assert (answer.status_code, allowed in answer.headers) == (405, False)
        # An invalid origin is refused too.
        answer = await http.post("/api/pause", headers={"origin": "http://["})
        assert_problem(answer, 403)
        with pytest.raises(websockets.InvalidStatus) as refusal:
            async with watching(http, origin="http://["):
                pass
        assert refusal.value.response.status_code == 403
        # Invented methods share one time series.
        for method in ("SPAM", "SPAM2"):
            await http.request(method, "/api/runs")
        counted = (await http.get("/metrics")).text
        assert 'hybrid_http_requests_total{method="other",status="405"} 2.0' in counted
        assert "SPAM" not in counted


async def test_a_long_message_closes_the_websocket(arena: Arena) -> None:
    run = (await arena.run(schedulers=["greedy"], pace=1)).run
    async with serving(arena.settings) as http, watching(http, run) as watcher:
        await watcher.next()
        await watcher.connection.send("x" * 5000)
        assert await watcher.closed() == 1009


async def test_https_is_remembered_by_browsers(arena: Arena) -> None:
    async with serving(arena.settings) as http:
        assert "strict-transport-security" not in (await http.get("/")).headers
        # As a proxy on this machine sets it.
        answer = await http.get("/", headers={"x-forwarded-proto": "https"})
        assert answer.headers["strict-transport-security"] == "max-age=31536000"


async def test_slow_senders_are_cut_off(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(body_limit, "BODY_SECONDS", 0.5)
    async with serving(arena.settings) as http:
        silent, half, second, body = (opened(http) for _ in range(4))
        half.sendall(b"GET /api/config HTTP/1.1\r\nHost: localhost\r\nX-")
        second.sendall(b"GET /api/config HTTP/1.1\r\nHost: localhost\r\n\r\nGET /")
        head = b"POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
        body.sendall(head + b"Connection: close\r\n\r\n{")
        received = await asyncio.gather(*map(until_cut, (silent, half, second, body)))
        assert received[:2] == [b"", b""]
        assert received[2].startswith(b"HTTP/1.1 200")
        assert received[3].startswith(b"HTTP/1.1 408")
        assert (await http.get("/api/config")).status_code == 200


async def test_long_addresses_and_headers_are_refused(arena: Arena) -> None:
    async with serving(arena.settings) as http:
        for request in (
            b"GET /api/runs?before=" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 200_000 + b"\r\n\r\n",
        ):
            connection = opened(http)
            with contextlib.suppress(ConnectionError):  # it may hang up before all is sent
                connection.sendall(request)
            received = await until_cut(connection)
            assert received == b"" or received.startswith(b"HTTP/1.1 400")
        assert (await http.get("/api/config")).status_code == 200
