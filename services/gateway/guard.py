"""What stands before every call: known host names, rates, numbers of connections.

A client is an address (of IPv6 its network of 64 bits, which one machine usually has for itself).
Nothing here keeps more than a fixed number of clients in mind.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from services.gateway.problems import problem
from shared.settings import Settings

# Seconds' worth of calls that a client may make at once.
BURST_SECONDS = 4.0
KNOWN_CLIENTS = 10_000
READING = ("GET", "HEAD", "OPTIONS")


class Rates:
    """A bucket of calls for each client, filled at a steady rate."""

    def __init__(self, per_second: float, known: int = KNOWN_CLIENTS) -> None:
        self._per_second = per_second
        self._burst = max(per_second * BURST_SECONDS, 1.0)
        self._known = known
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # calls left, when

    def wait(self, client: str, now: float) -> float:
        """Take a call from the bucket; if it is empty, the seconds until one is in it."""
        if self._per_second == 0:
            return 0.0
        left, at = self._buckets.get(client, (self._burst, now))
        left = min(left + (now - at) * self._per_second, self._burst)
        taken = left >= 1.0
        self._buckets[client] = (left - 1.0 if taken else left, now)
        self._buckets.move_to_end(client)
        # Those who have not called for longest have the fullest buckets: forgetting them is fair.
        while len(self._buckets) > self._known:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1.0 - left) / self._per_second

    def __len__(self) -> int:
        return len(self._buckets)


class Hosts:
    """Names under which the gateway may be called.

    A page of a stranger can have its own name point to this machine, and would then be of the same
    origin as the gateway (DNS rebinding). It cannot do so with an address, nor with a name without
    a dot; any other name has to be in the settings.
    """

    def __init__(self, settings: Settings) -> None:
        named = {part.strip().lower() for part in settings.gateway_hosts.split(",")}
        origins = (urlsplit(part.strip()) for part in settings.gateway_origins.split(","))
        self._named = {*named, *(origin.hostname or "" for origin in origins)} - {""}

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
    """Refuses, before anything else looks at the call."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._hosts = Hosts(settings)
        self._reads = Rates(settings.gateway_reads_per_second)
        self._changes = Rates(settings.gateway_changes_per_second)
        self._most_sockets = settings.gateway_sockets_per_client
        self._sockets: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not self._hosts.allow(headers):
            said = headers.get("host", "")[:100]
            refusal = problem(
                421, "Not the name of this host", f"{said!r} is not in HYBRID_GATEWAY_HOSTS"
            )
            await refusal(scope, receive, send)
            return
        client = client_of(scope)
        reads = scope["type"] == "websocket" or scope["method"] in READING
        wait = (self._reads if reads else self._changes).wait(client, time.monotonic())
        if wait:
            await _too_many("calls come too fast", wait)(scope, receive, send)
        elif scope["type"] == "http":
            await self._app(scope, receive, send)
        elif self._sockets[client] >= self._most_sockets:
            said = f"one client may have {self._most_sockets} WebSockets open"
            await _too_many(said, 1.0)(scope, receive, send)
        else:
            await self._connect(client, scope, receive, send)

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


def _too_many(detail: str, wait: float) -> Any:
    refusal = problem(429, "Too many", detail)
    refusal.headers["Retry-After"] = str(max(math.ceil(wait), 1))
    return refusal
