"""The tables, and that the gateway's queries do not read a run to draw a tick."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from services.gateway.queries import Queries
from services.gateway.windows import Windows
from shared.store.client import Store, StoreError
from shared.store.schema import MIGRATIONS, TABLES
from tests.integration import clickhouse_server
from tests.integration.conftest import settings_for
from tests.integration.nats_server import free_port
from tests.integration.reads import GRANULE, Reads


@pytest.fixture
def store(clickhouse: clickhouse_server.Server) -> Iterator[Store]:
    store = Store(settings_for("nats://127.0.0.1:1", clickhouse.url))
    yield store
    store.close()


@pytest.fixture(scope="module")
def long_run(clickhouse: clickhouse_server.Server) -> Iterator[Reads]:
    """Runs of 20,000 and 200,000 tasks, two schedulers, a batch per task, as at a slow pace."""
    store = Reads(settings_for("nats://127.0.0.1:1", clickhouse.url))
    store.migrate()
    for run, tasks in (("short", 20_000), ("long", 200_000)):
        for scheduler in ("greedy", "oracle"):
            given = f"'{run}', '{scheduler}', number"
            for start in range(0, tasks, 50_000):
                count = min(tasks - start, 50_000)
                store.command(
                    "INSERT INTO standings (run, scheduler, batch, tasks, total_time, makespan) "
                    f"SELECT {given}, number + 1, (number + 1) * 0.5, number "
                    f"FROM numbers({start}, {count})"
                )
                store.command(
                    "INSERT INTO scheduler_results (run, scheduler, batch, task_id, time) "
                    f"SELECT {given}, number, 0.5 FROM numbers({start}, {count})"
                )
        store.command(
            "INSERT INTO tasks (run, task_id, size) "
            f"SELECT '{run}', number, number + 1 FROM numbers({tasks})"
        )
    yield store
    store.close()


def test_standings_are_the_newest_of_each_scheduler(long_run: Reads) -> None:
    found = Queries(long_run).standings("long", ["oracle", "greedy", "absent"])
    assert set(found) == {"greedy", "oracle"}
    for standing in found.values():
        assert (standing.results, standing.total_time) == (200_000, 100_000.0)
        assert (standing.avg_time, standing.vs_oracle) == (0.5, 1.0)


def parts(store: Store, table: str) -> int:
    (row,) = store.query(
        "SELECT count() AS n FROM system.parts "
        "WHERE active AND database = currentDatabase() AND table = {table:String}",
        {"table": table},
    )
    return int(row["n"])


def test_a_tick_does_not_read_the_run(long_run: Reads) -> None:
    """A granule of each part for each scheduler at most, however long the run is."""
    most = GRANULE * parts(long_run, "standings")
    for run in ("short", "long"):
        long_run.read_rows.clear()
        Queries(long_run).standings(run, ["greedy", "oracle"])
        (read,) = long_run.read_rows
        assert 0 < read <= 2 * most
        assert run == "short" or read < 200_000


def test_a_merged_run_is_read_a_granule_at_a_time(long_run: Reads) -> None:
    for table in ("standings", "scheduler_results", "tasks"):
        long_run.command(f"OPTIMIZE TABLE {table} FINAL")
    read = {}
    for run in ("short", "long"):
        long_run.read_rows.clear()
        Queries(long_run).standings(run, ["greedy", "oracle"])
        read[run] = sum(long_run.read_rows)
    assert read["long"] <= 8 * GRANULE  # of 400,000 rows
    assert read["long"] <= read["short"] + 2 * GRANULE


def test_the_newest_tasks_are_read_without_the_run(long_run: Reads) -> None:
    for table in ("standings", "scheduler_results", "tasks"):
        long_run.command(f"OPTIMIZE TABLE {table} FINAL")
    long_run.read_rows.clear()
    names = ["greedy", "oracle"]
    rows, _ = Windows(long_run, Queries(long_run)).page("long", names, names, None, 3, None)
    assert [(row["task_id"], row["scheduler_name"], row["size"]) for row in rows] == [
        (task, name, task + 1.0)
        for task in (199_999, 199_998, 199_997)
        for name in ("greedy", "oracle")
    ]
    # 440,000 results and 220,000 tasks are there; a granule or two per scheduler is read.
    assert sum(long_run.read_rows) <= 16 * GRANULE


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


def test_a_clickhouse_that_is_away_is_a_store_error() -> None:
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
        # Without the query: it may be long, and is told of again and again.
        assert "INSERT" not in str(refused.value)
        assert store.ping()
    with clickhouse_server.running(tmp_path, "--port", port):
        assert store.ping() is None
        store.close()
