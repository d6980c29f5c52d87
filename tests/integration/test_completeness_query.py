"""The query of docs/data.md that proves a run complete, on the real engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shared.store.client import Store
from tests.integration import clickhouse_server
from tests.integration.clickhouse_server import ROOT
from tests.integration.conftest import settings_for

DOCUMENT = (ROOT / "docs/data.md").read_text()
(QUERY,) = re.findall(r"```sql\n(SELECT run, scheduler.*?)```", DOCUMENT, re.DOTALL)
TASKS = 10
SCHEDULERS = ("eft", "greedy")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clickhouse_server.Server]:
    with clickhouse_server.running(Path(tmp_path_factory.mktemp("clickhouse"))) as running:
        yield running


@pytest.fixture
def store(server: clickhouse_server.Server) -> Iterator[Store]:
    """With one complete run."""
    store = Store(settings_for("nats://127.0.0.1:1", server.url))
    store.migrate()
    for table in ("runs", "tasks", "scheduler_results"):
        store.command(f"TRUNCATE TABLE {table}")
    add_run(store, "r", TASKS)
    yield store
    store.close()


def add_run(store: Store, run: str, announced: int | None, state: str = "completed") -> None:
    store.command(
        "INSERT INTO runs (run, revision, state, tasks, schedulers) "
        f"VALUES ('{run}', 1, 'running', NULL, []), ('{run}', 2, '{state}', "
        f"{'NULL' if announced is None else announced}, {list(SCHEDULERS)})"
    )
    store.command(f"INSERT INTO tasks (run, task_id) SELECT '{run}', number FROM numbers({TASKS})")
    for _ in range(2):  # a batch that is stored twice replaces itself
        store.command(
            "INSERT INTO scheduler_results (run, scheduler, task_id) SELECT "
            f"'{run}', arrayJoin({list(SCHEDULERS)}), number FROM numbers({TASKS})"
        )


def incomplete(store: Store) -> list[tuple[int, ...]]:
    return [tuple(row.values()) for row in store.query(QUERY)]


def delete(table: str, condition: str) -> Callable[[Store], None]:
    return lambda store: store.command(
        f"ALTER TABLE {table} DELETE WHERE {condition} SETTINGS mutations_sync = 1"
    )


def test_complete_runs_give_no_row(store: Store) -> None:
    add_run(store, "submitted", None)
    assert incomplete(store) == []


@pytest.mark.parametrize(
    ("lose", "rows"),
    [
        (
            delete("scheduler_results", "scheduler = 'eft' AND task_id >= 7"),
            [("r", "eft", 10, 10, 7)],
        ),
        (delete("scheduler_results", "scheduler = 'eft'"), [("r", "eft", 10, 10, 0)]),
        (
            delete("scheduler_results", "scheduler = 'greedy' AND task_id = 4"),
            [("r", "greedy", 10, 10, 9)],
        ),
        (
            delete("scheduler_results", "1"),
            [("r", "eft", 10, 10, 0), ("r", "greedy", 10, 10, 0)],
        ),
        (delete("tasks", "task_id >= 7"), [("r", "eft", 10, 7, 10), ("r", "greedy", 10, 7, 10)]),
    ],
    ids=["a lost end", "an absent scheduler", "a hole", "no result at all", "a lost end of tasks"],
)
def test_what_is_missing_is_a_row(
    store: Store, lose: Callable[[Store], None], rows: list[tuple[int, ...]]
) -> None:
    lose(store)
    assert incomplete(store) == rows


def test_an_end_that_tasks_and_results_lack_is_known_from_the_run(store: Store) -> None:
    delete("tasks", "task_id >= 7")(store)
    delete("scheduler_results", "task_id >= 7")(store)
    assert incomplete(store) == [("r", "eft", 10, 7, 7), ("r", "greedy", 10, 7, 7)]


def test_a_run_without_any_stored_task_is_no_complete_run(store: Store) -> None:
    add_run(store, "submitted", None)
    delete("tasks", "run = 'submitted'")(store)
    delete("scheduler_results", "run = 'submitted'")(store)
    assert incomplete(store) == [("submitted", name, 0, 0, 0) for name in SCHEDULERS]


def test_runs_that_are_not_over_do_not_count(store: Store) -> None:
    add_run(store, "stopped", 1_000_000, state="stopped")
    assert incomplete(store) == []
