"""A disk that is full while the engine merges."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from tests.chaos.disk import Disk, DiskUnavailable
from tests.integration.clickhouse_server import Server, running
from tests.waiting import PATIENCE, until

PARTS = 10
CONTENT = "SELECT count(), sum(a), sum(cityHash64(b)) FROM t"
MERGES = "SELECT count() FROM system.merges WHERE table = 't'"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    try:
        small = Disk(tmp_path / "data")
    except DiskUnavailable as reason:
        pytest.skip(f"no disk to fill: {reason}")
    yield small
    small.close()


def write_parts(client: Client, rows: int) -> None:
    client.command("CREATE TABLE t (a UInt64, b String) ENGINE = MergeTree ORDER BY a")
    client.command("SYSTEM STOP MERGES t")
    for part in range(PARTS):
        client.command(
            f"INSERT INTO t SELECT number * {PARTS} + {part}, randomString(100) "
            f"FROM numbers({rows})"
        )
    client.command("SYSTEM START MERGES t")


def merge(server: Server) -> None:
    # The server may exit meanwhile.
    with suppress(ClickHouseError), server.client() as client:
        client.command("OPTIMIZE TABLE t FINAL")


# A large merge is stopped in time; a small one finishes before the check, and has to be undone.
@pytest.mark.parametrize("rows", [150_000, 20_000])
def test_a_merge_on_a_full_disk_loses_nothing(disk: Disk, tmp_path: Path, rows: int) -> None:
    with running(tmp_path / "data") as server:
        client = server.client()
        write_parts(client, rows)
        before = client.query(CONTENT).result_rows
        merging = threading.Thread(target=merge, args=[server])
        merging.start()
        while merging.is_alive() and client.query(MERGES).result_rows == [(0,)]:
            pass
        disk.fill()
        merging.join(PATIENCE)

        def readable() -> bool:
            with suppress(ClickHouseError):
                return bool(client.query(CONTENT).result_rows == before)
            return False

        # The merge had finished before or failed, or the server ends because of the broken part.
        until(lambda: readable() or server.process.poll() == 1)
    disk.empty()  # without one free block the server refuses to start
    with running(tmp_path / "data") as server:
        client = server.client()
        assert client.query(CONTENT).result_rows == before
        merge(server)
        assert client.query(CONTENT).result_rows == before
