"""A server for these tests, and its clients."""

import itertools
from collections.abc import Iterator

import pytest
from clickhouse_connect.driver.client import Client

from tests.integration.clickhouse_server import ANALYST_PASSWORD, Server, running

_numbers = itertools.count()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("clickhouse")) as started:
        yield started


@pytest.fixture(scope="package")
def client(server: Server) -> Iterator[Client]:
    with server.client() as connected:
        yield connected


@pytest.fixture(scope="package")
def analyst(server: Server) -> Iterator[Client]:
    with server.client(username="analyst", password=ANALYST_PASSWORD) as connected:
        yield connected


@pytest.fixture
def table(client: Client) -> str:
    name = f"t{next(_numbers)}"
    client.command(f"CREATE TABLE {name} (a UInt64, b String) ENGINE = MergeTree ORDER BY a")
    return name
