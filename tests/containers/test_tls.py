"""The arena in containers with deploy/compose.tls.yml: a run completes, nothing is plain text."""

from __future__ import annotations

import httpx
import pytest

from deploy.certificates import make
from tests.containers.cluster import Cluster
from tests.counting import COUNTED, once
from tests.e2e.arena import RULES

TASKS = 2000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    folder = tmp_path_factory.mktemp("cluster")
    certificates = make(folder / "tls", [])
    return Cluster(
        folder,
        "deploy/compose.tls.yml",
        authority=certificates.authority,
        HYBRID_TLS_FOLDER=str(certificates.authority.parent),
    )


def test_a_run_completes_over_tls(cluster: Cluster) -> None:
    run = cluster.start_run(tasks=TASKS, seed=7, pace="max", schedulers=list(RULES))
    cluster.complete(run)
    assert cluster.sql(COUNTED.format(run=run)) == once(TASKS, RULES)


@pytest.mark.parametrize("setting", ["HYBRID_PUBLISH", "HYBRID_CLICKHOUSE_PORT"])
def test_plain_text_is_not_answered(cluster: Cluster, setting: str) -> None:
    place = cluster.settings[setting].removeprefix("127.0.0.1:")
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://127.0.0.1:{place}/ping").raise_for_status()


def test_nats_begins_with_a_handshake(cluster: Cluster) -> None:
    """It would greet with INFO in plain text otherwise."""
    ask = "import socket; print(socket.create_connection(('nats', 4222), 30).recv(4))"
    (simulator,) = cluster.containers("simulator")
    code, output = simulator.exec_run(["python", "-c", ask])
    # It says nothing, and hangs up when no handshake comes.
    assert (code, output.strip()) == (0, b"b''")
