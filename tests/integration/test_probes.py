"""The probes of an orchestrator: while NATS is down a service is alive, but not healthy."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from shared.bus import service
from tests.integration import nats_server
from tests.integration.arena import Arena, connect, eventually
from tests.integration.conftest import settings_for
from tests.integration.gateway import serving


async def answers(client: httpx.AsyncClient) -> tuple[int, int]:
    return (await client.get("/alive")).status_code, (await client.get("/health")).status_code


async def test_services_are_alive_but_not_healthy_while_nats_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "CHECK_SECONDS", 0.1)
    with nats_server.running(tmp_path) as server:
        settings = settings_for(server.url)
        arena = Arena(settings, await connect(settings))
        await arena.runs.open()
        generator = await arena.start("generator")
        inside = httpx.ASGITransport(generator.app())
        async with (
            httpx.AsyncClient(transport=inside, base_url="http://generator") as bare,
            serving(settings) as gateway,
        ):

            async def well() -> bool:
                return [await answers(c) for c in (bare, gateway)] == [(204, 200)] * 2

            async def unwell() -> bool:
                return [await answers(c) for c in (bare, gateway)] == [(204, 503)] * 2

            await eventually(well)
            server.kill()
            await eventually(unwell)
            server.start()
            await eventually(well)
        await arena.close()
        await arena.bus.broker.stop()
