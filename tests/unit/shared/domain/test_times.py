"""Seconds of whole tasks on device types: by hand, and the statistics of noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks, take
from shared.domain.times import real_seconds, seconds
from shared.domain.workload import Cursor, generate

TYPES = {
    "devices": [
        {"type": "v100", "count": 2, "speed": 2, "speedup_slope": 9, "bandwidth_mb_s": 8000},
        {"type": "cpu", "count": 4},
        {"type": "cpu_fast", "speed": 4},
        {"type": "cpu_far", "bandwidth_mb_s": 1000},
    ]
}


def task(size: float, intensity: float, memory: float, **columns: Any) -> Tasks:
    one = np.ones(1)
    arrays = [np.array([value], float) for value in (size, intensity, memory)]
    return Tasks(np.array([0]), *arrays, one, **columns)


@pytest.mark.parametrize(
    ("tasks", "on_gpu", "on_cpu"),
    [
        # T = 1^1.5 / 1, S = 2.5, X = 0.1
        (task(1000, 0.5, 1600), 0.5, 1),
        # T = 4^1.5 / 0.5, S = 1, X = 1
        (task(4000, 0, 16_000), 17, 16),
        # T = 0.25^1.5 / 1.5, S = 4, X = 1/4
        (task(250, 1, 4000), 13 / 48, 1 / 12),
    ],
)
def test_the_default_cluster_has_the_times_of_the_seeds(
    tasks: Tasks, on_gpu: float, on_cpu: float
) -> None:
    assert seconds(tasks, RunSpec())[0].tolist() == pytest.approx([on_gpu, on_cpu], rel=1e-14)


def test_the_default_cluster_has_them_to_the_last_bit() -> None:
    spec = RunSpec()
    tasks, _ = generate(spec, Cursor(), 20_000)
    size, intensity = tasks.size / 1000.0, tasks.compute_intensity
    base = size * np.sqrt(size) / (intensity + 0.5)
    on_gpu = base / (1.0 + 3.0 * intensity) + tasks.memory_required / 16000.0
    times = seconds(tasks, spec)
    assert times[:, 0].tobytes() == on_gpu.tobytes()
    assert times[:, 1].tobytes() == base.tobytes()


def test_every_type_has_its_speed_slope_and_bandwidth() -> None:
    # T = 1; v100: 1 / (2 (1 + 4.5)) + 1600 / 8000
    found = seconds(task(1000, 0.5, 1600), RunSpec.parse({"cluster": TYPES}))
    assert found[0].tolist() == pytest.approx([1 / 11 + 0.2, 1, 0.25, 1 + 1.6])


def test_a_type_with_too_few_devices_cannot_run_a_wide_task() -> None:
    spec = RunSpec.parse({"cluster": TYPES})
    found = seconds(task(1000, 0.5, 0, width=np.array([3])), spec)
    assert np.isinf(found[0]).tolist() == [True, False, True, True]
    assert found[0, 1] == 1


def test_measured_times_replace_the_formula_and_the_transfer_is_added() -> None:
    curves = [
        {"kind": "gemm", "type": "v100", "sizes": [10, 1000], "seconds": [0.1, 10]},
        {"kind": "gemm", "type": "cpu", "sizes": [100], "seconds": [3]},
    ]
    spec = RunSpec.parse({"cluster": TYPES, "physics": {"measured": curves}})
    found = seconds(task(100, 0.5, 1600, kind=["gemm"]), spec)
    assert found[0].tolist() == pytest.approx([1 + 0.2, 3, np.inf, np.inf])
    assert np.isinf(seconds(task(100, 0.5, 1600, kind=["lu"]), spec)).all()
    assert np.isinf(seconds(task(100, 0.5, 1600), spec)).all()


def noisy(count: int, **spec: Any) -> tuple[Floats, Tasks, RunSpec]:
    """The factor of each task and type."""
    parsed = RunSpec.parse({"physics": {"noise": 0.5}, **spec})
    tasks, _ = generate(parsed, Cursor(), count)
    return real_seconds(tasks, parsed) / seconds(tasks, parsed), tasks, parsed


def test_without_noise_the_real_time_is_the_expected_one() -> None:
    tasks, _ = generate(RunSpec(), Cursor(), 100)
    assert real_seconds(tasks, RunSpec()).tobytes() == seconds(tasks, RunSpec()).tobytes()


@pytest.mark.parametrize("deviation", [0.05, 0.5, 1.0])
def test_noise_has_mean_1_and_the_deviation_that_was_asked_for(deviation: float) -> None:
    factor, _, _ = noisy(400_000, physics={"noise": deviation})
    assert (factor > 0).all()
    assert factor.mean(axis=0) == pytest.approx(1, abs=5 * deviation / 400_000**0.5)
    assert factor.std(axis=0) == pytest.approx(deviation, rel=0.05)
    # Log-normal: the logarithm is symmetric about -variance / 2.
    logs = np.log(factor)
    variance = np.log(1 + deviation**2)
    assert np.median(logs, axis=0) == pytest.approx(-variance / 2, abs=5 * deviation / 500)
    assert logs.std(axis=0) == pytest.approx(variance**0.5, rel=0.01)


def test_noise_of_types_tasks_and_seeds_is_independent() -> None:
    factor, _, _ = noisy(100_000)
    other, _, _ = noisy(100_000, seed=43)
    logs, others = np.log(factor), np.log(other)
    limit = 5 / 100_000**0.5
    assert abs(np.corrcoef(logs[:, 0], logs[:, 1])[0, 1]) < limit
    assert abs(np.corrcoef(logs[1:, 0], logs[:-1, 0])[0, 1]) < limit
    assert abs(np.corrcoef(logs[:, 0], others[:, 0])[0, 1]) < limit


def test_noise_of_a_task_does_not_depend_on_its_batch_or_place_in_it() -> None:
    spec = RunSpec.parse({"physics": {"noise": 0.3}})
    tasks, _ = generate(spec, Cursor(), 1000)
    whole = real_seconds(tasks, spec)
    rows = np.random.default_rng(0).permutation(1000)[:77]
    assert np.array_equal(real_seconds(take(tasks, rows), spec), whole[rows])
    assert np.array_equal(real_seconds(take(tasks, slice(500, 501)), spec), whole[500:501])


def test_noise_on_a_type_stays_the_same_when_types_are_added() -> None:
    more = {"devices": [{"type": "tpu"}, {"type": "cpu"}, {"type": "gpu"}]}
    factor, _, _ = noisy(1000)
    with_more, _, _ = noisy(1000, cluster=more)
    # To the last bits: the factor is computed back from the times.
    assert with_more[:, 2] == pytest.approx(factor[:, 0], rel=1e-14)
    assert with_more[:, 1] == pytest.approx(factor[:, 1], rel=1e-14)


def test_measured_noise_is_that_of_the_nearest_measured_size() -> None:
    curve = {"kind": "gemm", "type": "gpu", "sizes": [10, 1000], "seconds": [1, 1]}
    physics = {"noise": "measured", "measured": [{**curve, "deviations": [0, 0.4]}]}
    spec = RunSpec.parse({"physics": physics})
    count = 100_000
    some, _ = generate(RunSpec(), Cursor(), count)
    tasks = replace(some, kind=["gemm"] * count, memory_required=np.zeros(count))
    # In log-log the middle between 10 and 1000 is 100.
    small = real_seconds(replace(tasks, size=np.full(count, 99.0)), spec)[:, 0]
    large = real_seconds(replace(tasks, size=np.full(count, 101.0)), spec)[:, 0]
    assert (small == 1).all()
    assert large.mean() == pytest.approx(1, abs=5 * 0.4 / count**0.5)
    assert large.std() == pytest.approx(0.4, rel=0.03)


def test_measured_noise_without_a_table_is_none() -> None:
    spec = RunSpec.parse({"physics": {"noise": "measured"}})
    tasks, _ = generate(spec, Cursor(), 10)
    assert np.array_equal(real_seconds(tasks, spec), seconds(tasks, spec))
