"""`hybrid up --tls`: everything that listens speaks TLS, and the commands find their way."""

from __future__ import annotations

import json
import re
import socket
import ssl
import stat
from collections.abc import Iterator

import psutil
import pytest

from deploy.local.arena import Arena, find
from tests.e2e.arena import RULES, ArenaProcess, hybrid

pytestmark = pytest.mark.long

TASKS = 600


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArenaProcess]:
    folder = tmp_path_factory.mktemp("tls") / "data"
    started = ArenaProcess(folder, "--idle", "--tls", "--nats-nodes", "3")
    yield started
    assert started.stop() == 0


@pytest.fixture
def described(arena: ArenaProcess) -> Arena:
    found = find(arena.folder)
    assert found is not None
    return found


def test_a_run_completes(arena: ArenaProcess) -> None:
    assert arena.announced["url"].startswith("https://")
    run = arena.start_run(tasks=TASKS, pace="max")
    arena.complete(run)
    rows = arena.fingerprints(run)
    assert [row["scheduler"] for row in rows] == list(RULES)
    assert all(row["results"] == row["tasks"] == TASKS for row in rows)


def test_the_commands_find_addresses_and_authority(arena: ArenaProcess) -> None:
    where = ("--data-dir", str(arena.folder))
    status = hybrid("status", "--json", *where)
    assert json.loads(status.stdout)["health"]["status"] == "ok", status.stderr
    answer = hybrid("sql", "SELECT 1 AS one", "--json", *where)
    assert json.loads(answer.stdout) == {"one": 1}, answer.stderr
    run = arena.start_run(pace=50)
    tailed = hybrid("tail", f"tasks.{run}", "--count", "1", "--json", *where)
    assert json.loads(tailed.stdout)["run"] == run, tailed.stderr
    arena.http.post("/api/simulation/stop", params={"run": run})


def test_no_port_answers_in_plain_text(arena: ArenaProcess, described: Arena) -> None:
    """Whatever listens: NATS and its routes, ClickHouse, the gateway, every service's health."""
    listening = {
        connection.laddr.port
        for child in arena.processes("")
        for connection in child.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    ports = described.ports
    assert {ports.gateway, ports.clickhouse, *ports.nats_nodes, *ports.routes} <= listening
    assert len(listening) > 15
    assert {port: plain_answer(port) for port in listening} == dict.fromkeys(listening, b"")


def plain_answer(port: int) -> bytes:
    """What a plain-text client receives; a TLS alert does not count."""
    with socket.create_connection(("127.0.0.1", port), 60) as line:
        line.settimeout(60)
        line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            received = line.recv(4096)
        except (ConnectionResetError, TimeoutError):
            return b""
    return b"" if re.match(rb"\x15\x03", received) else received


def test_clients_without_the_authority_do_not_trust_the_certificate(described: Arena) -> None:
    for port in (described.ports.gateway, described.ports.clickhouse, described.ports.nats):
        with (
            socket.create_connection(("127.0.0.1", port), 60) as line,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            ssl.create_default_context().wrap_socket(line, server_hostname="127.0.0.1")


def test_only_the_owner_can_read_keys(arena: ArenaProcess) -> None:
    keys = list((arena.folder / "tls").glob("*.key"))
    assert {key.name for key in keys} == {"ca.key", "server.key"}
    assert all(stat.S_IMODE(key.stat().st_mode) == 0o600 for key in keys)
