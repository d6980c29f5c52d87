"""The embedded ClickHouse as a test uses it: a real process on a free port."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clickhouse_connect
from clickhouse_connect.driver.client import Client

from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
WRITER_PASSWORD = "w'ri\\ter"
ANALYST_PASSWORD = "looking"


@dataclass
class Server:
    process: "subprocess.Popen[str]"
    port: int
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> Client:
        settings = {"username": "default", "password": WRITER_PASSWORD} | options
        # A session would forbid concurrent queries on one client.
        return clickhouse_connect.get_client(
            host="127.0.0.1", port=self.port, autogenerate_session_id=False, **settings
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def command(path: Path, *options: str) -> list[str]:
    program = [sys.executable, "-m", "deploy.local.clickhouse", "--path", str(path)]
    return [*program, "--port", "0", *options]


def environment(**variables: str) -> dict[str, str]:
    users = {
        "CLICKHOUSE_USER": "default",
        "CLICKHOUSE_PASSWORD": WRITER_PASSWORD,
        "CLICKHOUSE_ANALYST_PASSWORD": ANALYST_PASSWORD,
        "CLICKHOUSE_DB": "arena",
    }
    return os.environ | users | variables


@contextmanager
def running(path: Path, *options: str, **variables: str) -> Iterator[Server]:
    process = subprocess.Popen(
        command(path, *options),
        cwd=ROOT,
        env=environment(**variables),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        # Printed once the engine is up; the socket takes connections right after.
        ready = process.stderr.readline()
        found = re.search(r"on (https?)://127\.0\.0\.1:(\d+)", ready)
        assert found, f"did not start: {ready}{process.stderr.read()}"
        yield Server(process, int(found[2]), found[1])
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(PATIENCE)
        process.stderr.close()
