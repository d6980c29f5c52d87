"""Databases of other versions: an older one is brought up to date, a newer one is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from shared.store import client
from shared.store.client import SchemaTooNew, Store
from shared.store.schema import MIGRATIONS, TABLES, Migration
from tests.integration import clickhouse_server
from tests.integration.arena import Arena
from tests.integration.conftest import settings_for
from tests.upgrade.recording import Recording
from tests.waiting import PATIENCE


@pytest.fixture
def stores(clickhouse: clickhouse_server.Server) -> Iterator[tuple[Store, Store]]:
    """Two empty databases."""
    first, second = (Store(settings_for("nats://127.0.0.1:1", clickhouse.url)) for _ in range(2))
    yield first, second
    first.close()
    second.close()


def restore(store: Store, old: Recording) -> None:
    """The database as the old version left it."""
    for table, statement in old.statements.items():
        # The first line names the database it was in.
        store.command(f"CREATE TABLE {table}\n{statement.partition(chr(10))[2]}")
        store.insert(table, old.rows(table), token=table)


def tables_of(store: Store) -> dict[str, str]:
    """The statement of every table, without the name of its database and the comments."""
    statements = {}
    for row in store.query("SHOW TABLES"):
        (shown,) = store.query(f"SHOW CREATE TABLE {row['name']}")
        statement = next(iter(shown.values())).partition("\n")[2]
        statements[row["name"]] = re.sub(r" COMMENT '(?:[^'\\]|\\.)*'", "", statement)
    return statements


def test_an_old_database_ends_up_like_a_new_one_with_its_rows(
    stores: tuple[Store, Store], old: Recording
) -> None:
    migrated, fresh = stores
    restore(migrated, old)
    migrated.migrate()
    fresh.migrate()
    assert tables_of(migrated) == tables_of(fresh)
    for table in TABLES:
        expected = old.rows_now(table)
        found = migrated.table(f"SELECT {', '.join(expected[0])} FROM {table}").to_pylist()
        assert sorted(map(str, found)) == sorted(map(str, expected))


def test_a_column_that_is_added_has_its_default_in_old_rows(
    stores: tuple[Store, Store], old: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = stores
    restore(store, old)
    statement = "ALTER TABLE tasks ADD COLUMN IF NOT EXISTS priority UInt8 DEFAULT 3"
    added = Migration(MIGRATIONS[-1].version + 1, "priority", (statement,))
    monkeypatch.setattr(client, "MIGRATIONS", [*MIGRATIONS, added])
    assert store.migrate()[-1] == "priority"
    assert store.migrate() == []
    rows = store.query("SELECT count() AS n, sum(priority) AS priorities FROM tasks")
    assert rows == [{"n": old.rows("tasks").num_rows, "priorities": 3 * old.rows("tasks").num_rows}]
    # As a recorder of the version before still inserts, until it is replaced as well.
    store.insert("tasks", old.rows("tasks"), token="again")
    assert store.query("SELECT DISTINCT priority FROM tasks") == [{"priority": 3}]


def test_versions_rise_by_one() -> None:
    assert [each.version for each in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


async def test_the_recorder_of_an_older_version_ends_with_a_clear_message(
    arena: Arena, capfd: pytest.CaptureFixture[str]
) -> None:
    arena.store.migrate()
    arena.store.command("INSERT INTO schema_migrations (version, name) VALUES (99, 'later')")
    with pytest.raises(SchemaTooNew):
        await arena.start("recorder")
    process = arena.process("recorder")
    assert process.wait(PATIENCE) != 0
    output = capfd.readouterr()
    assert "the database has schema version 99, which is newer than this program" in (
        output.out + output.err
    )
