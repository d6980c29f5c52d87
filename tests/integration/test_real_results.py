"""What `hybrid validate` and `hybrid platform refine` read of a run, against rows made by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from services.lab.calibration.refine import RealResult, results_of_run
from services.lab.validation.agreement import Outcome
from services.lab.validation.run_results import (
    TaskTime,
    ValidationFailed,
    outcomes,
    task_times,
)
from shared.domain.spec import RunSpec
from shared.errors import SpecError
from shared.store.client import Store
from tests.integration import clickhouse_server
from tests.integration.conftest import settings_for

# Device 0 is the accelerator, device 1 the CPU. Times are proportional to the size.
SPEC = RunSpec.parse(
    {
        "tasks": 3,
        "schedulers": ["eft"],
        "cluster": {
            "devices": [{"type": "blas", "accelerator": True, "bandwidth_mb_s": 10},
                        {"type": "cpu"}]
        },
        "physics": {
            "measured": [
                {"kind": "sort", "type": "blas", "sizes": [1], "seconds": [0.1]},
                {"kind": "sort", "type": "cpu", "sizes": [1], "seconds": [0.5]},
            ]
        },
    }
)  # fmt: skip


@pytest.fixture
def store(clickhouse: clickhouse_server.Server) -> Iterator[Store]:
    store = Store(settings_for("nats://127.0.0.1:1", clickhouse.url))
    store.migrate()
    # Task n arrives at 5 + n, has size n + 1 and 2 MB.
    store.command(
        "INSERT INTO tasks (run, task_id, size, memory_required, arrival_time, kind) "
        "SELECT 'r', number, number + 1, 2, 5 + number, 'sort' FROM numbers(3)"
    )
    # Task 0 on the accelerator, task 1 on the CPU, task 2 on both.
    store.command(
        "INSERT INTO scheduler_results (run, scheduler, task_id, device, cpu, gpu_time, cpu_time, "
        "time, transfer_time, turnaround, gpu_start, cpu_start, finish, status, attempt) VALUES "
        "('r', 'eft', 0, 0, 1, 0.5, 0, 0.5, 0.25, 1, 5.5, 5, 6, 'ok', 1), "
        "('r', 'eft', 1, 0, 1, 0, 2, 2, 0, 3, 6, 7, 9, 'ok', 1), "
        "('r', 'eft', 2, 0, 1, 1, 1, 2, 0.25, 5, 7, 11, 12, 'ok', 1)"
    )
    store.command("INSERT INTO runs (run, spec) VALUES ('r', {spec:String})",
                  {"spec": json.dumps(SPEC.model_dump(mode="json"))})  # fmt: skip
    yield store
    store.close()


def test_outcomes_are_mean_turnaround_and_makespan_from_the_first_arrival(store: Store) -> None:
    assert outcomes(store, "r", SPEC) == {"eft": Outcome(turnaround=3, makespan=7)}


def test_whole_tasks_are_compared_with_the_platform(store: Store) -> None:
    times = task_times(store, "r", SPEC)
    assert sorted(times, key=lambda each: each.task_id) == [
        TaskTime("eft", 0, "sort", "blas", 0.1 + 2 / 10, 0.5),
        TaskTime("eft", 1, "sort", "cpu", 1.0, 2),
    ]


def test_a_run_with_missing_or_failed_results_is_refused(store: Store) -> None:
    more = SPEC.model_copy(update={"tasks": 4})
    with pytest.raises(ValidationFailed, match="eft has 3 of 4 results"):
        outcomes(store, "r", more)
    store.command(
        "INSERT INTO scheduler_results (run, scheduler, task_id, status) VALUES "
        "('r', 'eft', 2, 'failed')"
    )
    with pytest.raises(ValidationFailed, match="1 tasks of eft failed"):
        outcomes(store, "r", SPEC)


def test_real_results_are_measurements_without_their_transfer(store: Store) -> None:
    assert sorted(results_of_run(store, "r"), key=lambda each: each.size) == [
        RealResult("sort", "blas", 1, 0.25, delay=0.5),
        RealResult("sort", "cpu", 2, 2, delay=1),
    ]
    with pytest.raises(SpecError, match="no run other"):
        results_of_run(store, "other")
