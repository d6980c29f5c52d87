"""Inserted rows are stored: with every compression, once, visible to every reader."""

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from tests.integration.clickhouse_server import Server
from tests.integration.embedded_clickhouse.requests import curl, rows
from tests.waiting import PATIENCE


class TestInserts:
    @pytest.mark.parametrize("compression", ["lz4", "zstd", "gzip", False])
    def test_rows_arrive_under_every_compression(
        self, server: Server, client: Client, table: str, compression: str | bool
    ) -> None:
        sent = [[n, f"é{n}" * 20] for n in range(5000)]
        with server.client(compress=compression) as compressed:
            written = compressed.insert(table, sent, column_names=["a", "b"]).written_rows
            read = compressed.query(f"SELECT a, b FROM {table} ORDER BY a").result_rows
        assert written == 5000
        assert [list(row) for row in read] == sent

    def test_responses_are_compressed(self, server: Server) -> None:
        path = "/?enable_http_compression=1&query=" + quote("SELECT * FROM numbers(1000)")
        compressed = curl(server, path, "-H", "Accept-Encoding: gzip")
        assert compressed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(compressed.body).splitlines()[-1] == b"999"
        plain = curl(server, path)
        assert "content-encoding" not in plain.headers
        assert len(compressed.body) < len(plain.body)

    def test_a_repeated_token_counts_once_in_a_table_and_its_view(self, client: Client) -> None:
        window = "SETTINGS non_replicated_deduplication_window = 100"
        counts = "n UInt64) ENGINE = SummingMergeTree ORDER BY k"
        client.command(f"CREATE TABLE raw (k UInt8) ENGINE = MergeTree ORDER BY k {window}")
        client.command(f"CREATE TABLE counts (k UInt8, {counts} {window}")
        view = "SELECT k, count() AS n FROM raw GROUP BY k"
        client.command(f"CREATE MATERIALIZED VIEW counting TO counts AS {view}")
        for token, value in (("one", 1), ("one", 2), ("two", 3)):
            settings = {
                "insert_deduplication_token": token,
                "deduplicate_blocks_in_dependent_materialized_views": 1,
            }
            client.insert("raw", [[value], [value]], column_names=["k"], settings=settings)
        got = client.query("SELECT groupArray(k), (SELECT sum(n) FROM counts) FROM raw").result_rows
        assert [(sorted(keys), total) for keys, total in got] == [([1, 1, 3, 3], 4)]

    def test_an_insert_is_stored_before_the_response(self, client: Client, table: str) -> None:
        asynchronous = {"async_insert": 1, "wait_for_async_insert": 0}
        statement = f"INSERT INTO {table} VALUES ({{n:UInt64}}, '')"
        for value in range(20):
            client.command(statement, parameters={"n": value}, settings=asynchronous)
            assert client.command(f"SELECT count() FROM {table}") == value + 1

    def test_an_insert_that_cannot_be_stored_is_an_error(self, client: Client) -> None:
        client.command(
            "CREATE TABLE crowded (a UInt64) ENGINE = MergeTree ORDER BY a"
            " SETTINGS parts_to_throw_insert = 2, parts_to_delay_insert = 0"
        )
        client.command("SYSTEM STOP MERGES crowded")
        for value in range(2):
            client.insert("crowded", [[value]], column_names=["a"])
        with pytest.raises(DatabaseError, match="TOO_MANY_PARTS"):
            client.insert("crowded", [[2]], column_names=["a"])
        assert client.query("SELECT a FROM crowded ORDER BY a").result_rows == [(0,), (1,)]

    def test_settings_of_the_statement_apply(self, client: Client, table: str) -> None:
        client.command(
            f"INSERT INTO {table} (a, b) SETTINGS format_csv_delimiter = ';' "
            "FORMAT CSV\n1;one\n2;two"
        )
        assert rows(client, table) == [(1, "one"), (2, "two")]

    def test_an_insert_without_rows_stores_none(
        self, server: Server, client: Client, table: str
    ) -> None:
        path = "/?query=" + quote(f"INSERT INTO {table} FORMAT CSV")
        assert curl(server, path, "-d", "").status == 200
        assert rows(client, table) == []

    def test_final_keeps_the_newest_version(self, client: Client) -> None:
        client.command(
            "CREATE TABLE versions (k UInt64, v UInt64) ENGINE = ReplacingMergeTree(v) ORDER BY k"
        )
        for version in (1, 3, 2):
            client.insert("versions", [[7, version]], column_names=["k", "v"])
        assert client.query("SELECT k, v FROM versions FINAL").result_rows == [(7, 3)]

    def test_values_may_hold_anything_that_looks_like_sql(self, client: Client, table: str) -> None:
        client.command(f"INSERT INTO {table} (a, b) VALUES (1, 'FORMAT CSV; -- '), (2, '\\'\n\n')")
        assert rows(client, table) == [(1, "FORMAT CSV; -- "), (2, "'\n\n")]

    def test_readers_see_counts_that_only_grow(
        self, server: Server, client: Client, table: str
    ) -> None:
        done = threading.Event()
        writers, batches, batch = 3, 40, 25

        def write(number: int) -> None:
            with server.client() as own:
                for step in range(batches):
                    first = (number * batches + step) * batch
                    data = [[n, f"w{number}"] for n in range(first, first + batch)]
                    own.insert(table, data, ["a", "b"], column_type_names=["UInt64", "String"])

        def read() -> list[int]:
            seen: list[int] = []
            with server.client() as own:
                while not done.is_set():
                    seen += own.query(f"SELECT count() FROM {table}").result_columns[0]
            return seen

        with ThreadPoolExecutor(6) as threads:
            readers = [threads.submit(read) for _ in range(3)]
            for writer in [threads.submit(write, number) for number in range(writers)]:
                writer.result(PATIENCE)
            done.set()
            histories = [reader.result(PATIENCE) for reader in readers]
        total = writers * batches * batch
        assert all(history == sorted(history) for history in histories)
        assert all(count % batch == 0 for history in histories for count in history)
        assert any(0 < count < total for history in histories for count in history)
        got = client.query(f"SELECT count(), uniqExact(a), sum(a) FROM {table}").result_rows
        assert got == [(total, total, total * (total - 1) // 2)]
