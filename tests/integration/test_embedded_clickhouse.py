"""The embedded ClickHouse behaves as a ClickHouse server does, for clients that know only that."""

import gzip
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import lz4.frame
import pyarrow as pa
import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError

from tests.integration.clickhouse_server import (
    ANALYST_PASSWORD,
    ROOT,
    WRITER_PASSWORD,
    Server,
    command,
    environment,
    running,
)

_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("clickhouse")) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with server.client() as connected:
        yield connected


@pytest.fixture(scope="module")
def analyst(server: Server) -> Iterator[Client]:
    with server.client(username="analyst", password=ANALYST_PASSWORD) as connected:
        yield connected


@pytest.fixture
def table(client: Client) -> str:
    name = f"t{next(_numbers)}"
    client.command(f"CREATE TABLE {name} (a UInt64, b String) ENGINE = MergeTree ORDER BY a")
    return name


def rows(client: Client, table: str) -> list[tuple[int, str]]:
    found = client.query(f"SELECT a, b FROM {table} ORDER BY a, b").result_rows
    return [tuple(row) for row in found]


def curl(server: Server, path: str, *options: str, data: bytes | None = None) -> "Curl":
    auth = [] if "--anonymous" in options else ["--user", f"default:{WRITER_PASSWORD}"]
    chosen = [option for option in options if option != "--anonymous"]
    sent = ["--data-binary", "@-"] if data is not None else []
    done = subprocess.run(
        ["curl", "-sS", "-i", "--max-time", "20", *auth, *chosen, *sent, server.url + path],
        input=data or b"",
        capture_output=True,
        timeout=30,
    )
    return Curl(done.returncode, done.stdout)


class Curl:
    """What curl printed with `-i`: the last response's status, headers and body."""

    def __init__(self, exit_code: int, output: bytes) -> None:
        self.exit_code = exit_code
        while output.startswith(b"HTTP/1.1 100"):
            output = output.partition(b"\r\n\r\n")[2]
        head, _, self.body = output.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1]) if lines[0] else 0
        self.headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:])
        }


def refused(client: Client, statement: str) -> int | None:
    with pytest.raises(DatabaseError) as caught:
        client.command(statement)
    return caught.value.code


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

    def test_types_survive_the_way(self, client: Client) -> None:
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

    def test_a_long_result_is_streamed_whole(self, client: Client) -> None:
        total = count = 0
        with client.query_row_block_stream("SELECT number FROM numbers(700000)") as blocks:
            for block in blocks:
                count += len(block)
                total += sum(row[0] for row in block)
        assert (count, total) == (700_000, 700_000 * 699_999 // 2)

    def test_an_error_late_in_a_stream_does_not_pass_for_its_end(self, client: Client) -> None:
        late = "SELECT throwIf(number = 3000000), number FROM numbers(5000000)"
        with (
            pytest.raises((StreamFailureError, DatabaseError, http.client.HTTPException, OSError)),
            client.query_row_block_stream(late) as blocks,
        ):
            for _ in blocks:
                pass
        assert client.command("SELECT 1") == 1

    def test_a_client_that_leaves_mid_stream_frees_its_query(
        self, server: Server, client: Client
    ) -> None:
        for _ in range(20):  # More than the server has threads.
            with socket.create_connection(("127.0.0.1", server.port)) as raw:
                path = f"/?user=default&password={quote(WRITER_PASSWORD)}&query="
                path += quote("SELECT number FROM numbers(1000000000000)")
                raw.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                assert b"200" in raw.recv(64)
        deadline = time.monotonic() + 10
        while client.command("SELECT count() FROM system.processes") != 1:
            assert time.monotonic() < deadline, "abandoned queries are still running"
            time.sleep(0.1)

    def test_arrow_comes_and_goes(self, client: Client, table: str) -> None:
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
        assert refused(client, f"SELECT 1; DROP TABLE {table}") == 62
        assert client.command(f"EXISTS {table}") == 1
        assert client.command("SELECT 'a;b';") == "a;b"


class TestInserts:
    @pytest.mark.parametrize("compression", ["lz4", "zstd", "gzip", False])
    def test_rows_arrive_under_every_compression(
        self, server: Server, client: Client, table: str, compression: str | bool
    ) -> None:
        sent = [[n, f"é{n}" * 20] for n in range(5000)]
        with server.client(compress=compression) as packed:
            written = packed.insert(table, sent, column_names=["a", "b"]).written_rows
            read = packed.query(f"SELECT a, b FROM {table} ORDER BY a").result_rows
        assert written == 5000
        assert [list(row) for row in read] == sent

    def test_answers_are_really_compressed(self, server: Server) -> None:
        path = "/?enable_http_compression=1&query=" + quote("SELECT * FROM numbers(1000)")
        packed = curl(server, path, "-H", "Accept-Encoding: gzip")
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed.body).splitlines()[-1] == b"999"
        plain = curl(server, path)
        assert "content-encoding" not in plain.headers
        assert len(packed.body) < len(plain.body)

    def test_a_repeated_token_inserts_once(self, client: Client) -> None:
        client.command(
            "CREATE TABLE tokens (a UInt64) ENGINE = MergeTree ORDER BY a"
            " SETTINGS non_replicated_deduplication_window = 100"
        )
        for token, value in (("one", 1), ("one", 2), ("two", 3)):
            client.insert(
                "tokens",
                [[value]],
                column_names=["a"],
                settings={"insert_deduplication_token": token},
            )
        assert client.query("SELECT a FROM tokens ORDER BY a").result_rows == [(1,), (3,)]

    def test_a_repeated_token_counts_once_in_a_view(self, client: Client) -> None:
        window = "SETTINGS non_replicated_deduplication_window = 100"
        client.command(f"CREATE TABLE raw (k UInt8) ENGINE = MergeTree ORDER BY k {window}")
        client.command(
            f"CREATE TABLE counts (k UInt8, n UInt64) ENGINE = SummingMergeTree ORDER BY k {window}"
        )
        client.command(
            "CREATE MATERIALIZED VIEW counting TO counts"
            " AS SELECT k, count() AS n FROM raw GROUP BY k"
        )
        for token in ("one", "one", "two"):
            client.insert(
                "raw",
                [[1], [1]],
                column_names=["k"],
                settings={
                    "insert_deduplication_token": token,
                    "deduplicate_blocks_in_dependent_materialized_views": 1,
                },
            )
        got = client.query("SELECT (SELECT count() FROM raw), (SELECT sum(n) FROM counts)")
        assert got.result_rows == [(4, 4)]

    def test_an_insert_is_stored_when_it_is_answered(self, client: Client, table: str) -> None:
        lazy = {"async_insert": 1, "wait_for_async_insert": 0}
        for value in range(20):
            client.command(
                f"INSERT INTO {table} VALUES ({{n:UInt64}}, '')",
                parameters={"n": value},
                settings=lazy,
            )
            assert client.command(f"SELECT count() FROM {table}") == value + 1

    def test_final_keeps_the_newest_version(self, client: Client) -> None:
        client.command(
            "CREATE TABLE versions (k UInt64, v UInt64) ENGINE = ReplacingMergeTree(v) ORDER BY k"
        )
        for version in (1, 3, 2):
            client.insert("versions", [[7, version]], column_names=["k", "v"])
        assert client.query("SELECT k, v FROM versions FINAL").result_rows == [(7, 3)]

    def test_a_materialized_view_follows_the_inserts(self, client: Client) -> None:
        client.command("CREATE TABLE source (k UInt8, v UInt64) ENGINE = MergeTree ORDER BY k")
        client.command(
            "CREATE MATERIALIZED VIEW sums ENGINE = SummingMergeTree ORDER BY k"
            " AS SELECT k, sum(v) AS total FROM source GROUP BY k"
        )
        client.insert("source", [[1, 10], [2, 5]], column_names=["k", "v"])
        client.insert("source", [[1, 32]], column_names=["k", "v"])
        got = client.query("SELECT k, sum(total) FROM sums GROUP BY k ORDER BY k").result_rows
        assert got == [(1, 42), (2, 5)]

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
                writer.result(timeout=30)
            done.set()
            histories = [reader.result(timeout=30) for reader in readers]
        total = writers * batches * batch
        assert all(history == sorted(history) for history in histories)
        assert all(count % batch == 0 for history in histories for count in history)
        assert any(0 < count < total for history in histories for count in history)
        got = client.query(f"SELECT count(), uniqExact(a), sum(a) FROM {table}").result_rows
        assert got == [(total, total, total * (total - 1) // 2)]


class TestParametersAndSettings:
    @pytest.mark.parametrize(
        "text", ["it's", 'a "b" `c`', "back\\slash\\n", "tab\tline\nend\r", "é☃😀", "", "{x:Int32}"]
    )
    def test_text_arrives_as_it_was(self, client: Client, text: str) -> None:
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
        client.command(
            f"INSERT INTO {table} VALUES ({{n:UInt64}}, {{s:String}})",
            parameters={"n": 5, "s": evil},
        )
        assert rows(client, table) == [(5, evil)]

    def test_a_parameter_too_long_for_a_url_is_taken_from_the_form(self, client: Client) -> None:
        text = "long\r\n'\\é\t" * 2000
        got = client.query("SELECT {x:String}", parameters={"x": text}).result_rows
        assert got == [(text,)]

    def test_a_wrong_parameter_is_the_clients_error(self, client: Client) -> None:
        with pytest.raises(DatabaseError) as caught:
            client.query("SELECT {x:Int32}", parameters={"x": "seven"})
        assert caught.value.code == 457

    def test_settings_hold_for_their_query_only(self, client: Client) -> None:
        asked = "SELECT getSetting('max_threads'), getSetting('max_block_size')"
        before = client.query(asked).result_rows
        changed = client.query(asked, settings={"max_threads": 7, "max_block_size": 1234})
        assert changed.result_rows == [(7, 1234)]
        assert client.query(asked).result_rows == before

    def test_concurrent_requests_keep_their_own_settings(self, server: Server) -> None:
        def ask(number: int) -> bool:
            with server.client(database="arena" if number % 2 else "default") as own:
                for _ in range(15):
                    got = own.query(
                        "SELECT getSetting('max_threads'), currentDatabase(), {n:Int32}",
                        settings={"max_threads": number + 1},
                        parameters={"n": number},
                    ).result_rows
                    expected = (number + 1, "arena" if number % 2 else "default", number)
                    if got != [expected]:
                        return False
            return True

        with ThreadPoolExecutor(6) as threads:
            assert list(threads.map(ask, range(6), timeout=30)) == [True] * 6

    def test_an_unknown_setting_is_refused(self, server: Server) -> None:
        got = curl(server, "/?no_such_setting=1&query=SELECT%201")
        assert (got.status, got.headers["x-clickhouse-exception-code"]) == (404, "115")
        odd = curl(server, "/?" + quote("max_threads=1,x") + "=1&query=SELECT%201")
        assert (odd.status, odd.headers["x-clickhouse-exception-code"]) == (404, "115")

    def test_the_database_may_come_from_url_or_header(self, server: Server) -> None:
        asked = "query=" + quote("SELECT currentDatabase()")
        assert curl(server, f"/?database=arena&{asked}").body == b"arena\n"
        header = ("-H", "X-ClickHouse-Database: arena")
        assert curl(server, f"/?{asked}", *header).body == b"arena\n"
        assert curl(server, f"/?database=nowhere&{asked}").status == 404


class TestErrors:
    @pytest.mark.parametrize(
        ("statement", "code"),
        [
            ("SELEC 1 FROM", 62),
            ("SELECT * FROM no_such_table", 60),
            ("SELECT toInt32('x')", 6),
            ("SELECT no_such_function(1)", 46),
            ("SELECT 1 FORMAT NoSuchFormat", 73),
            ("SELECT 1 INTO OUTFILE '/tmp/never.csv'", 358),
        ],
    )
    def test_an_error_keeps_its_code_and_the_server_goes_on(
        self, client: Client, statement: str, code: int
    ) -> None:
        assert refused(client, statement) == code
        assert client.command("SELECT 1") == 1

    def test_rows_of_the_wrong_type_are_refused_and_not_stored(
        self, server: Server, client: Client, table: str
    ) -> None:
        got = curl(
            server, "/", data=f"INSERT INTO {table} FORMAT CSV\n1,x\nnot a number,y".encode()
        )
        assert got.status == 400
        assert got.body.startswith(b"Code: 27. DB::Exception: ")
        assert rows(client, table) == []

    def test_the_status_tells_the_kind_of_error(self, server: Server) -> None:
        for statement, status in (("SELEC 1 FROM", 400), ("SELECT * FROM no_such_table", 404)):
            got = curl(server, "/", data=statement.encode())
            assert got.status == status
            assert b"Traceback" not in got.body
        assert curl(server, "/nowhere").status == 404

    def test_garbage_is_refused_with_a_4xx(self, server: Server, client: Client) -> None:
        body = gzip.compress(b"SELECT 1" * 100)
        frame = lz4.frame.compress(b"SELECT 1")
        for encoding, data in (
            ("identity", bytes(range(256)) * 10),
            ("gzip", body[:-12]),
            ("gzip", b"not gzip"),
            ("lz4", frame[: len(frame) // 2]),
            ("zstd", b"not zstd"),
            ("deflate", b"not deflate"),
            ("snappy", b"SELECT 1"),
            ("identity", b""),
            ("identity", b"SELECT 1 \0 FROM nonsense"),
            ("identity", b"SELECT " + b"/*" * 100_000 + b"$a$b" * 100_000),
            ("identity", b"x" * (5 << 20)),
        ):
            got = curl(server, "/", "-H", f"Content-Encoding: {encoding}", data=data)
            assert 400 <= got.status < 500, (encoding, got.status, got.body)
            assert got.body.startswith(b"Code: ")
        assert client.command("SELECT 1") == 1

    def test_a_raw_socket_full_of_noise_does_no_harm(self, server: Server, client: Client) -> None:
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as raw:
            raw.sendall(os.urandom(2000) + b"\r\n\r\n")
            assert raw.recv(100)[:12] in (b"", b"HTTP/1.1 400")
        assert client.command("SELECT 1") == 1

    def test_half_a_body_inserts_nothing(self, server: Server, client: Client, table: str) -> None:
        head = f"POST /?user=default&password={quote(WRITER_PASSWORD)} HTTP/1.1\r\nHost: x\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as raw:
            raw.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode())
            raw.sendall(f"INSERT INTO {table} FORMAT CSV\n1,x\n".encode())
        time.sleep(0.3)
        assert rows(client, table) == []

    def test_an_outsized_body_is_refused_packed_or_not(self, tmp_path: Path) -> None:
        with running(tmp_path / "data", "--max-body-mib", "1") as small:
            for data, options in (
                (b"SELECT '" + b"x" * (3 << 20) + b"'", ["-H", "Expect:"]),
                (b"SELECT '" + b"x" * (3 << 20) + b"'", []),
                (gzip.compress(b"x" * (3 << 20)), ["-H", "Content-Encoding: gzip"]),
            ):
                got = curl(small, "/", *options, data=data)
                assert got.status == 413
                assert got.body.startswith(b"Code: 307. DB::Exception: ")
            fits = b"INSERT INTO FUNCTION null('a String') FORMAT TSV\n" + b"x" * 900_000
            assert curl(small, "/", data=fits).status == 200


class TestCurl:
    def test_a_get_answers_with_clickhouses_headers(self, server: Server) -> None:
        got = curl(server, "/?query_id=abc&query=SELECT%201%20FORMAT%20JSONEachRow")
        assert json.loads(got.body) == {"1": 1}
        assert got.headers["x-clickhouse-query-id"] == "abc"
        assert got.headers["x-clickhouse-format"] == "JSONEachRow"
        assert got.headers["x-clickhouse-timezone"]
        assert got.headers["content-type"].startswith("application/x-ndjson")
        assert json.loads(got.headers["x-clickhouse-summary"])["result_rows"] == "1"

    def test_health_needs_no_password(self, server: Server) -> None:
        assert curl(server, "/ping", "--anonymous").body == b"Ok.\n"
        assert curl(server, "/replicas_status", "--anonymous").body == b"Ok.\n"

    def test_the_default_format_can_be_chosen(self, server: Server) -> None:
        asked = "query=" + quote("SELECT 1 AS a")
        assert curl(server, f"/?default_format=CSVWithNames&{asked}").body == b'"a"\n1\n'
        assert curl(server, f"/?{asked}", "-H", "X-ClickHouse-Format: JSONCompactEachRow").body == (
            b"[1]\n"
        )

    def test_rows_are_posted_in_the_body(self, server: Server, client: Client, table: str) -> None:
        head = f"INSERT INTO {table} FORMAT CSV"
        got = curl(server, "/?query=" + quote(head), data=b'1,"x,y"\n2,z\n')
        assert json.loads(got.headers["x-clickhouse-summary"])["written_rows"] == "2"
        assert curl(server, "/", data=f"{head}\n3,w\n".encode()).status == 200
        json_rows = b'{"a": 4, "b": "j"}\n\n{"a": 5, "b": "k"}'
        each = "/?query=" + quote(f"INSERT INTO {table} FORMAT JSONEachRow")
        assert curl(server, each, data=json_rows).status == 200
        assert rows(client, table) == [(1, "x,y"), (2, "z"), (3, "w"), (4, "j"), (5, "k")]

    @pytest.mark.parametrize("encoding", ["gzip", "deflate"])
    def test_rows_may_be_packed(
        self, server: Server, client: Client, table: str, encoding: str
    ) -> None:
        plain = b"1,x\n2,y\n"
        data = gzip.compress(plain) if encoding == "gzip" else zlib.compress(plain)
        path = "/?query=" + quote(f"INSERT INTO {table} FORMAT CSV")
        got = curl(server, path, "-H", f"Content-Encoding: {encoding}", data=data)
        assert (got.status, rows(client, table)) == (200, [(1, "x"), (2, "y")])

    def test_an_error_makes_curl_fail(self, server: Server) -> None:
        assert curl(server, "/?query=SELECT%20nothing", "--fail").exit_code == 22
        assert curl(server, "/?query=SELECT%201", "--fail").exit_code == 0

    def test_a_get_cannot_change_anything(self, server: Server, client: Client, table: str) -> None:
        path = "/?query=" + quote(f"INSERT INTO {table} VALUES (1, 'x')")
        assert curl(server, path).headers["x-clickhouse-exception-code"] == "164"
        assert rows(client, table) == []


class TestAccess:
    def test_a_wrong_password_is_refused(self, server: Server) -> None:
        with pytest.raises(DatabaseError) as caught:
            server.client(password="wrong")
        assert caught.value.code == 516
        got = curl(server, "/?query=SELECT%201", "--anonymous")
        assert got.status == 403
        assert got.body.startswith(b"Code: 516. DB::Exception: default: Authentication failed")
        assert got.headers["x-clickhouse-exception-code"] == "516"

    def test_every_way_to_log_in_works(self, server: Server) -> None:
        asked = "query=" + quote("SELECT 1")
        password = quote(ANALYST_PASSWORD)
        in_url = f"/?user=analyst&password={password}&{asked}"
        assert curl(server, in_url, "--anonymous").body == b"1\n"
        headers = (
            "-H",
            "X-ClickHouse-User: analyst",
            "-H",
            f"X-ClickHouse-Key: {ANALYST_PASSWORD}",
        )
        assert curl(server, f"/?{asked}", "--anonymous", *headers).body == b"1\n"
        wrong = ("-H", "X-ClickHouse-User: analyst", "-H", "X-ClickHouse-Key: lookin")
        assert curl(server, f"/?{asked}", "--anonymous", *wrong).status == 403
        nobody = ("-H", "X-ClickHouse-User: nobody")
        assert curl(server, f"/?{asked}", "--anonymous", *nobody).status == 403

    def test_the_analyst_reads(self, client: Client, analyst: Client, table: str) -> None:
        client.insert(table, [[1, "file(x)"]], column_names=["a", "b"])
        assert analyst.query(f"SELECT a FROM {table} WHERE b = 'file(x)'").result_rows == [(1,)]
        assert table in str(analyst.command("SHOW TABLES"))
        assert analyst.command(f"EXISTS {table}") == 1
        assert analyst.query(f"DESCRIBE {table}").result_rows[0][0] == "a"
        assert analyst.command("WITH 2 AS x SELECT x + (SELECT max(number) FROM numbers(3))") == 4
        assert "Read" in str(analyst.command(f"EXPLAIN SELECT * FROM {table}"))

    def test_the_analyst_cannot_write(self, client: Client, analyst: Client, table: str) -> None:
        client.insert(table, [[1, "x"]], column_names=["a", "b"])
        for statement in (
            f"INSERT INTO {table} VALUES (2, 'y')",
            f"INSERT INTO {table} SELECT 2, 'y'",
            f"DROP TABLE {table}",
            f"TRUNCATE TABLE {table}",
            f"ALTER TABLE {table} DELETE WHERE 1",
            f"CREATE TABLE {table}x (a Int8) ENGINE = Memory",
            "CREATE DATABASE other",
            "SET readonly = 0",
            "SELECT 1 SETTINGS readonly = 0",
            "KILL QUERY WHERE 1",
            "SYSTEM FLUSH LOGS",
        ):
            assert refused(analyst, statement) in (164, 497), statement
        assert refused(analyst, f"SELECT 1; DROP TABLE {table}") == 62
        assert rows(client, table) == [(1, "x")]

    def test_the_analyst_cannot_reach_the_host(self, analyst: Client, tmp_path: Path) -> None:
        secret = tmp_path / "secret.csv"
        secret.write_text("1,2\n")
        escaped = "`fi\\x6ce`"
        for statement in (
            f"SELECT * FROM file('{secret}')",
            f"SELECT file('{secret}')",
            f"SELECT {escaped}('{secret}')",
            f"SELECT “file”('{secret}')",
            f"SELECT arrayMap(file, ['{secret}'])",
            f"SELECT * APPLY(file) FROM (SELECT '{secret}')",
            f"SELECT * FROM '{secret}'",
            f"DESCRIBE file('{secret}')",
            f"EXPLAIN SELECT /* ' */ file('{secret}')",
            f"SELECT * FROM view(SELECT * FROM file('{secret}'))",
            f"INSERT INTO FUNCTION file('{tmp_path}/out.csv', 'CSV', 'a Int8') SELECT 1",
            "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a Int8')",
            "SELECT * FROM s3('http://127.0.0.1:1/x', 'CSV', 'a Int8')",
            "SELECT * FROM executable('cat', 'TSV', 'a Int8')",
            "SELECT * FROM remote('127.0.0.1:1', 'system.one')",
            "SELECT 1 FORMAT Template SETTINGS format_template_row = '/etc/passwd'",
        ):
            assert refused(analyst, statement) in (164, 497), statement
        assert refused(analyst, f"SELECT 1 INTO OUTFILE '{tmp_path}/out.csv'") in (164, 358)
        assert not (tmp_path / "out.csv").exists()

    def test_the_analyst_may_tune_but_not_unlock(self, server: Server) -> None:
        login = f"user=analyst&password={ANALYST_PASSWORD}&query="
        asked = quote("SELECT getSetting('max_threads')")
        assert curl(server, f"/?max_threads=5&{login}{asked}", "--anonymous").body == b"5\n"
        for setting in ("readonly=0", "format_template_row=/etc/passwd", "output_format_schema=/x"):
            got = curl(server, f"/?{setting}&{login}{asked}", "--anonymous")
            assert got.headers["x-clickhouse-exception-code"] == "164", setting

    def test_without_a_password_there_is_no_analyst(self, tmp_path: Path) -> None:
        with running(tmp_path / "data", CLICKHOUSE_ANALYST_PASSWORD="") as alone:
            with pytest.raises(DatabaseError) as caught:
                alone.client(username="analyst", password="")
            assert caught.value.code == 516


class TestLifeAndDeath:
    def test_an_acknowledged_insert_survives_kill_9(self, tmp_path: Path) -> None:
        path = tmp_path / "data"
        acknowledged = 0
        with running(path) as first, first.client(database="arena") as writer:
            writer.command("CREATE TABLE kept (a UInt64) ENGINE = MergeTree ORDER BY a")
            for value in range(30):
                writer.insert("kept", [[value]], column_names=["a"])
                acknowledged += 1
            first.kill()
        with running(path) as second, second.client(database="arena") as reader:
            got = reader.query("SELECT count(), sum(a) FROM kept").result_rows
        assert got == [(30, 435)]
        assert acknowledged == 30

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_stop_finishes_running_queries_and_exits_0(self, tmp_path: Path, number: int) -> None:
        with running(tmp_path / "data") as stopping:
            with ThreadPoolExecutor(1) as threads:
                slow = threads.submit(curl, stopping, "/?query=SELECT%20sleep(1)")
                time.sleep(0.4)
                assert stopping.stop(number) == 0
                assert slow.result(timeout=10).body == b"0\n"
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", stopping.port), timeout=1)

    def test_a_second_process_on_the_folder_is_told_so(
        self, server: Server, tmp_path: Path
    ) -> None:
        with running(tmp_path / "data") as owner:
            message = self._failure(*command(tmp_path / "data"))
            assert f"is in use by process {owner.process.pid}" in message
            assert "--path" in message
            assert curl(owner, "/?query=SELECT%201").body == b"1\n"

    def test_a_second_process_on_the_port_is_told_so(self, server: Server, tmp_path: Path) -> None:
        message = self._failure(*command(tmp_path / "data"), "--port", str(server.port))
        assert f"127.0.0.1:{server.port}" in message
        assert "--port" in message

    def test_an_unusable_folder_is_told_so(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way")
        message = self._failure(*command(tmp_path / "file"))
        assert "--path" in message

    def test_help_names_the_environment(self) -> None:
        shown = subprocess.run(
            [*command(Path("x")), "--help"], cwd=ROOT, capture_output=True, text=True, timeout=20
        )
        assert shown.returncode == 0
        assert "CLICKHOUSE_ANALYST_PASSWORD" in shown.stdout

    @staticmethod
    def _failure(*arguments: str) -> str:
        done = subprocess.run(
            arguments,
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=20,
        )
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1, done.stderr
        return done.stderr
