"""Commands that read ClickHouse directly use the arena's, and only read."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.main import app
from services.lab.experiments import runner
from services.lab.experiments.declaration import ExperimentError, parse
from services.lab.experiments.journal import Folder, Journal
from services.lab.experiments.runner import Runner
from shared.runtime.gateway_client import GatewayClient
from shared.store.client import Store
from tests.integration import clickhouse_server
from tests.integration.conftest import settings_for

NOWHERE = "http://127.0.0.1:1"


class OneRun(GatewayClient):
    """An arena that has one run and must not be asked for another."""

    def get(self, path: str, **parameters: Any) -> Any:
        assert path == "/api/runs"
        return [{"run": "theirs"}]

    def post(self, path: str, body: Any = None, **parameters: Any) -> Any:
        raise AssertionError(path)


def run_on(store: Store, folder: Path) -> None:
    declared = {"name": "mine", "title": "Mine", "question": "?", "tasks": 5, "figures": ["cost"]}
    journal = Journal(command="hybrid ...", arena=NOWHERE, started_at="2026-01-01")
    made = Folder.create(folder, parse(declared, "mine"), journal)
    Runner(made, OneRun(NOWHERE), store, lambda reached: None, threading.Event()).run()


def test_an_experiment_refuses_a_clickhouse_that_does_not_know_the_arena(
    clickhouse: clickhouse_server.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "RECORDED_SECONDS", 0.0)
    store = Store(settings_for("nats://127.0.0.1:1", clickhouse.url))
    store.migrate()
    with pytest.raises(ExperimentError, match="has no run of this arena: set HYBRID_CLICKHOUSE"):
        run_on(store, tmp_path / "a")
    store.command("INSERT INTO runs (run) VALUES ('theirs')")
    with pytest.raises(AssertionError, match="/api/runs/check"):  # so the store was accepted
        run_on(store, tmp_path / "b")
    store.close()


def test_an_experiment_refuses_a_clickhouse_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"does not answer .*: set HYBRID_CLICKHOUSE_URL"):
        run_on(Store(settings_for("nats://127.0.0.1:1", NOWHERE)), tmp_path)


def test_sql_is_read_only_for_every_user(
    clickhouse: clickhouse_server.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # no local arena
    monkeypatch.setenv("HYBRID_CLICKHOUSE_URL", clickhouse.url)
    monkeypatch.setenv("HYBRID_CLICKHOUSE_PASSWORD", clickhouse_server.WRITER_PASSWORD)
    monkeypatch.setenv("HYBRID_CLICKHOUSE_DATABASE", "default")
    written = CliRunner().invoke(app, ["sql", "CREATE TABLE mine (x Int8) ENGINE = Memory"])
    assert written.exit_code == 1
    assert "readonly" in written.stderr
    read = CliRunner().invoke(app, ["sql", "SELECT 41 + 1 AS answer", "--json"])
    assert '{"answer":42}' in read.stdout
