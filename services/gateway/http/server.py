"""Options of the HTTP server, and timeouts for slow clients."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# For the line and headers of a request.
HEAD_SECONDS = 15.0
# For a client to read what was sent to it.
READ_SECONDS = 30.0


class TimeoutProtocol(H11Protocol):
    """Aborts connections of clients that send a request, or read a response, too slowly.

    uvicorn has no such timeouts. All but `cycle`, the current request, is asyncio's own interface.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio then pauses whenever bytes are unsent. With 0, TLS would pause without any.
        transport.set_write_buffer_limits(high=1, low=0)
        self._head_timer = self.loop.call_later(HEAD_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._stop_read_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.get_protocol() is not self:  # it has become a WebSocket
            self._stop_head_timer()
            self._stop_read_timer()
            self.transport.set_write_buffer_limits()
        elif self.cycle is not None and not self.cycle.response_complete:
            self._stop_head_timer()  # from here on the body has its own limit
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._read_timer = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_read_timer()
        super().resume_writing()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()


# uvicorn's options.
OPTIONS: dict[str, Any] = {
    "http": TimeoutProtocol,
    "h11_max_incomplete_event_size": 32_768,  # bytes of a request's line and headers
    "limit_concurrency": 5000,  # connections
    "ws_max_size": 4096,
    "ws_ping_interval": 20.0,
    "ws_ping_timeout": 20.0,
    "server_header": False,
}
