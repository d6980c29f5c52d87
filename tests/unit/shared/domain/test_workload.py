"""The task stream: reproducible in any batches, with the distributions that the spec states."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks
from shared.domain.workload import Cursor, generate
from shared.errors import SpecError

COLUMNS = ("task_id", "size", "compute_intensity", "memory_required", "arrival_time")


def spec_with(seed: int = 42, **workload: Any) -> RunSpec:
    return RunSpec.parse({"seed": seed, "workload": workload})


def stream(spec: RunSpec, count: int) -> Tasks:
    return generate(spec, Cursor(), count)[0]


def in_batches(spec: RunSpec, cursor: Cursor, sizes: list[int]) -> tuple[Tasks, Cursor]:
    parts, parents = [], []
    for size in sizes:
        tasks, cursor = generate(spec, cursor, size)
        parts.append(tasks)
        parents.extend(tasks.parents)
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS]
    return Tasks(*columns, parents), cursor


def assert_same(left: Tasks, right: Tasks) -> None:
    for name in COLUMNS:
        assert getattr(left, name).tobytes() == getattr(right, name).tobytes(), name
    assert list(left.parents) == list(right.parents)


def assert_share(found: Any, expected: float) -> None:
    """A share of independent draws is as expected, to five standard errors."""
    error = (expected * (1 - expected) / len(found)) ** 0.5
    assert np.mean(found) == pytest.approx(expected, abs=5 * error)


RICH = spec_with(
    preset="hpc",
    dependencies={"probability": 0.4, "max_parents": 3, "window": 64},
    drift=[{"after": 4000, "preset": "documented"}, {"after": 5000, "preset": "gpu_friendly"}],
)


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.one_of(st.integers(1, 20), st.integers(1000, 5000)), min_size=1, max_size=6)
)
@example(sizes=[4095, 1, 1, 4096])
@example(sizes=[4096, 4096])
@example(sizes=[4097, 3999, 1])
@example(sizes=[4000, *[1] * 200])
@example(sizes=[10_000, 1])
def test_tasks_are_bit_identical_whatever_the_batch_sizes(sizes: list[int]) -> None:
    at_once, cursor = generate(RICH, Cursor(), sum(sizes))
    piecewise, piecewise_cursor = in_batches(RICH, Cursor(), sizes)
    assert_same(at_once, piecewise)
    assert cursor == piecewise_cursor


@settings(max_examples=20, deadline=None)
@given(start=st.integers(1, 9000), count=st.integers(1, 300))
def test_any_stretch_of_the_stream_follows_from_its_cursor_alone(start: int, count: int) -> None:
    head, cursor = generate(RICH, Cursor(), start)
    assert cursor == Cursor(start, start, float(head.arrival_time[-1]))
    tail, _ = generate(RICH, cursor, count)
    whole, _ = generate(RICH, Cursor(), start + count)
    for name in COLUMNS:
        assert getattr(tail, name).tobytes() == getattr(whole, name)[start:].tobytes(), name
    assert list(tail.parents) == list(whole.parents)[start:]


# The first 10,000 tasks of version 0.2: hash of all columns and parents, the first arrival, and the
# last task's arrival and size.
VERSION_0_2: list[tuple[dict[str, Any], str, float, float, float]] = [
    (
        {"seed": 42, "arrival_rate": 4},
        "88ec62c583832002", 0.049552331045548195, 2511.499507347388, 292.7039462356002,
    ),
    (
        {"seed": 7, "preset": "documented", "arrival_rate": 20},
        "b955801fcd9a84ca", 0.006844081072072576, 505.1701845198218, 1604.431508252603,
    ),
    (
        {"seed": 1001, "preset": "readme"},
        "f41505f3fab216fa", 0.6425413179952257, 2473.7889355848897, 1480.3243118551738,
    ),
    (
        {
            "seed": 3,
            "preset": "gpu_friendly",
            "arrival_rate": 0.3,
            "drift": [{"after": 5000, "preset": "cpu_friendly"}],
            "dependencies": {"probability": 0.4, "max_parents": 3, "window": 64},
        },
        "de355a169484c1e0", 0.2265897909783897, 33302.09642884926, 41.176444075355036,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "digest", "first", "last", "size"), VERSION_0_2)
def test_a_seed_means_the_same_tasks_as_in_earlier_versions(
    workload: dict[str, Any], digest: str, first: float, last: float, size: float
) -> None:
    tasks = stream(spec_with(**workload), 10_000)
    assert tasks.arrival_time[[0, -1]].tolist() == [first, last]
    assert tasks.size[-1] == size
    hashed = hashlib.sha256()
    for name in COLUMNS:
        hashed.update(getattr(tasks, name).tobytes())
    hashed.update(repr([list(parents) for parents in tasks.parents]).encode())
    assert hashed.hexdigest()[:16] == digest


def test_the_same_seed_gives_the_same_tasks_and_another_seed_others() -> None:
    assert_same(stream(spec_with(seed=1), 500), stream(spec_with(seed=1), 500))
    one, two = stream(spec_with(seed=1), 500), stream(spec_with(seed=2), 500)
    for name in ("size", "memory_required", "arrival_time"):
        assert not np.isin(getattr(one, name), getattr(two, name)).any(), name
    # Intensities that are cut to 0 or 1 may meet by chance.
    assert (one.compute_intensity == two.compute_intensity).mean() < 0.01


def test_no_two_blocks_repeat_the_same_numbers() -> None:
    size = stream(spec_with(), 4 * 4096).size
    assert len(np.unique(size)) == len(size)


def test_tasks_that_people_submitted_shift_the_ids_but_not_the_drawn_values() -> None:
    _, cursor = generate(RICH, Cursor(), 300)
    plain, _ = generate(RICH, cursor, 500)
    shifted, after = generate(RICH, replace(cursor, next_task=cursor.next_task + 7), 500)
    assert shifted.task_id.tolist() == list(range(307, 807))
    for name in COLUMNS[1:]:
        assert getattr(shifted, name).tobytes() == getattr(plain, name).tobytes(), name
    assert list(shifted.parents) == [[p + 7 for p in parents] for parents in plain.parents]
    assert (after.generated, after.next_task) == (800, 807)


def test_arrivals_increase_at_the_stated_rate() -> None:
    count, rate = 100_000, 4.0
    arrival = stream(spec_with(arrival_rate=rate), count).arrival_time
    gaps = np.diff(arrival, prepend=0.0)
    assert (gaps > 0).all()
    # The mean gap of a Poisson stream is 1/rate, its standard error 1/rate/sqrt(count).
    assert gaps.mean() == pytest.approx(1 / rate, abs=5 / rate / count**0.5)
    # Gaps are exponential: exp(-1) of them are longer than the mean, half longer than ln 2 of it.
    assert_share(gaps > 1 / rate, np.exp(-1))
    assert_share(gaps > np.log(2) / rate, 0.5)


def test_twice_the_rate_halves_every_gap() -> None:
    slow = stream(spec_with(arrival_rate=4), 100).arrival_time
    fast = stream(spec_with(arrival_rate=8), 100).arrival_time
    assert fast == pytest.approx(slow / 2, rel=1e-12)


# z of the standard normal distribution at 50, 90 and 99 %
NORMAL = {0.5: 0.0, 0.9: 1.2815515655, 0.99: 2.3263478740}


def assert_lognormal(values: Floats, median: float, sigma: float) -> None:
    for share, z in NORMAL.items():
        assert_share(values < median * np.exp(sigma * z), share)
        assert_share(values < median * np.exp(-sigma * z), 1 - share)


@pytest.mark.parametrize("seed", [1, 2])
def test_hpc_sizes_have_a_long_tail(seed: int) -> None:
    size = stream(spec_with(seed), 100_000).size
    assert_lognormal(size, 200, 0.8)
    assert (size > 0).all()
    assert size.max() <= 20_000
    # 99 % lie below 200 exp(0.8 * 2.326) = 1286, yet the largest of 100,000 is far out.
    assert size.max() > 4000


@pytest.mark.parametrize("seed", [1, 2])
def test_hpc_memory_is_lognormal_and_loosely_tied_to_size(seed: int) -> None:
    tasks = stream(spec_with(seed), 100_000)
    # ln M = ln 800 + 1.3 z + 0.5 ln(N/200), so its deviation is sqrt(1.3^2 + (0.5 * 0.8)^2).
    sigma = (1.3**2 + 0.4**2) ** 0.5
    assert_lognormal(tasks.memory_required, 800, sigma)
    assert tasks.memory_required.max() <= 64_000
    correlation = np.corrcoef(np.log(tasks.size), np.log(tasks.memory_required))[0, 1]
    assert correlation == pytest.approx(0.4 / sigma, abs=0.02)


@pytest.mark.parametrize("seed", [1, 2])
def test_hpc_intensity_is_bimodal(seed: int) -> None:
    intensity = stream(spec_with(seed), 100_000).compute_intensity
    assert ((intensity >= 0) & (intensity <= 1)).all()
    low, high = intensity[intensity < 0.5], intensity[intensity >= 0.5]
    assert_share(intensity >= 0.5, 0.5)
    assert np.median(low) == pytest.approx(0.2, abs=0.003)
    assert np.median(high) == pytest.approx(0.8, abs=0.003)
    # 0.6 % of a bell lies beyond 0 or 1, 2.5 spreads out, and is cut there.
    assert low.std() == pytest.approx(0.08, abs=0.002)
    assert high.std() == pytest.approx(0.08, abs=0.002)
    assert ((intensity > 0.45) & (intensity < 0.55)).mean() < 0.003


def test_the_share_of_the_upper_bell_is_a_setting() -> None:
    mix = {"intensity": {"kind": "bimodal", "high_share": 0.9}}
    assert_share(stream(spec_with(mix=mix), 50_000).compute_intensity > 0.5, 0.9)


def test_pareto_sizes_have_the_stated_quantiles() -> None:
    size = stream(spec_with(preset="gpu_friendly"), 100_000).size
    assert size.min() >= 200
    assert size.max() <= 20_000
    # P(N > x) = (200/x)^2.5, so a share of 1 - q lies above 200 (1 - q)^-0.4.
    for q in (0.1, 0.5, 0.9, 0.99, 0.999):
        assert_share(size < 200 * (1 - q) ** -0.4, q)


def test_values_above_the_top_of_a_distribution_are_cut_to_it() -> None:
    mix = {
        "size": {"kind": "pareto", "low": 100, "alpha": 1, "high": 400},
        "memory": {"values": {"kind": "lognormal", "median": 10, "sigma": 1, "high": 10}},
    }
    tasks = stream(spec_with(mix=mix), 20_000)
    assert_share(tasks.size == 400, 0.25)  # (100/400)^1
    assert_share(tasks.memory_required == 10, 0.5)


@pytest.mark.parametrize(
    ("preset", "size", "intensity", "memory"),
    [
        ("documented", (100, 5000), (0, 1), (10, 500)),
        ("readme", (500, 1500), (0.1, 0.9), (50, 150)),
        ("gpu_friendly", None, (0.7, 1), (10, 200)),
        ("cpu_friendly", (40, 80), (0, 0.1), (3000, 7000)),
    ],
)
def test_uniform_presets_fill_their_ranges_evenly(
    preset: str,
    size: tuple[float, float] | None,
    intensity: tuple[float, float],
    memory: tuple[float, float],
) -> None:
    tasks = stream(spec_with(preset=preset), 20_000)
    ranges = [(tasks.compute_intensity, intensity), (tasks.memory_required, memory)]
    if size is not None:
        ranges.append((tasks.size, size))
    for values, (low, high) in ranges:
        assert ((values >= low) & (values <= high)).all()
        for quarter in (0.25, 0.5, 0.75):
            assert_share(values < low + quarter * (high - low), quarter)


def test_the_columns_of_a_task_are_independent() -> None:
    tasks = stream(spec_with(preset="documented"), 100_000)
    gaps = np.diff(tasks.arrival_time, prepend=0.0)
    columns = [gaps, tasks.size, tasks.compute_intensity, tasks.memory_required]
    correlation = np.corrcoef(columns) - np.eye(4)
    assert np.abs(correlation).max() < 5 / 100_000**0.5
    # One task tells nothing of the next.
    for values in columns:
        assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 5 / 100_000**0.5


@pytest.mark.parametrize("after", [1, 17, 4096, 5000])
@pytest.mark.parametrize("batch", [10_000, 1000])
def test_drift_switches_the_mix_exactly_at_its_task(after: int, batch: int) -> None:
    # Sizes of gpu_friendly are at least 200, those of cpu_friendly at most 90.
    spec = spec_with(preset="gpu_friendly", drift=[{"after": after, "preset": "cpu_friendly"}])
    tasks, _ = in_batches(spec, Cursor(), [batch] * (10_000 // batch))
    assert (tasks.size[:after] >= 200).all()
    assert (tasks.compute_intensity[:after] >= 0.7).all()
    assert (tasks.memory_required[:after] <= 200).all()
    assert (tasks.size[after:] <= 90).all()
    assert (tasks.compute_intensity[after:] <= 0.1).all()
    assert (tasks.memory_required[after:] >= 2000).all()


def test_drift_may_switch_several_times_and_at_the_first_task() -> None:
    drift = [
        {"after": 0, "preset": "cpu_friendly"},
        {"after": 10, "preset": "readme"},
        {"after": 11, "preset": "cpu_friendly"},
    ]
    size = stream(spec_with(preset="gpu_friendly", drift=drift), 20).size
    assert (size <= 90).tolist() == [True] * 10 + [False] + [True] * 9


def test_drift_counts_generated_tasks_not_submitted_ones() -> None:
    spec = spec_with(preset="gpu_friendly", drift=[{"after": 5, "preset": "cpu_friendly"}])
    tasks, _ = generate(spec, Cursor(generated=0, next_task=100), 10)
    assert (tasks.size <= 90).tolist() == [False] * 5 + [True] * 5


def test_drift_leaves_the_arrivals_alone() -> None:
    drifted = spec_with(drift=[{"after": 5, "preset": "readme"}])
    assert (
        stream(drifted, 50).arrival_time.tolist() == stream(spec_with(), 50).arrival_time.tolist()
    )


def test_without_dependencies_no_task_waits() -> None:
    assert len(stream(spec_with(), 100).parents) == 0


@pytest.mark.parametrize(("window", "most"), [(64, 3), (1, 1), (256, 16), (5, 4)])
def test_parents_are_earlier_tasks_within_the_window(window: int, most: int) -> None:
    rule = {"probability": 0.5, "max_parents": most, "window": window}
    tasks = stream(spec_with(dependencies=rule), 10_000)
    assert len(tasks.parents) == 10_000
    lags = set()
    for task_id, parents in enumerate(tasks.parents):
        assert len(parents) <= most
        assert list(parents) == sorted(set(parents))
        assert all(0 <= parent < task_id for parent in parents)
        lags |= {task_id - parent for parent in parents}
    assert lags == set(range(1, window + 1))


@pytest.mark.parametrize("probability", [0.05, 0.5, 1.0])
def test_the_probability_of_waiting_is_respected(probability: float) -> None:
    rule = {"probability": probability, "max_parents": 3, "window": 64}
    parents = stream(spec_with(dependencies=rule), 50_000).parents[64:]
    waiting = [len(row) for row in parents if row]
    assert_share([bool(row) for row in parents], probability)
    # One, two or three draws from 64, equally likely. k draws hit 64 (1 - (63/64)^k) tasks.
    expected = sum(64 * (1 - (63 / 64) ** k) for k in (1, 2, 3)) / 3
    assert np.mean(waiting) == pytest.approx(expected, abs=5 * 0.82 / len(waiting) ** 0.5)


def test_dependencies_change_nothing_else_of_a_task() -> None:
    plain = stream(spec_with(), 1000)
    waiting = stream(spec_with(dependencies={"probability": 0.5}), 1000)
    for name in COLUMNS:
        assert getattr(plain, name).tolist() == getattr(waiting, name).tolist()


@pytest.mark.parametrize(
    ("rule", "distance"),
    [({}, 256), ({"probability": 0.5, "window": 64}, 256), ({"window": 1000}, 1000)],
)
def test_a_task_may_have_children_as_long_as_a_later_one_may_depend_on_it(
    rule: dict[str, Any], distance: int
) -> None:
    """Submitted tasks may always depend on the 256 tasks before them."""
    tasks = stream(spec_with(dependencies=rule), 100)
    assert tasks.last_child is not None
    assert (tasks.last_child - tasks.task_id).tolist() == [distance] * 100


def test_generated_tasks_are_remembered_for_10_000_tasks_at_most() -> None:
    with pytest.raises(SpecError, match=r"dependencies.window of generated tasks is at most 10000"):
        spec_with(dependencies={"window": 10_001})
    spec_with(dependencies={"window": 1_000_000}, source="submitted")
