"""Generated tasks of a measured platform; and tasks that are wide or indivisible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from shared.domain.spec import RunSpec
from shared.domain.tasks import LARGEST, Tasks
from shared.domain.times import seconds
from shared.domain.workload import Cursor, generate
from shared.errors import SpecError

CLUSTER = {"devices": [{"type": "v100", "count": 4}, {"type": "cpu", "count": 2}]}
# gemm: sizes 100 to 10,000 on one type or the other; sort: on CPUs only.
CURVES = [
    {"kind": "gemm", "type": "cpu", "sizes": [100, 1000], "seconds": [1, 20]},
    {"kind": "gemm", "type": "v100", "sizes": [1000, 10_000], "seconds": [1, 20]},
    {"kind": "sort", "type": "cpu", "sizes": [1, 8], "seconds": [1, 10]},
]


def spec_with(workload: dict[str, Any] | None = None, **physics: Any) -> RunSpec:
    return RunSpec.parse(
        {
            "cluster": CLUSTER,
            "physics": {"measured": CURVES, **physics},
            "workload": workload or {},
        }
    )


def stream(spec: RunSpec, count: int = 20_000) -> Tasks:
    return generate(spec, Cursor(), count)[0]


def problem(workload: dict[str, Any], **data: Any) -> str:
    data = data or {"cluster": CLUSTER, "physics": {"measured": CURVES}}
    with pytest.raises(SpecError) as caught:
        RunSpec.parse({**data, "workload": workload})
    (only,) = caught.value.problems
    return only


def assert_share(found: Any, expected: float) -> None:
    """A share of independent draws is as expected, to five standard errors."""
    error = (expected * (1 - expected) / len(found)) ** 0.5
    assert np.mean(found) == pytest.approx(expected, abs=5 * error)


def test_all_kinds_are_equally_frequent_unless_the_workload_says_otherwise() -> None:
    kind = np.array(stream(spec_with()).kind)
    assert set(kind) == {"gemm", "sort"}
    assert_share(kind == "gemm", 0.5)
    weights = [{"kind": "sort", "weight": 3}, {"kind": "gemm"}]
    assert_share(np.array(stream(spec_with({"kinds": weights})).kind) == "sort", 0.75)
    assert set(stream(spec_with({"kinds": [{"kind": "gemm"}]})).kind) == {"gemm"}


def test_sizes_are_log_uniform_between_the_measured_ones_of_the_kind() -> None:
    tasks = stream(spec_with())
    kind = np.array(tasks.kind)
    for name, low, high in (("gemm", 100, 10_000), ("sort", 1, 8)):
        size = tasks.size[kind == name]
        assert size.min() >= low
        assert size.max() <= high
        share = np.log(size / low) / np.log(high / low)
        assert stats.kstest(share, "uniform").pvalue > 1e-6


def test_a_kind_may_have_sizes_widths_and_memory_of_its_own() -> None:
    own = {
        "kind": "gemm",
        "size": {"kind": "uniform", "low": 20, "high": 40},
        "widths": [{"width": 3, "weight": 1}, {"width": 4, "weight": 4}],
        "memory_mb_per_size": 2,
    }
    spec = spec_with({"kinds": [own, {"kind": "sort"}]}, memory_mb_per_size=0.5)
    tasks, plain = stream(spec), stream(spec_with())
    assert tasks.width is not None
    gemm = np.array(tasks.kind) == "gemm"
    assert gemm.tolist() == (np.array(plain.kind) == "gemm").tolist()
    assert stats.kstest((tasks.size[gemm] - 20) / 20, "uniform").pvalue > 1e-6
    assert set(tasks.width[gemm]) == {3, 4}
    assert_share(tasks.width[gemm] == 4, 0.8)
    assert tasks.memory_required[gemm] == pytest.approx(2 * tasks.size[gemm])
    # The other kind is as before.
    assert tasks.size[~gemm].tobytes() == plain.size[~gemm].tobytes()
    assert set(tasks.width[~gemm]) == {1}
    assert tasks.memory_required[~gemm] == pytest.approx(tasks.size[~gemm] / 2)


def test_a_kind_without_widths_has_those_of_the_workload() -> None:
    kinds = [{"kind": "gemm", "widths": [{"width": 4}]}, {"kind": "sort"}]
    tasks = stream(spec_with({"kinds": kinds, "widths": [{"width": 2}]}))
    assert tasks.width is not None
    assert tasks.width.tolist() == [4 if kind == "gemm" else 2 for kind in tasks.kind]


def test_memory_beyond_the_largest_is_cut() -> None:
    tasks = stream(spec_with({"kinds": [{"kind": "gemm", "memory_mb_per_size": 1e9}]}), 100)
    assert set(tasks.memory_required) == {LARGEST}


def test_every_generated_task_can_run_somewhere() -> None:
    spec = spec_with({"widths": [{"width": 2}]})
    assert np.isfinite(seconds(stream(spec), spec)).any(axis=1).all()


def test_memory_follows_the_size_where_the_table_says_how() -> None:
    assert (stream(spec_with()).memory_required == 0).all()
    tasks = stream(spec_with(memory_mb_per_size=0.5))
    assert tasks.memory_required == pytest.approx(tasks.size / 2)


def test_the_intensity_tells_nothing_of_the_times() -> None:
    assert set(stream(spec_with()).compute_intensity) == {0.5}


def test_tasks_are_the_same_whatever_the_batch_sizes() -> None:
    spec = spec_with({"widths": [{"width": 1}, {"width": 2}], "divisible": False})
    whole, end = generate(spec, Cursor(), 9000)
    cursor, parts = Cursor(), []
    for size in (1, 4095, 1, 4000, 903):
        part, cursor = generate(spec, cursor, size)
        parts.append(part)
    assert cursor == end
    for name in ("size", "memory_required", "arrival_time", "width", "divisible", "last_child"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert joined.tobytes() == getattr(whole, name).tobytes(), name
    assert [kind for part in parts for kind in part.kind] == list(whole.kind)


def test_kinds_and_sizes_are_independent_of_the_arrivals_and_of_each_other() -> None:
    tasks = stream(spec_with({"widths": [{"width": 1}, {"width": 2}]}))
    gaps = np.diff(tasks.arrival_time, prepend=0.0)
    is_gemm = np.array(tasks.kind) == "gemm"
    rank = np.where(is_gemm, np.log(tasks.size / 100) / np.log(100), np.log(tasks.size) / np.log(8))
    assert tasks.width is not None
    correlation = np.corrcoef([gaps, is_gemm, rank, tasks.width]) - np.eye(4)
    assert np.abs(correlation).max() < 5 / len(tasks) ** 0.5


def test_tasks_are_divisible_and_one_device_wide_by_default() -> None:
    tasks = stream(RunSpec.parse({}), 100)
    assert tasks.divisible is None
    assert tasks.width is None
    assert not tasks.kind


def test_the_default_mix_stays_when_tasks_become_wide_and_indivisible() -> None:
    workload = {
        "divisible": False,
        "widths": [{"width": 1, "weight": 1}, {"width": 4, "weight": 3}],
    }
    plain = stream(RunSpec.parse({}))
    tasks = stream(RunSpec.parse({"workload": workload}))
    assert tasks.divisible is not None
    assert not tasks.divisible.any()
    assert tasks.width is not None
    assert set(tasks.width) == {1, 4}
    assert_share(tasks.width == 4, 0.75)
    for name in ("size", "compute_intensity", "memory_required", "arrival_time"):
        assert getattr(tasks, name).tobytes() == getattr(plain, name).tobytes()


def test_submitted_tasks_in_between_change_no_width() -> None:
    spec = RunSpec.parse({"workload": {"widths": [{"width": 1}, {"width": 2}]}})
    plain, _ = generate(spec, Cursor(), 500)
    shifted, _ = generate(spec, Cursor(next_task=7), 500)
    assert plain.width is not None
    assert shifted.width is not None
    assert shifted.width.tolist() == plain.width.tolist()


def test_an_unknown_kind_is_refused_with_those_of_the_table() -> None:
    message = problem({"kinds": [{"kind": "gemm"}, {"kind": "fft"}]})
    assert "workload.kinds: unknown kind 'fft'; allowed: gemm, sort" in message


def test_kinds_need_measured_times() -> None:
    assert "workload.kinds: only where task times are measured" in problem(
        {"kinds": [{"kind": "gemm"}]}, seed=1
    )


def test_a_width_that_no_device_type_has_is_refused() -> None:
    message = problem({"widths": [{"width": 5}]}, cluster={"gpus": 4})
    assert "workload.widths: no device type has 5 devices; allowed: 1 to 4" in message
    # There are four v100, but sort was measured on the two CPUs only.
    message = problem({"widths": [{"width": 4}]})
    assert "no device type that can run sort has 4 devices; allowed: 1 to 2" in message
    spec_with({"widths": [{"width": 4}], "kinds": [{"kind": "gemm"}]})
    message = problem({"kinds": [{"kind": "sort", "widths": [{"width": 3}]}]})
    assert "no device type that can run sort has 3 devices; allowed: 1 to 2" in message


def test_sizes_of_a_kind_are_above_zero() -> None:
    size = {"kind": "uniform", "low": 0, "high": 1}
    message = problem({"kinds": [{"kind": "gemm", "size": size}]})
    assert message.startswith("workload.kinds.0.size")
    assert "set low > 0" in message


@pytest.mark.parametrize(
    "workload",
    [
        {"kinds": [{"kind": "gemm"}, {"kind": "gemm"}]},
        {"widths": [{"width": 2}, {"width": 2}]},
    ],
)
def test_what_is_listed_twice_is_refused(workload: dict[str, Any]) -> None:
    (name,) = workload
    assert problem(workload).startswith(f"workload.{name}: ")
    assert "is listed twice; add the weights up" in problem(workload)


def test_drift_between_presets_is_refused_where_times_are_measured() -> None:
    drift = [{"after": 10, "preset": "readme"}]
    assert "workload.drift: presets do not apply" in problem({"drift": drift})


def test_a_table_whose_sizes_no_task_can_have_is_refused() -> None:
    curve = {"kind": "a", "type": "gpu", "sizes": [1, 2e9], "seconds": [1, 2]}
    assert "size 2e+09 of a is too large" in problem({}, physics={"measured": [curve]})
    curve = {"kind": "a", "type": "gpu", "sizes": [1, 1e6], "seconds": [1, 2]}
    message = problem({}, physics={"measured": [curve], "memory_mb_per_size": 2000})
    assert "size 1e+06 of a is too large" in message
