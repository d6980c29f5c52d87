"""Queries, parameters and settings, with the usual ClickHouse clients."""

import http.client
import socket
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pyarrow as pa
import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError

from tests.integration.clickhouse_server import WRITER_PASSWORD, Server
from tests.integration.embedded_clickhouse.requests import curl, error_code, rows
from tests.waiting import PATIENCE, until

TEXTS = ["it's", 'a "b" `c`', "back\\slash\\n", "tab\tline\nend\r", "é☃😀", "", "{x:Int32}"]
TEXTS.append("long\r\n'\\é\t" * 2000)  # too long for a URL: the client sends a form


class TestQueries:
    def test_a_select_returns_python_values(self, client: Client) -> None:
        result = client.query("SELECT 1 AS one, 'x' AS letter, [1, 2] AS list, NULL AS nothing")
        assert result.column_names == ("one", "letter", "list", "nothing")
        assert result.result_rows == [(1, "x", [1, 2], None)]

    def test_a_result_without_rows_still_has_its_columns(self, client: Client) -> None:
        result = client.query("SELECT number AS n, 'x' AS b FROM numbers(5) WHERE number > 9")
        assert result.column_names == ("n", "b")
        assert [kind.name for kind in result.column_types] == ["UInt64", "String"]
        assert result.result_rows == []

    def test_types_are_preserved(self, client: Client) -> None:
        client.command(
            "CREATE TABLE kinds (k LowCardinality(String), t DateTime64(6, 'UTC'), j JSON,"
            " m Map(String, Int32), e Enum8('cpu' = 1, 'gpu' = 2), f Nullable(Float64))"
            " ENGINE = MergeTree ORDER BY k"
        )
        client.command(
            "INSERT INTO kinds VALUES ('x', '2024-05-06 07:08:09.123456', '{\"p\": {\"q\": 7}}',"
            " {'a': 1}, 'gpu', NULL)"
        )
        row = client.query("SELECT k, toString(t), j, m, e, f FROM kinds").result_rows[0]
        assert row == ("x", "2024-05-06 07:08:09.123456", {"p": {"q": 7}}, {"a": 1}, "gpu", None)

    def test_a_long_result_is_streamed_completely(self, client: Client) -> None:
        total = count = 0
        with client.query_row_block_stream("SELECT number FROM numbers(700000)") as blocks:
            for block in blocks:
                count += len(block)
                total += sum(row[0] for row in block)
        assert (count, total) == (700_000, 700_000 * 699_999 // 2)

    def test_an_error_late_in_a_stream_is_not_taken_for_its_end(self, client: Client) -> None:
        late = "SELECT throwIf(number = 3000000), number FROM numbers(5000000)"
        with (
            pytest.raises((StreamFailureError, DatabaseError, http.client.HTTPException, OSError)),
            client.query_row_block_stream(late) as blocks,
        ):
            for _ in blocks:
                pass
        assert client.command("SELECT 1") == 1

    def test_a_query_ends_when_its_client_disconnects(self, server: Server, client: Client) -> None:
        for _ in range(20):  # more than the server has threads
            with socket.create_connection(("127.0.0.1", server.port)) as raw:
                path = f"/?user=default&password={quote(WRITER_PASSWORD)}&query="
                path += quote("SELECT number FROM numbers(1000000000000)")
                raw.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                assert b"200" in raw.recv(64)
        running = "SELECT count() FROM system.processes"
        until(lambda: client.command(running) == 1, "only this query is running")

    def test_arrow_is_inserted_and_selected(self, client: Client, table: str) -> None:
        sent = pa.table({"a": pa.array([3, 1, 2], pa.uint64()), "b": ["x", "y", "é"]})
        assert client.insert_arrow(table, sent).written_rows == 3
        got = client.query_arrow(f"SELECT a, b FROM {table} ORDER BY a", use_strings=True)
        assert got.to_pydict() == {"a": [1, 2, 3], "b": ["y", "é", "x"]}

    def test_totals_follow_the_rows(self, server: Server) -> None:
        grouped = "SELECT number % 2 AS k, count() FROM numbers(10) GROUP BY k WITH TOTALS"
        got = curl(server, "/?query=" + quote(grouped + " ORDER BY k"))
        assert got.body == b"0\t5\n1\t5\n\n0\t10\n"

    def test_several_statements_in_one_request_are_refused(
        self, client: Client, table: str
    ) -> None:
        assert error_code(client, f"SELECT 1; DROP TABLE {table}") == 62
        assert client.command(f"EXISTS {table}") == 1
        assert client.command("SELECT 'a;b';") == "a;b"


class TestParametersAndSettings:
    @pytest.mark.parametrize("text", TEXTS)
    def test_text_arrives_unchanged(self, client: Client, text: str) -> None:
        got = client.query("SELECT {x:String}", parameters={"x": text}).result_rows
        assert got == [(text,)]

    def test_numbers_arrays_and_names_are_bound(self, client: Client, table: str) -> None:
        client.insert(table, [[1, "a'b"], [2, "c"], [3, "d"]], column_names=["a", "b"])
        got = client.query(
            "SELECT a FROM {t:Identifier} WHERE b IN {wanted:Array(String)} AND a < {top:Int32}",
            parameters={"t": table, "wanted": ["a'b", "d"], "top": 3},
        ).result_rows
        assert got == [(1,)]

    def test_a_parameter_is_a_value_and_never_sql(self, client: Client, table: str) -> None:
        evil = f"x'; DROP TABLE {table}; --"
        insert = f"INSERT INTO {table} VALUES ({{n:UInt64}}, {{s:String}})"
        client.command(insert, parameters={"n": 5, "s": evil})
        assert rows(client, table) == [(5, evil)]

    def test_a_wrong_parameter_is_the_clients_error(self, client: Client) -> None:
        with pytest.raises(DatabaseError) as caught:
            client.query("SELECT {x:Int32}", parameters={"x": "seven"})
        assert caught.value.code == 457

    def test_settings_hold_for_their_query_only(self, client: Client) -> None:
        query = "SELECT getSetting('max_threads'), getSetting('max_block_size')"
        before = client.query(query).result_rows
        changed = client.query(query, settings={"max_threads": 7, "max_block_size": 1234})
        assert changed.result_rows == [(7, 1234)]
        assert client.query(query).result_rows == before

    def test_concurrent_requests_keep_their_own_settings(self, server: Server) -> None:
        sql = "SELECT getSetting('max_threads'), currentDatabase(), {n:Int32}"

        def query(number: int) -> bool:
            database = "arena" if number % 2 else "default"
            with server.client(database=database) as own:
                for _ in range(15):
                    settings, parameters = {"max_threads": number + 1}, {"n": number}
                    got = own.query(sql, settings=settings, parameters=parameters).result_rows
                    if got != [(number + 1, database, number)]:
                        return False
            return True

        with ThreadPoolExecutor(6) as threads:
            assert list(threads.map(query, range(6), timeout=PATIENCE)) == [True] * 6

    def test_an_unknown_setting_is_refused(self, server: Server) -> None:
        for setting in ("no_such_setting", quote("max_threads=1,x")):
            got = curl(server, f"/?{setting}=1&query=SELECT%201")
            assert (got.status, got.headers["x-clickhouse-exception-code"]) == (404, "115")

    def test_the_database_may_come_from_url_or_header(self, server: Server) -> None:
        query = "query=" + quote("SELECT currentDatabase()")
        assert curl(server, f"/?database=arena&{query}").body == b"arena\n"
        header = ("-H", "X-ClickHouse-Database: arena")
        assert curl(server, f"/?{query}", *header).body == b"arena\n"
        assert curl(server, f"/?database=nowhere&{query}").status == 404
