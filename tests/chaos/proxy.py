"""A small TCP proxy between the services and NATS or ClickHouse that injects faults.

It forwards bytes, slowly if need be; it can cut every connection, refuse new ones, and answer HTTP
requests with an error in place of the server.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

PIECE = 64 * 1024

MEMORY_LIMIT = (
    "Code: 241. DB::Exception: Memory limit (total) exceeded: would use 3.00 GiB. "
    "(MEMORY_LIMIT_EXCEEDED)\n"
)


@dataclass(frozen=True, slots=True)
class Network:
    latency: float = 0.0  # seconds for each piece
    bytes_per_s: float = float("inf")

    def delay(self, size: int) -> float:
        return self.latency + size / self.bytes_per_s


FAST_NETWORK = Network()


class Proxy:
    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self.network = FAST_NETWORK
        self.error: str | None = None  # answered to every request while set
        self.accepted = 0
        self._target = target
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, backlog=1024
        )

    def refuse(self) -> None:
        """Stop listening, and cut every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()

    def cut(self) -> None:
        """Break every connection, in the middle of a message too."""
        for writer in self._open:
            writer.transport.abort()

    async def close(self) -> None:
        self.refuse()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._open.add(writer)
        try:
            if self.error is not None:
                await answer_error(reader, writer, self.error)
            else:
                await self._forward(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # one side is gone
        finally:
            self._open.discard(writer)
            await _close(writer)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._open.add(other_writer)
        pipes = [
            asyncio.create_task(self._pipe(reader, other_writer)),
            asyncio.create_task(self._pipe(other_reader, writer)),
        ]
        try:
            await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pipe in pipes:
                pipe.cancel()
            await asyncio.gather(*pipes, return_exceptions=True)
            self._open.discard(other_writer)
            await _close(other_writer)

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE):
            if self.network is not FAST_NETWORK:
                await asyncio.sleep(self.network.delay(len(piece)))
            writer.write(piece)
            await writer.drain()


async def answer_error(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, error: str
) -> None:
    """Read a request and answer it with an error as ClickHouse does."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    headers = dict(line.split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
    if "chunked" in headers.get("transfer-encoding", ""):
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    else:
        await reader.readexactly(int(headers.get("content-length", "0")))
    body = error.encode()
    code = error.split()[1].rstrip(".")
    writer.write(
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\nConnection: close\r\n"
        + f"X-ClickHouse-Exception-Code: {code}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        writer.close()
        await writer.wait_closed()
