"""Requests to a ClickHouse server, with clickhouse-connect and curl."""

import subprocess

import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from tests.integration.clickhouse_server import WRITER_PASSWORD, Server
from tests.waiting import PATIENCE


def rows(client: Client, table: str) -> list[tuple[int, str]]:
    result = client.query(f"SELECT a, b FROM {table} ORDER BY a, b").result_rows
    return [tuple(row) for row in result]


def curl(server: Server, path: str, *options: str, data: bytes | None = None) -> "Curl":
    auth = [] if "--anonymous" in options else ["--user", f"default:{WRITER_PASSWORD}"]
    others = [option for option in options if option != "--anonymous"]
    sent = ["--data-binary", "@-"] if data is not None else []
    command = ["curl", "-sS", "-i", "--max-time", str(PATIENCE), *auth, *others, *sent]
    process = subprocess.run([*command, server.url + path], input=data or b"", capture_output=True)
    return Curl(process.returncode, process.stdout)


class Curl:
    """The last response that curl printed with `-i`: status, headers and body."""

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


def error_code(client: Client, statement: str) -> int | None:
    with pytest.raises(DatabaseError) as caught:
        client.command(statement)
    return caught.value.code
