"""The NATS nodes of an arena: which one leads a stream, and how long losing one stops results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import StreamInfo

from deploy.local.arena import Arena, find
from deploy.local.nats import node_names
from services.cli.settings import settings_of
from shared.messages import batches, subjects
from tests.counting import once
from tests.e2e.arena import RULES, ArenaProcess
from tests.waiting import PATIENCE


class Cluster:
    def __init__(self, arena: ArenaProcess) -> None:
        self._process = arena
        found = find(arena.folder)
        self.arena: Arena = found
        self.names = node_names(len(found.ports.nats_nodes))

    async def connect(self, user: str, node: str | None = None) -> Client:
        """To one node, or to any."""
        settings = settings_of(self.arena, user)
        servers = settings.nats_servers
        return await nats.connect(
            servers if node is None else servers[self.names.index(node)],
            user=user,
            password=settings.nats_password.get_secret_value(),
            inbox_prefix=subjects.inbox(user),
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.2,
            error_cb=_ignore,
        )

    async def info(self, stream: str) -> StreamInfo:
        client = await self.connect("generator")
        try:
            return await _patiently(client.jetstream(), stream)
        finally:
            await client.close()

    async def leader(self, stream: str) -> str:
        cluster = (await self.info(stream)).cluster
        assert cluster.leader is not None
        return cluster.leader

    async def in_sync(self) -> None:
        """Wait until every node has every stream."""
        deadline = time.monotonic() + PATIENCE
        while True:
            lagging = [name for name in STREAMS if not _current(await self.info(name))]
            if not lagging:
                return
            assert time.monotonic() < deadline, f"nodes lag in {lagging}"
            await asyncio.sleep(0.3)

    async def in_sync_while_paused(self, run: str) -> None:
        """However long that takes, the run does not end meanwhile."""
        self._process.pause(run)
        await self.in_sync()
        self._process.resume(run)

    def kill(self, node: str) -> None:
        """kill -9; the arena starts it again."""
        (found,) = self._process.processes(f"/{node}.conf")
        found.kill()


STREAMS = (subjects.TASKS, subjects.DECISIONS, subjects.RESULTS, subjects.RUNS_STREAM)


async def _patiently(stream: JetStreamContext, name: str) -> StreamInfo:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            info = await stream.stream_info(name)
            if info.cluster is not None and info.cluster.leader:
                return info
        except nats.errors.Error:
            pass
        await asyncio.sleep(0.5)
    raise AssertionError(f"{name} has no leader")


def _current(info: StreamInfo) -> bool:
    peers = (info.cluster.replicas or []) if info.cluster else []
    return len(peers) + 1 == info.config.num_replicas and all(
        peer.current and not peer.offline for peer in peers
    )


async def _ignore(error: Exception) -> None:
    """Broken connections are expected here."""


class Watcher:
    """Notes how long after the batch before it each new batch of a scheduler's results comes."""

    def __init__(self, run: str, scheduler: str) -> None:
        self.subject = subjects.results(run, scheduler)
        self._newest = -1
        self._at = time.monotonic()
        self.gaps: list[float] = []

    async def take(self, message: Msg) -> None:
        batch = batches.decode(message.data, self.subject).envelope.batch
        if batch > self._newest:  # others are published again
            now = time.monotonic()
            self.gaps.append(now - self._at)
            self._newest, self._at = batch, now

    async def new(self, count: int) -> None:
        """Wait for so many batches more."""
        wanted = len(self.gaps) + count
        deadline = time.monotonic() + PATIENCE
        while len(self.gaps) < wanted:
            assert time.monotonic() < deadline, f"no results on {self.subject}"
            await asyncio.sleep(0.05)


@asynccontextmanager
async def watching(cluster: Cluster, node: str, run: str, scheduler: str) -> AsyncIterator[Watcher]:
    """Through a node that will not be killed, or the pause of this connection would be measured."""
    client = await cluster.connect("admin", node)
    watcher = Watcher(run, scheduler)
    await client.subscribe(watcher.subject, cb=watcher.take)
    try:
        await watcher.new(2)
        yield watcher
    finally:
        await client.close()


async def pause_after_losing(cluster: Cluster, run: str, *, leader: bool) -> list[float]:
    """Kill the node that leads RESULTS, or one that does not; gives the gaps from then on."""
    await cluster.in_sync()
    leading = await cluster.leader(subjects.RESULTS)
    others = [name for name in cluster.names if name != leading]
    victim, safe = (leading, others[0]) if leader else (others[0], others[1])
    async with watching(cluster, safe, run, "greedy") as watcher:
        before = len(watcher.gaps)
        cluster.kill(victim)
        await watcher.new(60)
        return watcher.gaps[before:]


def exactly_once(arena: ArenaProcess, run: str, tasks: int) -> bool:
    """Whether ClickHouse has one result for every task and scheduler, and none was rejected."""
    letters = arena.http.get("/api/rejected").json()["total"]
    return letters == 0 and arena.counted(run) == once(tasks, RULES)
