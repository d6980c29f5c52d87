"""What is summed up of a run, against figures worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from services.lab.experiments.collect import collect, recovered_after
from services.lab.experiments.declaration import Experiment, parse
from services.lab.experiments.tables import TABLES
from shared.errors import ArenaError
from shared.store.client import Store
from tests.integration import clickhouse_server
from tests.integration.conftest import settings_for

TASKS, FIRST = 500, 100  # tasks 100 to 499 are judged

# Task n arrives at n / 10, has size 1000, intensity 0.5 and no memory: 1 s on a CPU and 0.4 s on a
# GPU, which is what the Oracle takes. `late` takes 4 s up to task 219 and 0.42 s from then on.
OF_TASKS = f"""
    INSERT INTO tasks (run, task_id, size, compute_intensity, memory_required, arrival_time,
                       dependencies)
    SELECT 'r', number, 1000, 0.5, 0, number / 10, if(number = 0, [], [number - 1])
    FROM numbers({TASKS})
"""
OF_RESULTS = f"""
    INSERT INTO scheduler_results (run, scheduler, task_id, gpu_fraction, explored, time, wait,
                                   turnaround, energy, cost, finish, status)
    SELECT 'r', '{{name}}', number, 1, number % 2, {{time}}, 1, {{time}} + 1, 20, 0.01,
           number / 10 + 1 + {{time}}, if(number = 300, 'failed', 'ok')
    FROM numbers({TASKS})
"""


@pytest.fixture
def store(clickhouse: clickhouse_server.Server) -> Iterator[Store]:
    store = Store(settings_for("nats://127.0.0.1:1", clickhouse.url))
    store.migrate()
    store.command(OF_TASKS)
    for name, time in (("oracle", "0.4"), ("late", "if(number < 220, 4, 0.42)")):
        # Twice, as after a redelivery: nothing may be counted twice.
        for _ in range(2):
            store.command(OF_RESULTS.format(name=name, time=time))
    store.command(
        "INSERT INTO models (run, name, version, shipped, score, last_task, trained_on, created_at)"
        " VALUES ('r', 'hybrid_ml', 1, true, NULL, -1, 1000, 1), "
        "('r', 'hybrid_ml', 2, false, 1.5, 49, 1000, 2)"
    )
    yield store
    store.close()


def experiment(**more: Any) -> Experiment:
    return parse(
        {
            "name": "mine",
            "title": "Mine",
            "question": "?",
            "tasks": TASKS,
            "judge_from": FIRST,
            "figures": ["recovery"],
            **more,
        },
        "mine",
    )


@pytest.fixture
def result(store: Store) -> dict[str, pa.Table]:
    return collect(store, experiment(), "", 7, "r", ("late", "oracle"))


def row_of(table: pa.Table, scheduler: str) -> dict[str, Any]:
    (row,) = [row for row in table.to_pylist() if row["scheduler"] == scheduler]
    return dict(row)


def test_every_table_is_as_declared(result: dict[str, pa.Table]) -> None:
    assert {name: table.schema for name, table in result.items()} == TABLES
    for table in result.values():
        assert set(table["seed"].to_pylist()) == {7}


def test_outcomes_are_the_totals_of_the_judged_tasks(result: dict[str, pa.Table]) -> None:
    row = row_of(result["outcomes"], "late")
    # 120 judged tasks of 4 s, 280 of 0.42 s; the last one arrives at 49.9 and is done 1.42 later.
    assert row["tasks"] == 400
    assert row["failed"] == 1
    assert row["total_time"] == pytest.approx(120 * 4 + 280 * 0.42)
    assert row["avg_wait"] == pytest.approx(1.0)
    assert row["p95_turnaround"] == pytest.approx(5.0)
    assert row["total_energy"] == pytest.approx(8000)
    assert row["total_cost"] == pytest.approx(4.0)
    assert row["makespan"] == pytest.approx(51.32 - 10)
    assert (row["gpu_share"], row["gpu_tasks"], row["explored"]) == (1.0, 400, 200)


def test_the_bound_is_that_of_the_judged_tasks(result: dict[str, pa.Table]) -> None:
    """400 s on one CPU or 160 s on four GPUs: 1 task/s and 10 tasks/s, together 11."""
    row = row_of(result["outcomes"], "oracle")
    assert row["bound"] == pytest.approx(400 / 11)
    # The last task arrives 39.9 s after the first judged one and needs 0.4 s at least.
    assert row["arrival_bound"] == pytest.approx(40.3)


def test_recovery_is_counted_from_the_first_judged_task(result: dict[str, pa.Table]) -> None:
    assert row_of(result["outcomes"], "oracle")["recovered_after"] == 0
    # 0.42 is within 10 % of 0.4, and no window with a task of 4 s in it is.
    assert row_of(result["outcomes"], "late")["recovered_after"] == 120


def test_who_never_comes_back_has_no_recovery() -> None:
    assert recovered_after(np.full(60, 2.0), np.ones(60)) is None


def test_the_course_is_the_complete_run_in_intervals(result: dict[str, pa.Table]) -> None:
    rows = [row for row in result["course"].to_pylist() if row["scheduler"] == "late"]
    assert len(rows) == 167  # 500 tasks in stretches of 3
    assert sum(row["tasks"] for row in rows) == TASKS
    assert [row["first_task"] for row in rows[:2]] == [0, 3]
    assert rows[0]["time"] == pytest.approx(12.0)
    assert rows[0]["oracle_time"] == pytest.approx(1.2)
    assert rows[1]["arrival"] == pytest.approx(0.5)


def test_quantiles_run_from_the_least_to_the_most(result: dict[str, pa.Table]) -> None:
    values = [
        (row["level"], row["value"])
        for row in result["quantiles"].to_pylist()
        if (row["scheduler"], row["figure"]) == ("late", "time")
    ]
    assert len(values) == 201
    assert values[0] == (0.0, pytest.approx(0.42))
    assert values[-1] == (1.0, pytest.approx(4.0))
    # 280 of 400 are quick: 70 %.
    assert dict(values)[0.65] == pytest.approx(0.42)
    assert dict(values)[0.75] == pytest.approx(4.0)


def test_the_workload_says_what_a_task_takes(result: dict[str, pa.Table]) -> None:
    rows = result["workload"].to_pylist()
    assert len(rows) == TASKS
    assert rows[0]["cpu_time"] == pytest.approx(1.0)
    assert rows[0]["gpu_time"] == pytest.approx(0.4)
    assert [row["judged"] for row in rows].count(True) == 400


def test_the_graph_begins_with_the_judged_tasks(result: dict[str, pa.Table]) -> None:
    rows = result["graph"].to_pylist()
    assert len(rows) == 300
    assert (rows[0]["task_id"], rows[0]["parents"]) == (100, [99])


def test_models_are_listed_shipped_or_not(result: dict[str, pa.Table]) -> None:
    rows = result["models"].to_pylist()
    assert [(row["version"], row["shipped"], row["score"]) for row in rows] == [
        (1, True, None),
        (2, False, 1.5),
    ]


def test_a_run_that_lacks_results_is_refused(store: Store) -> None:
    with pytest.raises(ArenaError, match="has 400 results of 400 tasks, 500 were expected"):
        collect(store, experiment(tasks=TASKS + 100), "", 7, "r", ("late", "oracle"))


def test_a_scheduler_without_any_result_is_refused(store: Store) -> None:
    with pytest.raises(ArenaError, match="run r: ClickHouse has no judged results of greedy"):
        collect(store, experiment(), "", 7, "r", ("greedy", "late", "oracle"))
    with pytest.raises(ArenaError, match="run q: ClickHouse has no judged results of late, oracle"):
        collect(store, experiment(), "", 7, "q", ("late", "oracle"))
