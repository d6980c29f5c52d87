"""The bound of a finished run, as the gateway tells it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.gateway.runs import detail
from services.gateway.runs.detail import ClusterBounds
from shared.domain.spec import RunSpec
from shared.messages.runs import RunRecord, RunState
from shared.store.client import Store
from tests.integration import clickhouse_server
from tests.integration.conftest import settings_for


@pytest.fixture
def store(clickhouse: clickhouse_server.Server) -> Iterator[Store]:
    """A run of 110 tasks that take 1 s on a CPU and 0.4 s on a GPU."""
    store = Store(settings_for("nats://127.0.0.1:1", clickhouse.url))
    store.migrate()
    for _ in range(2):  # as after a redelivery
        store.command(
            "INSERT INTO tasks (run, task_id, size, compute_intensity) "
            "SELECT 'r', number, 1000, 0.5 FROM numbers(110)"
        )
    yield store
    store.close()


def record(state: RunState = RunState.COMPLETED) -> RunRecord:
    return RunRecord(run="r", spec=RunSpec(), state=state, created_at=0, updated_at=0)


def test_it_is_worked_out_for_a_complete_run(store: Store) -> None:
    # One CPU does 1 task a second, four GPUs do 10.
    assert ClusterBounds(store).of(record()) == pytest.approx(10.0)


def test_it_counts_from_simulated_time_0_as_makespans_do(store: Store) -> None:
    store.command(
        "INSERT INTO tasks (run, task_id, size, compute_intensity, arrival_time) "
        "VALUES ('r', 110, 1000, 0.5, 100)"
    )
    assert ClusterBounds(store).of(record()) == pytest.approx(100.4)


def test_it_is_worked_out_once(store: Store) -> None:
    found = ClusterBounds(store)
    first = found.of(record())
    store.command("TRUNCATE TABLE tasks")
    assert found.of(record()) == first


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.PAUSED, RunState.STOPPED])
def test_a_run_that_is_not_complete_has_none(store: Store, state: RunState) -> None:
    assert ClusterBounds(store).of(record(state)) is None


def test_a_run_too_long_to_look_at_whole_has_none(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detail, "MOST_TASKS", 109)
    assert ClusterBounds(store).of(record()) is None
