"""TLS by settings: clients that know the authority get through, others and plain text do not."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from deploy.local.arena import Certificates
from deploy.local.certificates import load_or_make
from shared.bus.client import Bus
from shared.runtime.settings import Settings
from shared.runtime.tls import client_context
from shared.store.client import Store, StoreError
from tests.integration import clickhouse_server, nats_server
from tests.integration.conftest import settings_for
from tests.integration.nats_server import NatsServer


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return load_or_make(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """The certificates of another arena."""
    return load_or_make(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(scope="module")
def server(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NatsServer]:
    with nats_server.running(tmp_path_factory.mktemp("nats"), certificates) as started:
        yield started


@pytest.fixture
def settings(server: NatsServer, certificates: Certificates) -> Settings:
    return settings_for(server.url).model_copy(update={"nats_tls_ca": certificates.authority})


async def test_a_service_speaks_tls_with_nats(settings: Settings) -> None:
    bus = Bus(settings, "test", CollectorRegistry(), creates_streams=True)
    await bus.connect()
    sequence = await bus.publish("tasks.r1", b"x", stream="TASKS", message_id="one")
    assert sequence == 1
    await bus.broker.stop()


def test_a_plain_text_client_gets_no_answer(server: NatsServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 20) as line:
        line.settimeout(20)
        line.sendall(b'CONNECT {"user": "tester"}\r\nPING\r\n')
        received = line.recv(4096)
    assert b"INFO" not in received
    assert b"PONG" not in received


def test_the_certificate_of_another_arena_is_not_trusted(
    server: NatsServer, stranger: Certificates
) -> None:
    with (
        socket.create_connection(("127.0.0.1", server.port), 20) as line,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        client_context(stranger.authority).wrap_socket(line, server_hostname="127.0.0.1")


def test_the_store_speaks_tls_with_clickhouse(
    certificates: Certificates, stranger: Certificates, tmp_path: Path
) -> None:
    shown = ("--tls-cert", str(certificates.certificate), "--tls-key", str(certificates.key))
    with clickhouse_server.running(tmp_path, *shown) as server:
        known = settings_for("nats://nobody", server.url).model_copy(
            update={"clickhouse_tls_ca": certificates.authority}
        )
        store = Store(known)
        assert server.url.startswith("https://")
        assert store.query("SELECT 1 AS one") == [{"one": 1}]
        store.close()
        for update in (
            {"clickhouse_tls_ca": stranger.authority},
            {"clickhouse_url": server.url.replace("https", "http"), "clickhouse_tls_ca": None},
        ):
            with pytest.raises(StoreError):
                Store(known.model_copy(update=update)).query("SELECT 1")
