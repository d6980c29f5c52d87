from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import httpx
import nats
import pytest
from pydantic import SecretStr

from services.gateway.tasks import bulk
from services.generator import emitter, generator
from services.simulator import assignment
from shared.bus import service
from shared.bus.client import Bus
from shared.messages.runs import RunRecord
from shared.runtime.settings import Settings
from tests.integration import clickhouse_server, nats_server
from tests.integration.arena import Arena, connect, wipe
from tests.integration.gateway import serving
from tests.integration.nats_server import NatsServer
from tests.integration.partitions import SPEC

_databases = itertools.count()


@pytest.fixture(scope="session")
def nats_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with nats_server.running(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture(scope="session")
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clickhouse_server.Server]:
    with clickhouse_server.running(tmp_path_factory.mktemp("clickhouse")) as server:
        yield server


def settings_for(nats_url: str, clickhouse_url: str = "http://127.0.0.1:1") -> Settings:
    """As in production, with shorter timeouts and smaller batches."""
    return Settings(
        nats_url=nats_url,
        nats_user=nats_server.USER,
        nats_password=SecretStr(nats_server.PASSWORD),
        clickhouse_url=clickhouse_url,
        clickhouse_password=SecretStr(clickhouse_server.WRITER_PASSWORD),
        clickhouse_database=f"test{next(_databases)}",
        log_level="error",
        ack_wait=timedelta(seconds=2),
        retry_delay=timedelta(milliseconds=50),
        publish_timeout=timedelta(seconds=2),
        tick=timedelta(milliseconds=10),
        watch_interval=timedelta(milliseconds=20),
        record_linger=timedelta(milliseconds=20),
        batch_tasks=50,
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter intervals for what is a constant in production."""
    monkeypatch.setattr(generator, "TRIM_SECONDS", 0.1)
    monkeypatch.setattr(generator, "SLOW_TRIM_SECONDS", 0.1)
    monkeypatch.setattr(generator, "COMPLETE_SECONDS", 0.05)
    monkeypatch.setattr(emitter, "STANDBY_SECONDS", 0.1)
    monkeypatch.setattr(assignment, "REBALANCE_SECONDS", 0.5)
    monkeypatch.setattr(service, "CHECK_SECONDS", 0.1)


@pytest.fixture
async def settings(nats_process: NatsServer) -> Settings:
    """Settings for a NATS without streams; no ClickHouse."""
    client = await nats.connect(
        nats_process.url, user=nats_server.USER, password=nats_server.PASSWORD
    )
    await wipe(client)
    await client.close()
    return settings_for(nats_process.url)


@pytest.fixture
def stored(settings: Settings, clickhouse: clickhouse_server.Server) -> Settings:
    """Settings for a NATS without streams and a database without tables."""
    return settings.model_copy(update={"clickhouse_url": clickhouse.url})


@pytest.fixture
async def bus(settings: Settings) -> AsyncIterator[Bus]:
    bus = await connect(settings)
    yield bus
    await bus.broker.stop()


@pytest.fixture
async def arena(impatient: None, stored: Settings, bus: Bus) -> AsyncIterator[Arena]:
    """No services yet; the test starts them."""
    arena = Arena(stored, bus)
    await arena.runs.open()
    yield arena
    await arena.close()


@pytest.fixture
async def run(arena: Arena) -> RunRecord:
    return await arena.run(**SPEC)


@pytest.fixture
async def http(arena: Arena) -> AsyncIterator[httpx.AsyncClient]:
    """A gateway with a recorder behind it; workers as the test starts them."""
    await arena.start("recorder")
    async with serving(arena.settings) as client:
        yield client


@pytest.fixture
async def submitting(
    arena: Arena, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of greedy for submitted runs; a full arena refuses tasks without a long wait."""
    monkeypatch.setattr(bulk, "HOLD_SECONDS", 0.2)
    await arena.schedulers("greedy")
