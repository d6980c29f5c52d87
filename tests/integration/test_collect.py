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
from shared.domain.quantile_sketch import QuantileSketch
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
    for name, slowdown in (("oracle", 1000), ("late", 4000)):
        # The run's totals after a batch of 300 tasks and after all of them.
        store.command(
            "INSERT INTO standings (run, scheduler, batch, tasks, total_slowdown, idle_energy) "
            f"VALUES ('r', '{name}', 0, 300, 900, 70), ('r', '{name}', 1, 500, {slowdown}, 90)"
        )
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
    # A quantile of turnarounds is the middle of a bucket of 1/64: here of 4.9375 to 5.0625.
    assert row["p95_turnaround"] == row["p99_turnaround"] == 5.03125
    assert row["total_energy"] == pytest.approx(8000)
    assert row["total_cost"] == pytest.approx(4.0)
    assert row["makespan"] == pytest.approx(51.32 - 10)
    assert (row["gpu_share"], row["gpu_tasks"], row["explored"]) == (1.0, 400, 200)


def test_totals_that_only_the_complete_run_has(store: Store, result: dict[str, pa.Table]) -> None:
    complete = collect(store, experiment(judge_from=0), "", 7, "r", ("late", "oracle"))
    row = row_of(complete["outcomes"], "late")
    assert row["avg_slowdown"] == 4000 / 500
    assert row["energy_with_idle"] == pytest.approx(500 * 20 + 90)
    part = row_of(result["outcomes"], "late")
    assert part["avg_slowdown"] is part["energy_with_idle"] is None


def test_turnaround_quantiles_are_those_that_the_simulator_counts(store: Store) -> None:
    """So the report agrees with the live feed to the last bit."""
    complete = collect(store, experiment(judge_from=0), "", 7, "r", ("late", "oracle"))
    sketch = QuantileSketch().add(np.where(np.arange(TASKS) < 220, 4, 0.42) + 1.0)
    row = row_of(complete["outcomes"], "late")
    assert [row["p95_turnaround"], row["p99_turnaround"]] == sketch.quantiles(0.95, 0.99)
    curve = [
        row["value"]
        for row in complete["quantiles"].to_pylist()
        if (row["scheduler"], row["figure"]) == ("late", "turnaround")
    ]
    # 280 of 500 tasks take 1.42 s, in the bucket from 1.40625 to 1.421875.
    assert curve[0] == curve[112] == 1.4140625
    assert curve[113] == curve[200] == 5.03125


def test_the_bound_is_that_of_the_judged_tasks(result: dict[str, pa.Table]) -> None:
    row = row_of(result["outcomes"], "oracle")
    # The last task arrives 39.9 s after the first judged one and needs 0.4 s at least.
    assert row["arrival_bound"] == pytest.approx(40.3)
    # Each of the 400 judged tasks waits for the one before it, and takes 0.4 s.
    assert row["critical_path"] == pytest.approx(160)


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
    assert (rows[0]["fastest"], rows[0]["extrapolated"]) == ("gpu", False)
    assert [row["judged"] for row in rows].count(True) == 400


def test_the_workload_of_a_measured_platform(store: Store) -> None:
    """A task of 1000 takes 2 s on a big GPU, of kinds that were measured up to 500 only."""
    store.command("ALTER TABLE tasks UPDATE kind = 'fft' WHERE 1 SETTINGS mutations_sync = 1")
    curves = [
        {"kind": "fft", "type": "big", "sizes": [100, 500], "seconds": [0.2, 1]},
        {"kind": "fft", "type": "cpu", "sizes": [1000], "seconds": [5]},
    ]
    devices = [{"type": "big", "bandwidth_mb_s": 1000}, {"type": "small"}, {"type": "cpu"}]
    spec = {"cluster": {"devices": devices}, "physics": {"measured": curves}}
    measured = collect(store, experiment(spec=spec), "", 7, "r", ("late", "oracle"))
    row = measured["workload"].to_pylist()[0]
    assert (row["fastest"], row["extrapolated"]) == ("big", True)
    assert row["gpu_time"] == pytest.approx(2)
    assert row["cpu_time"] == pytest.approx(5)


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
