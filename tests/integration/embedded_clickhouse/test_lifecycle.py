"""The server starts, stops, is killed, and reports why it cannot start."""

import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.clickhouse_server import ROOT, Server, command, environment, running
from tests.integration.embedded_clickhouse.requests import curl
from tests.waiting import PATIENCE, until

RUNNING = "SELECT count() FROM system.processes WHERE query LIKE 'SELECT sleep%'"


class TestLifecycle:
    def test_an_acknowledged_insert_survives_kill_9(self, tmp_path: Path) -> None:
        path = tmp_path / "data"
        with running(path) as first, first.client(database="arena") as writer:
            writer.command("CREATE TABLE kept (a UInt64) ENGINE = MergeTree ORDER BY a")
            for value in range(30):
                writer.insert("kept", [[value]], column_names=["a"])
            first.kill()
        with running(path) as second, second.client(database="arena") as reader:
            got = reader.query("SELECT count(), sum(a) FROM kept").result_rows
        assert got == [(30, 435)]

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_stop_finishes_running_queries_and_exits_0(self, tmp_path: Path, number: int) -> None:
        with running(tmp_path / "data") as stopping:
            with ThreadPoolExecutor(1) as threads:
                slow = threads.submit(curl, stopping, "/?query=SELECT%20sleep(3)")
                with stopping.client() as client:
                    until(lambda: client.command(RUNNING))
                assert stopping.stop(number) == 0
                assert slow.result(PATIENCE).body == b"0\n"
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", stopping.port), timeout=1)

    def test_a_second_process_on_the_folder_names_the_first(
        self, server: Server, tmp_path: Path
    ) -> None:
        with running(tmp_path / "data") as owner:
            message = self._failure(*command(tmp_path / "data"))
            assert f"is in use by process {owner.process.pid}" in message
            assert "--path" in message
            assert curl(owner, "/?query=SELECT%201").body == b"1\n"

    def test_a_port_in_use_is_reported(self, server: Server, tmp_path: Path) -> None:
        message = self._failure(*command(tmp_path / "data"), "--port", str(server.port))
        assert f"127.0.0.1:{server.port}" in message
        assert "--port" in message

    def test_an_unusable_folder_is_reported(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way")
        message = self._failure(*command(tmp_path / "file"))
        assert "--path" in message

    def test_help_names_the_environment(self) -> None:
        result = subprocess.run(
            [*command(Path("x")), "--help"], cwd=ROOT, capture_output=True, text=True
        )
        assert result.returncode == 0
        assert "CLICKHOUSE_ANALYST_PASSWORD" in result.stdout

    @staticmethod
    def _failure(*arguments: str) -> str:
        result = subprocess.run(
            arguments, cwd=ROOT, env=environment(), capture_output=True, text=True
        )
        assert result.returncode == 1
        assert len(result.stderr.splitlines()) == 1, result.stderr
        return result.stderr
