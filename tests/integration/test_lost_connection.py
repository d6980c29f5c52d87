"""A process whose NATS client will never connect again ends, so that it is started again."""

from __future__ import annotations

import asyncio

from deploy.local.arena import Ports
from shared.bus.client import Bus
from shared.runtime.settings import Settings
from tests.chaos.proxy import Proxy
from tests.integration.arena import Arena, connect, eventually
from tests.integration.nats_server import NatsServer


class BreaksOff(Proxy):
    """While told to, ends each new connection in the middle of the server's greeting."""

    breaks_off = False

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.breaks_off:
            writer.write(b"INFO")
            await writer.drain()
        else:
            await super()._forward(reader, writer)


async def test_a_client_that_the_server_turns_out_has_given_up(
    settings: Settings, nats_process: NatsServer
) -> None:
    bus = await connect(settings)
    assert bus.connected
    assert not bus.gave_up
    client = bus.broker._connection
    assert client is not None
    client._transport.write(b"nonsense\r\n")
    await eventually(lambda: bus.gave_up)


async def test_a_client_that_reconnects_has_not_given_up(
    settings: Settings, nats_process: NatsServer
) -> None:
    proxy = Proxy(Ports.free().nats, nats_process.port)
    await proxy.listen()
    bus = await connect(settings.model_copy(update={"nats_url": f"nats://127.0.0.1:{proxy.port}"}))
    proxy.refuse()
    await eventually(lambda: not bus.connected)
    assert not bus.gave_up
    await proxy.listen()
    await eventually(lambda: bus.connected)
    await bus.broker.stop()
    await proxy.close()


async def test_a_process_ends_when_its_client_has_given_up(
    arena: Arena, bus: Bus, nats_process: NatsServer
) -> None:
    proxy = BreaksOff(Ports.free().nats, nats_process.port)
    await proxy.listen()
    url = f"nats://127.0.0.1:{proxy.port}"
    process = arena.process("scheduler", policy="greedy", nats_url=url)

    async def is_up() -> bool:
        return any(report.scheduler == "greedy" for report in await bus.roll_call())

    await eventually(is_up)
    proxy.breaks_off = True
    proxy.cut()
    await eventually(lambda: process.poll() is not None)
    await proxy.close()
