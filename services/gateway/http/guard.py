"""Checked before every request: the host name, request rates, open WebSockets.

A client is an address (for IPv6 its /64 network, which usually belongs to one machine).
The number of clients that are kept in memory is limited.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from fastapi import Response
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from services.gateway.http.problems import problem
from shared.runtime.bounded_dict import BoundedDict
from shared.runtime.settings import Settings

# A client may send the requests of this many seconds at once.
BURST_SECONDS = 4.0
MOST_CLIENTS = 10_000
READING = ("GET", "HEAD", "OPTIONS")


class RateLimit:
    """A token bucket for each client."""

    def __init__(self, per_second: float, most_clients: int = MOST_CLIENTS) -> None:
        self._per_second = per_second
        self._burst = max(per_second * BURST_SECONDS, 1.0)
        # By client: tokens, and when they were counted. If there are too many clients, the one that
        # has been quiet longest is dropped: it has the fullest bucket, so it loses least.
        self._buckets: BoundedDict[str, tuple[float, float]] = BoundedDict(most_clients)

    def wait(self, client: str, now: float) -> float:
        """Take a token; if there is none, the seconds until there is."""
        if self._per_second == 0:
            return 0.0
        tokens, at = self._buckets.get(client, (self._burst, now))
        tokens = min(tokens + (now - at) * self._per_second, self._burst)
        allowed = tokens >= 1.0
        self._buckets[client] = (tokens - 1.0 if allowed else tokens, now)
        return 0.0 if allowed else (1.0 - tokens) / self._per_second

    def __len__(self) -> int:
        return len(self._buckets)


class AllowedHosts:
    """Host names under which the gateway answers (against DNS rebinding).

    An attacker's page can let its own name point to this machine and would then have the gateway's
    origin. Addresses and names without a dot cannot be claimed that way; any other name has to be
    in the settings.
    """

    def __init__(self, settings: Settings) -> None:
        hosts = {part.strip().lower() for part in settings.gateway_hosts.split(",")}
        origins = (urlsplit(part.strip()) for part in settings.gateway_origins.split(","))
        self._named = {*hosts, *(origin.hostname or "" for origin in origins)} - {""}

    def allow(self, headers: Mapping[str, str]) -> bool:
        host = headers.get("host", "")
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return "*" in self._named or name in self._named or _cannot_be_claimed(name)


def _cannot_be_claimed(name: str) -> bool:
    if "." not in name or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """The outermost middleware that may refuse a request."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._hosts = AllowedHosts(settings)
        self._reads = RateLimit(settings.gateway_reads_per_second)
        self._changes = RateLimit(settings.gateway_changes_per_second)
        self._most_sockets = settings.gateway_sockets_per_client
        self._sockets: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        client = client_of(scope)
        if refusal := self._refusal(client, scope):
            await refusal(scope, receive, send)
        elif scope["type"] == "http":
            await self._app(scope, receive, send)
        else:
            await self._connect(client, scope, receive, send)

    def _refusal(self, client: str, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self._hosts.allow(headers):
            host = headers.get("host", "")[:100]
            detail = f"{host!r} is not in HYBRID_GATEWAY_HOSTS"
            return problem(421, "Unknown host name", detail)
        websocket = scope["type"] == "websocket"
        rate = self._reads if websocket or scope["method"] in READING else self._changes
        if wait := rate.wait(client, time.monotonic()):
            return _too_many("requests come too fast", wait)
        if websocket and self._sockets[client] >= self._most_sockets:
            return _too_many(f"one client may have {self._most_sockets} WebSockets open", 1.0)
        return None

    async def _connect(self, client: str, scope: Scope, receive: Receive, send: Send) -> None:
        self._sockets[client] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._sockets[client] -= 1
            if not self._sockets[client]:
                del self._sockets[client]


def client_of(scope: Mapping[str, Any]) -> str:
    address = (scope.get("client") or ("",))[0]
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return str(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed.packed[:8] + bytes(8), 64)))
    return str(parsed)


def _too_many(detail: str, wait: float) -> Response:
    response = problem(429, "Too many", detail)
    response.headers["Retry-After"] = str(max(math.ceil(wait), 1))
    return response
