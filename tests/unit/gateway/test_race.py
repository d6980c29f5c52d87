from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.gateway.analysis.ranking import DEFAULT_WEIGHTS, Weights
from services.gateway.live.race import Race, ResultBatch, Sample, read_results
from shared.domain.spec import RunSpec
from shared.errors import Unreadable
from shared.messages import batches as messages
from shared.messages.batches import Envelope
from shared.messages.standing import Standing

SPEC = RunSpec.parse({"schedulers": ["greedy", "oracle"], "cluster": {"cpus": 1, "gpus": 2}})


def standing(tasks: int, **fields: Any) -> Standing:
    defaults = {"busy": [0.0, 0.0, 0.0], "total_time": float(tasks), **fields}
    return Standing(tasks=tasks, **defaults)


def row(task: int, **fields: Any) -> dict[str, Any]:
    return {
        "task_id": task,
        "size": 100.0,
        "compute_intensity": 0.5,
        "memory_required": 10.0,
        "time": 1.0,
        "energy": 2.0,
        "cost": 3.0,
        "gpu_fraction": 0.5,
        "device": 0,
        "cpu": 2,
        "gpu_time": 0.75,
        "cpu_time": 0.25,
        "model_version": 0,
        "explored": False,
        "status": "ok",
        **fields,
    }


def results(scheduler: str, batch: int, **fields: Any) -> ResultBatch:
    """Batches of ten tasks."""
    tasks = 10 * (batch + 1)
    return ResultBatch(scheduler, batch, standing(tasks, **fields), row(tasks - 1))


def race_of(*batches: ResultBatch) -> Race:
    race = Race(SPEC)
    for each in batches:
        race.take(each)
    return race


def test_only_newer_batches_advance_a_scheduler() -> None:
    race = Race(SPEC)
    assert race.take(results("greedy", 3))
    assert not race.take(results("greedy", 3))
    assert not race.take(results("greedy", 2))
    assert not race.take(results("stranger", 9))
    assert race.competitors["greedy"].standing.tasks == 40
    assert (race.names, race.missing) == (["greedy"], ["oracle"])


def test_tasks_are_processed_when_every_scheduler_has_done_them() -> None:
    race = race_of(results("greedy", 3))
    assert (race.tasks_processed, race.most_tasks) == (0, 40)
    race.take(results("oracle", 1))
    assert (race.tasks_processed, race.most_tasks) == (20, 40)


def test_schedulers_are_compared_over_the_same_tasks() -> None:
    """Greedy is a batch ahead, and that batch was slow."""
    race = race_of(
        results("oracle", 0, total_time=10.0, total_turnaround=20.0),
        results("greedy", 0, total_time=15.0, total_turnaround=15.0),
        results("greedy", 1, total_time=95.0, total_turnaround=95.0),
    )
    rows = {row.name: row for row in race.comparison(DEFAULT_WEIGHTS)}
    assert [(row.tasks, row.avg_turnaround) for row in rows.values()] == [(10, 1.5), (10, 2.0)]
    assert rows["greedy"].vs_oracle == 1.5
    race.take(results("oracle", 1, total_time=20.0, total_turnaround=40.0))
    assert {row.tasks for row in race.comparison(DEFAULT_WEIGHTS)} == {20}


def test_the_comparison_has_averages_and_places() -> None:
    """Ten tasks each: 20 s against 10 s, 300 J against 600 J."""
    race = race_of(
        results(
            "greedy",
            0,
            total_time=20.0,
            total_energy=300.0,
            total_cost=0.5,
            total_wait=5.0,
            total_turnaround=25.0,
            total_slowdown=45.0,
            turnaround_p50=2.0,
            turnaround_p95=7.0,
            turnaround_p99=9.0,
            idle_energy=80.0,
            gpu_tasks=4,
            failed=1,
            makespan=33.3,
        ),
        results("oracle", 0, total_time=10.0, total_energy=600.0, total_cost=0.5, gpu_tasks=7),
    )
    first, second = race.comparison(Weights(time=1))
    assert (first.name, first.rank, first.score, first.vs_oracle) == ("oracle", None, 1, 1)
    assert second.model_dump() == {
        "name": "greedy",
        "tasks": 10,
        "failed": 1,
        "avg_time": 2.0,
        "avg_energy": 30.0,
        "avg_cost": 0.05,
        "avg_wait": 0.5,
        "avg_turnaround": 2.5,
        "turnaround_p50": 2.0,
        "turnaround_p95": 7.0,
        "turnaround_p99": 9.0,
        "avg_slowdown": 4.5,
        "avg_idle_energy": 8.0,
        "failed_share": 0.1,
        "total_time": 20.0,
        "total_energy": 300.0,
        "total_cost": 0.5,
        "makespan": 33.3,
        "gpu_share": 0.4,
        "vs_oracle": 2.0,
        "model_version": 0,
        "score": 2.0,
        "rank": 1,
        "pareto": True,
    }
    assert [r.name for r in race.comparison(Weights(energy=1))] == ["greedy", "oracle"]


def test_schedulers_that_differ_in_tasks_are_not_compared_with_the_oracle() -> None:
    race = race_of(results("greedy", 1), results("oracle", 0))
    assert {r.name: r.vs_oracle for r in race.comparison(DEFAULT_WEIGHTS)} == {
        "greedy": None,
        "oracle": 1.0,
    }


def test_a_young_race_is_measured_from_its_start() -> None:
    race = race_of(results("greedy", 0, clock=40.0, busy=[20.0, 90.0, 10.0]))
    # 90 s of work in 40 s: it was given more than it can do.
    assert race.utilization() == {"greedy": {"cpu_0": 0.25, "gpu_0": 0.5, "gpu_1": 1.0}}


def test_utilisation_is_of_the_last_simulated_minute() -> None:
    """Since 100 s ago: of the samples at 40, 50 and 105 s only the one at 50 is a minute old."""
    race = race_of(
        results("greedy", 0, clock=40.0, busy=[0.0, 0.0, 40.0]),
        results("greedy", 1, clock=50.0, busy=[0.0, 0.0, 50.0]),
        results("greedy", 2, clock=105.0, busy=[11.0, 0.0, 55.0]),
        results("greedy", 3, clock=150.0, busy=[25.0, 0.0, 60.0]),
    )
    assert race.utilization() == {"greedy": {"cpu_0": 0.1, "gpu_0": 0.25, "gpu_1": 0.0}}


def test_samples_from_before_the_feed_was_opened_count() -> None:
    race = race_of(results("greedy", 8, clock=1000.0, busy=[0.0, 0.0, 500.0]))
    race.add_past("greedy", Sample(900.0, np.array([0.0, 0.0, 495.0])))
    assert race.utilization()["greedy"]["cpu_0"] == 0.05


def test_the_samples_of_a_long_race_are_bounded() -> None:
    race = Race(SPEC)
    for number in range(5000):
        race.take(results("greedy", number, clock=number * 0.25, busy=[0.0, 0.0, number * 0.125]))
    kept = race.competitors["greedy"]
    assert len(kept.samples) <= 70
    assert len(kept.last_rows) <= 256
    assert race.utilization()["greedy"]["cpu_0"] == 0.5


def test_the_common_task_is_the_newest_that_all_have() -> None:
    race = race_of(results("greedy", 0), results("greedy", 1), results("greedy", 2))
    assert race.common_task() is None
    race.take(results("oracle", 1))
    task, latest = race.common_task()
    assert task.model_dump() == {"id": 19, "size": 100.0, "intensity": 0.5, "memory": 10.0}
    assert set(latest) == {"greedy", "oracle"}
    assert latest["oracle"].time == 1.0
    assert (latest["oracle"].device_name, latest["oracle"].cpu_name) == ("gpu_0", "cpu_0")
    assert race.task_to_load() is None


def test_results_that_are_not_in_memory_have_to_be_loaded() -> None:
    race = race_of(*(results("greedy", number) for number in range(400)), results("oracle", 3))
    assert race.common_task() is None
    assert race.task_to_load() == 39
    race.show({"greedy": row(39, time=5.0), "oracle": row(39)})
    assert race.task_to_load() is None
    task, latest = race.common_task()
    assert (task.id, latest["greedy"].time) == (39, 5.0)


def test_a_stored_standing_has_the_model_of_the_loaded_task() -> None:
    race = race_of(ResultBatch("greedy", 3, standing(40)), ResultBatch("oracle", 3, standing(40)))
    race.show({"greedy": row(39, model_version=5), "oracle": row(39)})
    versions = {each.name: each.model_version for each in race.comparison(Weights(time=1))}
    assert versions == {"greedy": 5, "oracle": 0}


def test_figures_that_are_no_numbers_are_none() -> None:
    race = race_of(results("greedy", 0, total_time=float("nan"), total_energy=float("inf")))
    (only,) = race.comparison(Weights(cost=1))
    assert (only.avg_time, only.avg_energy) == (None, None)


def test_a_message_that_is_no_result_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        read_results(b"garbage", "results.r.greedy")


def test_the_last_row_of_a_message_is_read() -> None:
    values: dict[str, Any] = {
        "task_id": [7, 8],
        "dependencies": [[], []],
        "device": [0, 1],
        "cpu": [2, 2],
        "kind": ["", ""],
        "divisible": [True, True],
        "width": [1, 1],
        "home": [-1, -1],
        "last_child": [-1, -1],
        "model_version": [3, 3],
        "explored": [False, True],
        "predicted": [[], []],
        "scores": [[], []],
        "status": ["ok", "failed"],
        "reason": ["", ""],
        "attempt": [-1, -1],
        "energy_measured": [False, False],
    }
    columns = {name: values.get(name, [0.5, 0.25]) for name in messages.RESULTS.names}
    rows = messages.pa.RecordBatch.from_pydict(columns, schema=messages.RESULTS)
    state = {"standing": standing(9).model_dump()}
    body = messages.encode(Envelope("results", "r", 4, 1.0, "greedy", state), rows)
    batch = read_results(body, "results.r.greedy")
    assert (batch.scheduler, batch.batch, batch.standing.tasks) == ("greedy", 4, 9)
    assert batch.last["task_id"] == 8
    assert (batch.last["time"], batch.last["status"], batch.last["explored"]) == (
        0.25,
        "failed",
        True,
    )
