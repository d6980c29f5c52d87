"""None of the figures reads a run, however long it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from services.gateway.analysis import queries as analysis
from services.gateway.analysis.device_work import work_between
from services.gateway.analysis.errors import error_tracks
from services.gateway.analysis.progress import ProgressTracks
from services.gateway.analysis.queues import queue_tracks
from services.gateway.history import queries as history
from services.gateway.models.queries import models
from services.gateway.runs.queries import busy_before, newest_standings, standings
from services.gateway.tasks.queries import page, results_of_task
from shared.domain.schedulers import LEARNERS
from shared.domain.spec import RunSpec
from shared.runtime.settings import Settings
from shared.store.client import Store
from tests.integration import clickhouse_server
from tests.integration.conftest import settings_for

BOTH = ["greedy", "oracle"]
GRANULE = 8192  # ClickHouse reads this many rows at once


class ReadsTables(Store):
    """A store that notes how many rows each query read."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.read_rows: list[int] = []

    def query(self, sql: str, parameters: Any = None) -> list[dict[str, Any]]:
        result = self._try(lambda client: client.query(sql, parameters=dict(parameters or {})))
        self.read_rows.append(int(result.summary["read_rows"]))
        return list(result.named_results())

    def table(self, sql: str, parameters: Any = None) -> pa.Table:
        self.query(sql, parameters)  # the driver counts only what is read as rows
        return super().table(sql, parameters)


@pytest.fixture(scope="module")
def runs(clickhouse: clickhouse_server.Server) -> Iterator[ReadsTables]:
    """Runs of 1,000 and 1,000,000 tasks, two schedulers, a batch for every 10 tasks. Four tasks
    arrive in a second. The Oracle has no queue; the other one finishes only two in a second."""
    store = ReadsTables(settings_for("nats://127.0.0.1:1", clickhouse.url))
    store.migrate()
    pace = {"oracle": 0.25, "greedy": 0.5}
    for run, tasks in (("short", 1000), ("long", 1_000_000)):
        for scheduler in ("greedy", "oracle"):
            store.command(
                "INSERT INTO standings (run, scheduler, batch, tasks, total_time, clock, "
                f"makespan, busy) SELECT '{run}', '{scheduler}', number, (number + 1) * 10, number,"
                f" (number * 10 + 9) / 4, (number * 10 + 9) * {pace[scheduler]} + 0.1, "
                f"[number, number] FROM numbers({tasks // 10})"
            )
            store.command(
                "INSERT INTO scheduler_results (run, scheduler, batch, task_id, time, status, cpu, "
                "gpu_start, cpu_start, cpu_time, finish, turnaround, expected_time) "
                f"SELECT '{run}', '{scheduler}', intDiv(number, 10), number, 0.1, 'ok', 4, "
                f"number / 4, number * {pace[scheduler]}, 0.1, number * {pace[scheduler]} + 0.1, "
                f"number * ({pace[scheduler]} - 0.25) + 0.1, 0.1 / (1 + number / {tasks}) "
                f"FROM numbers({tasks})"
            )
        store.command(
            "INSERT INTO tasks (run, task_id, size, compute_intensity, memory_required, "
            "arrival_time) "
            f"SELECT '{run}', number, number + 1, 0.5, 10, number / 4 FROM numbers({tasks})"
        )
        store.command(
            "INSERT INTO training_data (run, task_id, optimal_time) "
            f"SELECT '{run}', number, 0.1 FROM numbers({tasks})"
        )
        store.command(
            "INSERT INTO models (run, name, version, created_at, metrics) "
            f"SELECT '{run}', {list(LEARNERS)}[number % 2 + 1], intDiv(number, 2) + 1, "
            f"toDateTime64(number, 6, 'UTC'), '{{}}' FROM numbers({tasks // 10})"
        )
        store.command(
            "INSERT INTO events (at, sequence, kind, service, run, message, data) "
            f"SELECT toDateTime64(number, 6, 'UTC'), number + 1, 'run', 'test', '{run}', '', '{{}}'"
            f" FROM numbers({tasks})"
        )
    for table in ("standings", "scheduler_results", "tasks", "training_data", "models", "events"):
        store.command(f"OPTIMIZE TABLE {table} FINAL")
    yield store
    store.close()


PLATFORM = RunSpec.parse({"schedulers": BOTH}).platform


def work(store: ReadsTables, run: str, scheduler: str, start: float, end: float) -> int:
    """Parts of tasks on devices; one that ends at the start, or begins at the end, is none."""
    tasks = 1_000_000 if run == "long" else 1000
    return len(work_between(store, run, scheduler, PLATFORM, start, end, tasks).task_id)


def looks(store: ReadsTables, run: str) -> dict[str, int]:
    """Everything that a watched dashboard asks, and how many rows came of it."""
    first, last = analysis.common_tasks(store, run, BOTH, 500)
    end = newest_standings(store, run, ["greedy"])["greedy"]["clock"]
    return {
        "results": analysis.results(store, run, BOTH, first, last).num_rows,
        "features": analysis.features(store, run, first, last).num_rows,
        "progress": len(ProgressTracks(store).of(run, BOTH, 10)["greedy"].tasks),
        "newest work": work(store, run, "oracle", end - 20, end),
        "old work": work(store, run, "oracle", 100, 120),
        "work behind a queue": work(store, run, "greedy", end - 20, end),
        "page": len(page(store, run, BOTH, BOTH, None, 50, None)[0]),
        "before": len(busy_before(store, run, {"greedy": (90, 100.0), "oracle": (90, 100.0)})),
        "standings": len(standings(store, run, BOTH)),
        "task": len(results_of_task(store, run, BOTH, 990)),
        "training": len(history.training_data(store, run, 300)),
        "models": len(models(store, run, None, None, 100)),
        "events": len(history.events(store, run, None, 100, None)),
        "all events": len(history.events(store, None, None, 100, None)),
    }


def test_a_look_costs_the_same_after_a_million_tasks(runs: ReadsTables) -> None:
    looks(runs, "short")
    runs.read_rows.clear()
    found = looks(runs, "long")
    assert found == {
        "results": 1000,
        "features": 500,
        "progress": 8,  # at multiples of 131,072 tasks, and at the end
        "newest work": 80,  # four a second for 20 seconds
        "old work": 80,
        "work behind a queue": 40,
        "page": 100,
        "before": 2,
        "standings": 2,
        "task": 2,
        "training": 300,
        "models": 100,
        "events": 100,
        "all events": 100,
    }
    # From 2,000,000 results, 1,000,000 tasks and events and 200,000 standings each query reads a
    # granule or two of each scheduler; progress, in three queries, one or two for each point.
    assert len(runs.read_rows) >= len(found)
    *others, _, _, progress = sorted(runs.read_rows)
    assert max(others) <= 4 * GRANULE
    assert progress <= 2 * 8 * 2 * GRANULE


def test_points_of_progress_are_computed_once(runs: ReadsTables) -> None:
    tracks = ProgressTracks(runs)
    first = tracks.of("long", BOTH, 100)
    runs.read_rows.clear()
    assert tracks.of("long", BOTH, 100) == first
    assert len(runs.read_rows) == 1  # the newest standings
    assert sum(runs.read_rows) <= 2 * GRANULE


def test_queues_are_counted_from_as_many_rows_after_a_million_tasks(runs: ReadsTables) -> None:
    """After t seconds 4 t tasks have arrived, of which the slow scheduler has finished 2 t."""
    for run in ("short", "long"):
        runs.read_rows.clear()
        track = queue_tracks(runs, run, ["greedy"], None, points=12)["greedy"]
        assert track.exact == (run == "short")
        for time, unfinished in zip(track.time, track.unfinished, strict=True):
            assert unfinished == pytest.approx(2 * time, rel=0.01, abs=1.5)
    # Eight blocks at each of 12 moments, each in one granule or two; and the standings.
    assert max(runs.read_rows) <= 12 * 8 * 2 * GRANULE


def test_errors_are_measured_on_as_many_rows_after_a_million_tasks(runs: ReadsTables) -> None:
    """The expected time falls from the real one, which it is at first, to half of it."""
    for run, stretches in (("short", 20), ("long", 60)):
        runs.read_rows.clear()
        track = error_tracks(runs, run, ["greedy"], PLATFORM)["greedy"]
        assert track.exact == (run == "short")
        assert list(track.types) == ["cpu"]
        wanted = [(number + 0.5) / stretches for number in range(stretches)]
        assert track.types["cpu"].error == pytest.approx(wanted, abs=0.001)
        assert max(track.types["cpu"].tasks) == (50 if run == "short" else 1000)
    # A block of 1,000 tasks in each stretch, in one granule or two; and the standings.
    assert max(runs.read_rows) <= 60 * 2 * GRANULE
