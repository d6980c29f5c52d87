"""Serves services in one process until SIGTERM or SIGINT, or until one of them ends."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import uvicorn


class ServiceServer(uvicorn.Server):
    """uvicorn looks for a signal only when the application has started."""

    def __init__(
        self, config: uvicorn.Config, listening: socket.socket, stop_starting: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._listening = listening
        self._stop_starting = stop_starting
        self._others: Sequence[ServiceServer] = ()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """`run` does it, once for all servers of the process."""
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        for server in (self, *self._others):
            server.stop()

    def stop(self) -> None:
        self.should_exit = True
        if not self.started:
            self._stop_starting()

    async def serve_socket(self) -> None:
        await self.serve(sockets=[self._listening])


def run(*servers: ServiceServer) -> None:
    asyncio.run(_serve(servers))
    if not all(server.started for server in servers):
        sys.exit(1)


async def _serve(servers: Sequence[ServiceServer]) -> None:
    first, *first._others = servers
    with uvicorn.Server.capture_signals(first):
        serving = [asyncio.create_task(server.serve_socket()) for server in servers]
        await asyncio.wait(serving, return_when=asyncio.FIRST_COMPLETED)
        for server in servers:
            server.stop()
        await asyncio.gather(*serving)
