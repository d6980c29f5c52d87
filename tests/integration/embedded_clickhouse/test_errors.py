"""Errors like those of a ClickHouse server, and requests of garbage."""

import gzip
import json
import os
import socket
import zlib
from pathlib import Path
from urllib.parse import quote

import lz4.frame
import pytest
from clickhouse_connect.driver.client import Client

from tests.integration.clickhouse_server import WRITER_PASSWORD, Server, running
from tests.integration.embedded_clickhouse.requests import curl, error_code, rows
from tests.waiting import PATIENCE


class TestErrors:
    @pytest.mark.parametrize(
        ("statement", "code", "status"),
        [
            ("SELEC 1 FROM", 62, 400),
            ("SELECT * FROM no_such_table", 60, 404),
            ("SELECT toInt32('x')", 6, 400),
            ("SELECT no_such_function(1)", 46, 404),
            ("SELECT 1 FORMAT NoSuchFormat", 73, 404),
            ("SELECT 1 INTO OUTFILE '/tmp/never.csv'", 358, 500),
        ],
    )
    def test_an_error_has_its_code_and_status_and_the_server_keeps_running(
        self, server: Server, client: Client, statement: str, code: int, status: int
    ) -> None:
        assert error_code(client, statement) == code
        got = curl(server, "/", data=statement.encode())
        assert (got.status, b"Traceback" in got.body) == (status, False)
        assert client.command("SELECT 1") == 1

    def test_rows_of_the_wrong_type_are_refused_and_not_stored(
        self, server: Server, client: Client, table: str
    ) -> None:
        wrong = f"INSERT INTO {table} FORMAT CSV\n1,x\nnot a number,y"
        got = curl(server, "/", data=wrong.encode())
        assert got.status == 400
        assert got.body.startswith(b"Code: 27. DB::Exception: ")
        assert rows(client, table) == []

    def test_an_unknown_path_is_not_found(self, server: Server) -> None:
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

    def test_noise_on_a_raw_socket_does_no_harm(self, server: Server, client: Client) -> None:
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as raw:
            raw.sendall(os.urandom(2000) + b"\r\n\r\n")
            assert raw.recv(100)[:12] in (b"", b"HTTP/1.1 400")
        assert client.command("SELECT 1") == 1

    def test_half_a_body_inserts_nothing(self, server: Server, client: Client, table: str) -> None:
        head = f"POST /?user=default&password={quote(WRITER_PASSWORD)} HTTP/1.1\r\nHost: x\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as raw:
            raw.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode())
            raw.sendall(f"INSERT INTO {table} FORMAT CSV\n1,x\n".encode())
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(4096):  # until the server has hung up as well
                pass
        assert rows(client, table) == []

    def test_a_body_that_is_too_large_is_refused_compressed_or_not(self, tmp_path: Path) -> None:
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
        query = "query=" + quote("SELECT 1 AS a")
        assert curl(server, f"/?default_format=CSVWithNames&{query}").body == b'"a"\n1\n'
        chosen = "-H", "X-ClickHouse-Format: JSONCompactEachRow"
        assert curl(server, f"/?{query}", *chosen).body == b"[1]\n"

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
    def test_rows_may_be_compressed(
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
