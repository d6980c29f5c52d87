"""None of the figures reads a run, however long it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from services.gateway.queries import Queries
from services.gateway.windows import Windows
from tests.integration import clickhouse_server
from tests.integration.conftest import settings_for
from tests.integration.reads import GRANULE, Reads

BOTH = ["greedy", "oracle"]


class ReadsTables(Reads):
    """Also what is read as columns; the driver tells how much only of rows."""

    def table(self, sql: str, parameters: Any = None) -> pa.Table:
        self.query(sql, parameters)
        return super().table(sql, parameters)


@pytest.fixture(scope="module")
def runs(clickhouse: clickhouse_server.Server) -> Iterator[ReadsTables]:
    """Runs of 1,000 and 1,000,000 tasks, two schedulers, a batch for every 10 tasks."""
    store = ReadsTables(settings_for("nats://127.0.0.1:1", clickhouse.url))
    store.migrate()
    for run, tasks in (("short", 1000), ("long", 1_000_000)):
        for scheduler in ("greedy", "oracle"):
            store.command(
                "INSERT INTO standings (run, scheduler, batch, tasks, total_time, clock, cpu_busy, "
                f"gpu_busy) SELECT '{run}', '{scheduler}', number, (number + 1) * 10, number, "
                f"number * 2.5, [number], [number] FROM numbers({tasks // 10})"
            )
            store.command(
                "INSERT INTO scheduler_results (run, scheduler, batch, task_id, time, status, "
                "gpu_start, cpu_start, cpu_time, finish) "
                f"SELECT '{run}', '{scheduler}', intDiv(number, 10), number, 0.1, 'ok', "
                f"number / 4, number / 4, 0.1, number / 4 + 0.1 FROM numbers({tasks})"
            )
        store.command(
            "INSERT INTO tasks (run, task_id, size, compute_intensity, memory_required) "
            f"SELECT '{run}', number, number + 1, 0.5, 10 FROM numbers({tasks})"
        )
        store.command(
            "INSERT INTO training_data (run, task_id, optimal_time) "
            f"SELECT '{run}', number, 0.1 FROM numbers({tasks})"
        )
        store.command(
            "INSERT INTO models (run, name, version, created_at, metrics) "
            f"SELECT '{run}', ['forest', 'rl_agent'][number % 2 + 1], intDiv(number, 2) + 1, "
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


def looks(windows: Windows, queries: Queries, run: str) -> dict[str, int]:
    """Everything that a watched dashboard asks, and how many rows came of it."""
    first, last = windows.common(run, BOTH, 500)
    end = queries.newest_standings(run, ["greedy"])["greedy"]["clock"]
    return {
        "results": windows.results(run, BOTH, first, last).num_rows,
        "features": windows.features(run, first, last).num_rows,
        "progress": len(windows.progress(run, BOTH, 10)["greedy"]),
        "parts": windows.parts(run, "greedy", end - 20, end).num_rows,
        "page": len(windows.page(run, BOTH, BOTH, None, 50, None)[0]),
        "before": len(queries.busy_before(run, {"greedy": (90, 100.0), "oracle": (90, 100.0)})),
        "task": len(queries.results_of_task(run, BOTH, 990)),
        "training": len(queries.training_data(run, 300)),
        "models": len(queries.models(run, None, None, 100)),
        "events": len(queries.events(run, None, 100, None)),
        "all events": len(queries.events(None, None, 100, None)),
    }


def test_a_look_costs_the_same_after_a_million_tasks(runs: ReadsTables) -> None:
    queries = Queries(runs)
    windows = Windows(runs, queries)
    looks(windows, queries, "short")
    runs.read_rows.clear()
    found = looks(windows, queries, "long")
    assert found == {
        "results": 1000,
        "features": 500,
        "progress": 10,
        "parts": 2480,  # four a second for 20 seconds and the longest part before them
        "page": 100,
        "before": 2,
        "task": 2,
        "training": 300,
        "models": 100,
        "events": 100,
        "all events": 100,
    }
    # Of 2,000,000 results, 1,000,000 tasks and events and 200,000 standings each query reads a
    # granule or two of each scheduler; progress one for each of its ten points.
    assert len(runs.read_rows) == 17
    *others, progress = sorted(runs.read_rows)
    assert max(others) <= 4 * GRANULE
    assert progress <= 2 * 11 * GRANULE
