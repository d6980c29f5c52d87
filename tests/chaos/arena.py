"""An embedded arena whose services reach NATS and ClickHouse through proxies that inject faults."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from deploy.local.arena import Ports
from deploy.local.processes import Child
from deploy.local.stack import Plan, Stack
from services.cli.settings import settings_of
from tests.chaos.clickhouse import ClickHouse
from tests.chaos.disk import Disk
from tests.chaos.proxy import Proxy
from tests.waiting import PATIENCE

PROGRESS = """
    SELECT scheduler, max(tasks) AS tasks FROM standings WHERE run = {run:String} GROUP BY scheduler
"""


class ChaosArena:
    def __init__(self, stack: Stack, nats: Proxy, clickhouse: Proxy, disk: Disk | None) -> None:
        self._stack = stack
        self.nats, self.clickhouse, self.disk = nats, clickhouse, disk
        arena = stack.arena
        self.http = httpx.AsyncClient(base_url=arena.url, timeout=60)
        # Past the proxy: the checker must see what is stored at any time.
        settings = settings_of(arena)
        self.tables = ClickHouse(
            settings.clickhouse_url, "analyst", arena.secrets.analyst, settings.clickhouse_database
        )

    @property
    def children(self) -> dict[str, Child]:
        return {child.name: child for child in self._stack.children}

    @property
    def restarts(self) -> Counter[str]:
        return Counter({child.name: child.restarts for child in self._stack.children})

    async def start_run(self, spec: dict[str, Any], timeout: float = PATIENCE) -> str:
        """Retried until the gateway accepts the run: it may be down just now."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                answer = await self.http.post("/api/runs", json=spec)
                if answer.status_code == 201:
                    return str(answer.json()["run"])
                problem = answer.text
            except httpx.HTTPError as error:
                problem = repr(error)
            if time.monotonic() > deadline:
                raise AssertionError(f"no run can be started: {problem}")
            await asyncio.sleep(0.5)

    async def progress(self, run: str) -> dict[str, int]:
        """Tasks whose results are stored, by scheduler; nothing while ClickHouse is down."""
        try:
            rows = await asyncio.to_thread(self.tables.rows, PROGRESS, {"run": run})
        except (httpx.HTTPError, RuntimeError):
            return {}
        return {row["scheduler"]: int(row["tasks"]) for row in rows}

    async def complete(self, run: str, timeout: float) -> None:
        """Wait until the run is completed, in ClickHouse too."""
        deadline = time.monotonic() + timeout
        seen: Any = None
        while time.monotonic() < deadline:
            try:
                query = "SELECT state FROM runs FINAL WHERE run = {run:String}"
                seen = await asyncio.to_thread(self.tables.rows, query, {"run": run})
                if seen and seen[0]["state"] == "completed":
                    return
            except (httpx.HTTPError, RuntimeError) as error:
                seen = error
            await asyncio.sleep(0.5)
        stored = await self.progress(run)
        raise AssertionError(f"run {run} is not complete after {timeout:.0f} s: {seen}, {stored}")


@asynccontextmanager
async def chaos_arena(
    folder: Path,
    schedulers: tuple[str, ...],
    disk: Disk | None = None,
    scale: dict[str, int] | None = None,
) -> AsyncIterator[ChaosArena]:
    ports, proxied = Ports.free(), Ports.free()
    while {ports.nats, ports.clickhouse, ports.gateway} & {proxied.nats, proxied.clickhouse}:
        proxied = Ports.free()
    nats = Proxy(proxied.nats, ports.nats)
    clickhouse = Proxy(proxied.clickhouse, ports.clickhouse)
    settings = {
        "HYBRID_NATS_URL": f"nats://127.0.0.1:{nats.port}",
        "HYBRID_CLICKHOUSE_URL": f"http://127.0.0.1:{clickhouse.port}",
    }
    stack = Stack(Plan(folder, ports, schedulers, scale or {}, settings=settings))
    arena = ChaosArena(stack, nats, clickhouse, disk)
    await nats.listen()
    await clickhouse.listen()
    try:
        await stack.start()
        assert nats.accepted, "the services do not use the proxy to NATS"
        assert clickhouse.accepted, "the services do not use the proxy to ClickHouse"
        yield arena
    finally:
        await arena.http.aclose()
        arena.tables.close()
        await stack.stop()
        await nats.close()
        await clickhouse.close()
