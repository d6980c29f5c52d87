"""Passwords, and the permissions of the analyst."""

from pathlib import Path
from urllib.parse import quote

import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from tests.integration.clickhouse_server import ANALYST_PASSWORD, Server, running
from tests.integration.embedded_clickhouse.requests import Curl, curl, error_code, rows


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
        query = "query=" + quote("SELECT 1")
        in_url = f"/?user=analyst&password={quote(ANALYST_PASSWORD)}&{query}"
        assert curl(server, in_url, "--anonymous").body == b"1\n"

        def login(user: str, key: str) -> Curl:
            headers = "-H", f"X-ClickHouse-User: {user}", "-H", f"X-ClickHouse-Key: {key}"
            return curl(server, f"/?{query}", "--anonymous", *headers)

        assert login("analyst", ANALYST_PASSWORD).body == b"1\n"
        assert login("analyst", "lookin").status == login("nobody", "").status == 403

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
            assert error_code(analyst, statement) in (164, 497), statement
        assert error_code(analyst, f"SELECT 1; DROP TABLE {table}") == 62
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
            assert error_code(analyst, statement) in (164, 497), statement
        assert error_code(analyst, f"SELECT 1 INTO OUTFILE '{tmp_path}/out.csv'") in (164, 358)
        assert not (tmp_path / "out.csv").exists()

    def test_the_analyst_may_change_harmless_settings_only(self, server: Server) -> None:
        login = f"user=analyst&password={ANALYST_PASSWORD}&query="
        query = quote("SELECT getSetting('max_threads')")
        assert curl(server, f"/?max_threads=5&{login}{query}", "--anonymous").body == b"5\n"
        for setting in ("readonly=0", "format_template_row=/etc/passwd", "output_format_schema=/x"):
            got = curl(server, f"/?{setting}&{login}{query}", "--anonymous")
            assert got.headers["x-clickhouse-exception-code"] == "164", setting

    def test_without_a_password_there_is_no_analyst(self, tmp_path: Path) -> None:
        with running(tmp_path / "data", CLICKHOUSE_ANALYST_PASSWORD="") as alone:
            with pytest.raises(DatabaseError) as caught:
                alone.client(username="analyst", password="")
            assert caught.value.code == 516
