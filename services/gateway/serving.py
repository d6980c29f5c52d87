"""How the gateway is served: what a connection may cost before a call is complete, and after."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# A connection has this long to say what it wants, and then again after every answer.
HEAD_SECONDS = 15.0
# And this long to take an answer that is complete.
FLUSH_SECONDS = 30.0


class Impatient(H11Protocol):
    """Cuts connections that send a request byte by byte, or do not read the answer."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._start_timer()
        super().on_response_complete()

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()  # the call's own limits count now

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._stop_timer()
        super().handle_websocket_upgrade(event)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self.loop.call_later(FLUSH_SECONDS, self.transport.abort)

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


# Of uvicorn. A client's own messages on the WebSocket are a line of JSON.
OPTIONS: dict[str, Any] = {
    "http": Impatient,
    "h11_max_incomplete_event_size": 32_768,  # bytes of a request's line and headers
    "limit_concurrency": 5000,  # connections
    "ws_max_size": 4096,
    "ws_ping_interval": 20.0,
    "ws_ping_timeout": 20.0,
    "server_header": False,
}
