"""The store: migrations, inserts once, and errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from shared.store.client import StatementRefused, Store, StoreError, StoreUnavailable
from shared.store.schema import MIGRATIONS, TABLES
from tests.integration import clickhouse_server
from tests.integration.conftest import settings_for
from tests.integration.nats_server import free_port


@pytest.fixture
def store(clickhouse: clickhouse_server.Server) -> Iterator[Store]:
    store = Store(settings_for("nats://127.0.0.1:1", clickhouse.url))
    yield store
    store.close()


def test_migrations_may_be_run_twice(store: Store) -> None:
    assert store.migrate() == [migration.name for migration in MIGRATIONS]
    assert store.migrate() == []
    tables = {row["name"] for row in store.query("SHOW TABLES")}
    assert tables == {*TABLES, "schema_migrations"}


def test_a_migration_that_was_interrupted_is_run_again(store: Store) -> None:
    for statement in MIGRATIONS[0].statements[:3]:
        store.command(statement)
    assert store.migrate() == [migration.name for migration in MIGRATIONS]


def test_migrating_keeps_the_rows(store: Store) -> None:
    store.migrate()
    store.command("INSERT INTO tasks (run, task_id) VALUES ('r', 1)")
    store.command("TRUNCATE TABLE schema_migrations")
    store.migrate()
    assert store.query("SELECT run, task_id FROM tasks") == [{"run": "r", "task_id": 1}]


def test_a_newer_schema_is_a_clear_error(store: Store) -> None:
    store.migrate()
    store.command("INSERT INTO schema_migrations (version, name) VALUES (999, 'future')")
    with pytest.raises(StoreError, match=r"schema version 999, which is newer than this program"):
        store.migrate()


def test_the_same_token_inserts_once(store: Store) -> None:
    store.migrate()
    store.command("CREATE TABLE plain (n UInt64) ENGINE = MergeTree ORDER BY n "
                  "SETTINGS non_replicated_deduplication_window = 100")  # fmt: skip
    rows = pa.table({"n": pa.array([1, 2], pa.uint64())})
    for token in ("a", "a", "b", "a"):
        store.insert("plain", rows, token=token)
    assert store.query("SELECT count() AS n FROM plain") == [{"n": 4}]


def test_a_refused_query_is_a_store_error_and_the_next_one_works(store: Store) -> None:
    with pytest.raises(StoreError, match="nonsense"):
        store.query("SELECT nonsense")
    assert store.query("SELECT 1 AS one") == [{"one": 1}]


def test_a_clickhouse_that_is_down_is_a_store_error() -> None:
    store = Store(settings_for("nats://127.0.0.1:1", f"http://127.0.0.1:{free_port()}"))
    with pytest.raises(StoreError):
        store.query("SELECT 1")
    assert store.ping()


def test_a_store_finds_its_clickhouse_again(tmp_path: Path) -> None:
    port = str(free_port())
    store = Store(settings_for("nats://127.0.0.1:1", f"http://127.0.0.1:{port}"))
    with clickhouse_server.running(tmp_path, "--port", port) as server:
        assert store.ping() is None
        server.kill()
        with pytest.raises(StoreError, match="refused") as refused:
            store.insert("plain", pa.table({"a": [1]}), token="a")
        # Without the query: it may be long, and is logged again and again.
        assert "INSERT" not in str(refused.value)
        assert store.ping()
    with clickhouse_server.running(tmp_path, "--port", port):
        assert store.ping() is None
        store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT no_such_column FROM tasks",
        "SELEKT 1",
        "INSERT INTO tasks (run, task_id) VALUES ('r', 'not a number')",
    ],
)
def test_a_statement_that_can_never_work_is_told_from_a_store_that_does_not_answer(
    store: Store, statement: str
) -> None:
    store.migrate()
    with pytest.raises(StatementRefused):
        store.command(statement)


def test_a_missing_table_may_still_be_created(store: Store) -> None:
    with pytest.raises(StoreUnavailable):
        store.query("SELECT * FROM not_migrated_yet")
