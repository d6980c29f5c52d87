"""The checker finds what is wrong with a stored run, and says where."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from shared.domain.spec import RunSpec
from shared.runtime.settings import Settings
from shared.store.client import Store
from tests.chaos.checker import check
from tests.chaos.clickhouse import ClickHouse
from tests.chaos.findings import Findings
from tests.chaos.stored_run import LEARNER, RULES, SPEC, TASKS, StoredRuns, store_run
from tests.integration import clickhouse_server


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredRuns]:
    with clickhouse_server.running(tmp_path_factory.mktemp("checked")) as server:
        password = clickhouse_server.WRITER_PASSWORD
        settings = Settings(
            clickhouse_url=server.url,
            clickhouse_password=SecretStr(password),
            clickhouse_database="checked",
        )
        store_run(settings, "original")
        store_run(settings, "undisturbed", batch=111)
        reader = ClickHouse(server.url, "default", password, "checked")
        store = Store(settings)
        yield StoredRuns(store, reader, "original")
        store.close()
        reader.close()


def checked(runs: StoredRuns, run: str) -> Findings:
    return check(runs.clickhouse, run, reference="undisturbed", rules=RULES, chunk=200)


def assert_found(findings: Findings, *, counts: tuple[int, int, int], problems: list[str]) -> None:
    found = (findings.lost, findings.doubled, findings.different)
    assert found == counts, findings.problems
    for text in problems:
        assert any(text in problem for problem in findings.problems), findings.problems


@pytest.mark.parametrize("chunk", [67, TASKS])
def test_a_complete_run_has_no_problems_whatever_the_chunk_size(
    runs: StoredRuns, chunk: int
) -> None:
    findings = check(runs.clickhouse, "original", chunk=chunk)
    assert_found(findings, counts=(0, 0, 0), problems=[])
    assert (findings.tasks, findings.results) == (TASKS, 3 * TASKS)
    assert findings.problems == []


@pytest.mark.parametrize(
    "physics",
    [
        {"split": "overlapped", "memory_policy": "page", "cost_model": "electricity"},
        {"memory_policy": "fail", "speedup_slope": 2.5},
    ],
)
def test_every_variant_of_the_physics_is_checked(runs: StoredRuns, physics: dict[str, Any]) -> None:
    run = f"other-{physics['memory_policy']}"
    spec = {**SPEC.model_dump(), "physics": physics, "cluster": {"gpu_memory_mb": 500}}
    store_run(runs.store._settings, run, RunSpec.parse(spec))
    assert_found(check(runs.clickhouse, run), counts=(0, 0, 0), problems=[])
    (row,) = runs.clickhouse.rows(
        "SELECT max(gpu_fraction * memory_required) AS most, countIf(status = 'failed') AS failed "
        f"FROM scheduler_results INNER JOIN tasks USING (run, task_id) WHERE run = '{run}'"
    )
    assert row["most"] > 500
    assert (int(row["failed"]) > 0) == (physics["memory_policy"] == "fail")


RACK = {
    "devices": [
        {"type": "v100", "count": 2, "node": "a", "speed": 2, "speedup_slope": 5, "memory_mb": 600},
        {"type": "tpu", "count": 3, "node": "b", "watts": 90, "idle_watts": 20},
        {"type": "cpu", "count": 2, "node": "a", "idle_watts": 10},
        {"type": "cpu", "count": 1, "node": "c"},
    ],
    "nodes": [{"name": "a", "count": 2}, {"name": "b"}, {"name": "c"}],
    "network": {"bandwidth_mb_s": 1000, "latency_s": 0.01},
}


@pytest.mark.parametrize("memory_policy", ["cpu", "page", "fail"])
@pytest.mark.parametrize("split", ["serial", "overlapped"])
def test_any_cluster_is_checked(runs: StoredRuns, split: str, memory_policy: str) -> None:
    run = f"rack-{split}-{memory_policy}"
    spec = RunSpec.parse(
        {
            **SPEC.model_dump(),
            "physics": {"split": split, "memory_policy": memory_policy},
            "cluster": RACK,
            "workload": {"dependencies": {"probability": 0.5, "window": 100}, "arrival_rate": 20},
        }
    )
    store_run(runs.store._settings, run, spec, varied=True)
    assert_found(check(runs.clickhouse, run, chunk=150), counts=(0, 0, 0), problems=[])
    (row,) = runs.clickhouse.rows(
        "SELECT countIf(width > 1) AS wide, countIf(home >= 0) AS at_home, "
        f"countIf(NOT divisible) AS whole FROM tasks WHERE run = '{run}'"
    )
    assert all(int(count) > 50 for count in row.values())


@pytest.mark.parametrize("physics", [{"noise": 0.1}, {"size_exponent": 1.4}])
def test_the_checker_refuses_what_it_cannot_recompute(
    runs: StoredRuns, physics: dict[str, Any]
) -> None:
    run = f"unknown-{next(iter(physics))}"
    store_run(runs.store._settings, run, RunSpec.parse({**SPEC.model_dump(), "physics": physics}))
    with pytest.raises(ValueError, match="the checker knows"):
        check(runs.clickhouse, run)


def test_the_checker_imports_no_code_of_the_product() -> None:
    code = "import tests.chaos.checker, sys; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "tests.chaos.equations" in loaded.stdout
    ours = {name.partition(".")[0] for name in loaded.stdout.splitlines()}
    assert not ours & {"shared", "services", "deploy"}


def test_two_runs_of_one_spec_are_alike_whatever_their_batches(runs: StoredRuns) -> None:
    assert_found(checked(runs, "original"), counts=(0, 0, 0), problems=[])


def test_rows_that_were_stored_twice_alike_are_copies(runs: StoredRuns) -> None:
    run = runs.copy()
    with runs.unmerged():
        for table in ("scheduler_results", "tasks", "standings"):
            runs.insert_again(table, "run", "run", f"run = '{run}'")
        findings = checked(runs, run)
    assert_found(findings, counts=(0, 0, 0), problems=[])
    assert findings.copies == 4 * TASKS


CHANGES = {
    "a missing result": (
        "scheduler_results DELETE WHERE scheduler = 'greedy' AND task_id = 300",
        (1, 0, 0),
        ["lost: greedy: no row of tasks 300"],
    ),
    "missing tasks": (
        "tasks DELETE WHERE task_id IN (3, 4)",
        (2, 0, 0),
        ["lost: tasks: no row of tasks 3, 4"],
    ),
    "one bit of one number": (
        "scheduler_results UPDATE probability = "
        "reinterpretAsFloat64(reinterpretAsUInt64(probability) - 1) "
        "WHERE scheduler = 'oracle' AND task_id = 321",
        (0, 0, 1),
        ["different: oracle: probability is not that of the undisturbed run for tasks 321"],
    ),
    "a learner without a model that does not decide as greedy": (
        f"scheduler_results UPDATE model_version = 0 WHERE scheduler = '{LEARNER}' "
        "AND task_id = 30",
        (0, 0, 1),
        [f"different: {LEARNER}: model_version is impossible for tasks 30"],
    ),
    "a missing standing": (
        "standings DELETE WHERE scheduler = 'oracle' AND batch = 2",
        (1, 0, 0),
        ["lost: standings of oracle: no row of batch 2"],
    ),
    "a wrong standing": (
        "standings UPDATE total_wait = total_wait + 1e-9, busy = [0, 0, 0, busy[4], busy[5]] "
        "WHERE scheduler = 'greedy' AND batch = 4",
        (0, 0, 4),
        [
            "standings of greedy: total_wait after batch 4 is",
            "standings of greedy: busy[2] after batch 4 is 0.0, the results add up to",
        ],
    ),
    "wrong measures in a standing": (
        "standings UPDATE turnaround_p95 = turnaround_p99, total_slowdown = tasks, "
        "idle_energy = 1 WHERE scheduler = 'oracle' AND batch = 9",
        (0, 0, 3),
        [
            "standings of oracle: turnaround_p95 after batch 9 is",
            "standings of oracle: total_slowdown after batch 9 is",
            "standings of oracle: idle_energy after batch 9 is 1.0, the results add up to 0.0",
        ],
    ),
    "training data that are not the Oracle's": (
        "training_data UPDATE optimal_gpu_fraction = 0.123 WHERE task_id = 9",
        (0, 0, 1),
        ["training_data: optimal_gpu_fraction is not that of the Oracle's results"],
    ),
    "a run that is not completed": (
        "runs UPDATE state = 'running' WHERE true",
        (1, 0, 0),
        ["is running, not completed"],
    ),
}


@pytest.mark.parametrize(("change", "counts", "problems"), CHANGES.values(), ids=CHANGES)
def test_what_was_changed_is_found(
    runs: StoredRuns, change: str, counts: tuple[int, int, int], problems: list[str]
) -> None:
    run = runs.copy()
    runs.change(f"ALTER TABLE {change} AND run = '{run}'")
    assert_found(checked(runs, run), counts=counts, problems=problems)


def test_the_end_of_a_run_that_is_missing_is_lost(runs: StoredRuns) -> None:
    run = runs.copy()
    for table in ("tasks", "scheduler_results", "training_data"):
        runs.change(f"ALTER TABLE {table} DELETE WHERE run = '{run}' AND task_id > 299")
    findings = checked(runs, run)
    assert findings.lost == 5 * 100
    assert not findings.ok


def test_a_result_under_another_batch_is_doubled(runs: StoredRuns) -> None:
    run = runs.copy()
    which = f"run = '{run}' AND scheduler = '{LEARNER}' AND task_id = 12"
    with runs.unmerged():
        runs.insert_again("scheduler_results", "batch", "batch + 1", which)
        findings = checked(runs, run)
    assert findings.doubled == 1
    assert f"doubled: {LEARNER}: tasks 12 have rows that differ in batch" in findings.problems


def test_results_of_an_unknown_scheduler_and_beyond_the_last_task_are_doubled(
    runs: StoredRuns,
) -> None:
    run = runs.copy()
    which = f"run = '{run}' AND scheduler = 'oracle' AND task_id < 2"
    runs.insert_again("scheduler_results", "scheduler", "'nobody'", which)
    runs.insert_again("scheduler_results", "task_id", f"task_id + {TASKS}", which)
    assert_found(
        checked(runs, run),
        counts=(0, 2, 0),
        problems=[
            "2 of an unknown scheduler, nobody",
            "doubled: oracle: 2 results of tasks beyond the last",
        ],
    )


def test_swapped_results_of_two_tasks_are_different(runs: StoredRuns) -> None:
    run = runs.copy()
    which = f"run = '{run}' AND scheduler = 'greedy' AND task_id IN (250, 251)"
    runs.insert_again("scheduler_results", "task_id", "501 - task_id", which)
    runs.change("OPTIMIZE TABLE scheduler_results FINAL")
    findings = checked(runs, run)
    assert not findings.ok
    expected = (
        "different: greedy: gpu_fraction is not that of the undisturbed run for tasks 250, 251"
    )
    assert expected in findings.problems


def test_a_learners_wrong_energy_is_different(runs: StoredRuns) -> None:
    run = runs.copy()
    runs.change(
        "ALTER TABLE scheduler_results UPDATE energy = energy * 1.0000001 "
        f"WHERE run = '{run}' AND scheduler = '{LEARNER}' AND task_id = 77"
    )
    findings = checked(runs, run)
    assert f"different: {LEARNER}: energy is not that of the physics for tasks 77" in (
        findings.problems
    )
    # From that task on the standings do not add up either.
    assert any(f"standings of {LEARNER}: total_energy after" in p for p in findings.problems)


def test_a_learners_wrong_place_in_the_queue_is_different(runs: StoredRuns) -> None:
    run = runs.copy()
    spoilt = {"gpu_start": 50, "cpu_start": 150, "finish": 250, "wait": 350, "turnaround": 390}
    changes = ", ".join(
        f"{column} = {column} + if(task_id = {task}, 0.001, 0)" for column, task in spoilt.items()
    )
    runs.change(
        f"ALTER TABLE scheduler_results UPDATE {changes} "
        f"WHERE run = '{run}' AND scheduler = '{LEARNER}'"
    )
    findings = checked(runs, run)
    for column, task in spoilt.items():
        expected = (
            f"different: {LEARNER}: {column} is not that of the virtual cluster for tasks {task}"
        )
        assert any(expected in problem for problem in findings.problems), findings.problems


def test_a_rule_that_uses_a_device_out_of_turn_is_different(runs: StoredRuns) -> None:
    run = runs.copy()
    runs.change(
        "ALTER TABLE scheduler_results UPDATE cpu = 7 - cpu, device = (device + 1) % 3 "
        f"WHERE run = '{run}' AND scheduler = 'greedy' AND task_id = 5"
    )
    findings = checked(runs, run)
    for column in ("cpu", "device"):
        assert f"different: greedy: {column} is impossible for tasks 5" in findings.problems
    # The work is then on other devices than the standings say.
    assert any("standings of greedy: busy[3] after batch 0 is" in p for p in findings.problems)


def test_a_run_of_another_seed_is_no_reference(runs: StoredRuns) -> None:
    settings = runs.store._settings
    store_run(settings, "another", SPEC.model_copy(update={"seed": 6, "tasks": 50}))
    with pytest.raises(ValueError, match="another is no reference: another seed"):
        check(runs.clickhouse, "original", reference="another", rules=RULES)
