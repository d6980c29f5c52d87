"""The bounds of the makespan: by hand, and under any decisions in the real virtual cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.domain.bounds.cluster_bound import arrival_bound, cluster_bound
from shared.domain.cluster import virtual_cluster as virtual
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.hardware.platform import NOWHERE
from shared.domain.physics import price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.times import real_seconds
from tests.unit.shared.domain.bound_cases import (
    POLICIES,
    curve,
    spec_of,
    spec_with,
    specs,
    task_lists,
    tasks_of,
)

# T = 1 s on a CPU; S = 2.5 and X = 0.1, so 0.5 s on a GPU.
EASY = (1000.0, 0.5, 1600.0, 0.0)
# T = 16/3 s on a CPU; 7/3 s on a GPU; only half of it fits.
HUNGRY = (4000.0, 1.0, 16_000.0, 0.0)

# A task of size 1000 and intensity 0.5 without data takes 1, 1/2 and 1/4 s.
SPEEDS = [
    {"type": "cpu"},
    {"type": "old", "speed": 2, "speedup_slope": 0},
    {"type": "new", "speed": 4, "speedup_slope": 0},
]
LIGHT = (1000.0, 0.5, 0.0, 0.0)


class TestTwoTypes:
    def test_one_task_is_cut_so_that_both_devices_end_together(self) -> None:
        # y/2 = 1 - y, so y = 2/3 and both end after 1/3 s.
        bound = cluster_bound(tasks_of([EASY]), spec_of(gpus=1))
        assert bound.value == pytest.approx(1 / 3, rel=1e-12)
        assert (bound.method, bound.gap) == ("sort", 0.0)

    def test_more_devices_share_the_work(self) -> None:
        # 2 GPUs and 2 CPUs: y/2 / 2 = (1 - y) / 2, the same cut in half the time.
        bound = cluster_bound(tasks_of([EASY]), spec_of(cpus=2, gpus=2))
        assert bound.value == pytest.approx(1 / 6)

    def test_a_wide_task_takes_several_devices(self) -> None:
        # 0.5 s of both GPUs or 1 s of both CPUs.
        tasks = tasks_of([EASY], width=np.array([2]))
        assert cluster_bound(tasks, spec_of(cpus=2, gpus=2)).value == pytest.approx(1 / 3)

    def test_what_does_not_fit_stays_on_the_cpu(self) -> None:
        # Half of it must stay: 8/3 s on the CPU, longer than the other half on the GPU (7/6 s).
        bound = cluster_bound(tasks_of([HUNGRY]), spec_of(gpus=1))
        assert bound.value == pytest.approx(8 / 3)

    def test_a_task_that_may_not_be_split_fits_or_stays_on_the_cpu(self) -> None:
        tasks = tasks_of([HUNGRY], divisible=np.array([False]))
        assert cluster_bound(tasks, spec_of(gpus=1)).value == pytest.approx(16 / 3)

    def test_paging_makes_the_second_half_dearer(self) -> None:
        # First half: 7/6 s on the GPU. The rest costs 7/3 + 1 = 10/3 a whole task there, 16/3 on
        # the CPU: 7/6 + z 10/3 = (1/2 - z) 16/3 gives z = 9/52 and C = 7/6 + 30/52.
        bound = cluster_bound(tasks_of([HUNGRY]), spec_of(gpus=1, memory_policy="page"))
        assert bound.value == pytest.approx(7 / 6 + 30 / 52, rel=1e-12)

    def test_a_failed_task_takes_as_long_as_on_the_slowest_type(self) -> None:
        # Half of it fits. The rest takes 16/3 s a whole task on either: the CPU by running it, the
        # GPU by failing. 7/6 + z 16/3 = (1/2 - z) 16/3 gives z = 9/64 and C = 7/6 + 3/4.
        bound = cluster_bound(tasks_of([HUNGRY]), spec_of(gpus=1, memory_policy="fail"))
        assert bound.value == pytest.approx(7 / 6 + 3 / 4, rel=1e-12)


class TestMoreTypes:
    def test_a_task_is_cut_over_all_of_them(self) -> None:
        # 1 + 2 + 4 tasks a second.
        bound = cluster_bound(tasks_of([LIGHT]), spec_with(SPEEDS))
        assert bound.value == pytest.approx(1 / 7, rel=1e-9)
        assert bound.method == "lp"

    def test_equal_tasks_too_many_for_the_solver(self) -> None:
        # All of them waver between all types.
        bound = cluster_bound(tasks_of([LIGHT] * 20_000), spec_with(SPEEDS))
        assert bound.value == pytest.approx(20_000 / 7, rel=1e-7)
        assert bound.method == "dual"
        assert bound.gap < 1e-6

    def test_each_kind_where_it_is_fast(self) -> None:
        table = [
            *(curve("x", device, seconds) for device, seconds in (("cpu", 9), ("a", 1), ("b", 3))),
            *(curve("y", device, seconds) for device, seconds in (("cpu", 2), ("a", 9), ("b", 9))),
        ]
        spec = spec_with([{"type": "cpu"}, {"type": "a"}, {"type": "b"}], measured=table)
        tasks = tasks_of([LIGHT] * 3, kind=["x", "x", "y"])
        # y keeps the CPU for 2 s. a and b do 4/3 of x a second: 2 of them in 3/2 s, before that.
        # So a part of y moves to b: 1 x/s + x/3 s with b also doing v of y in 9 v s:
        # C = 2 (1 - v) = (2 - C) 3 + 9 v gives v = 2/17 and C = 30/17.
        assert cluster_bound(tasks, spec).value == pytest.approx(30 / 17, rel=1e-9)

    def test_a_type_that_cannot_run_a_task_is_left_out(self) -> None:
        table = [curve("x", "cpu", 4), curve("x", "a", 4)]
        spec = spec_with([{"type": "cpu"}, {"type": "a"}, {"type": "b"}], measured=table)
        assert cluster_bound(tasks_of([LIGHT], kind=["x"]), spec).value == pytest.approx(2)

    @pytest.mark.parametrize("types", [2, 3])
    def test_a_task_that_no_type_can_run_counts_nothing(self, types: int) -> None:
        found = [{"type": "cpu"}, {"type": "a"}, {"type": "b"}][:types]
        spec = spec_with(found, measured=[curve("x", "a", 4)])
        tasks = tasks_of([(*LIGHT[:3], 5.0)] * 2, kind=["y", "y"])
        assert cluster_bound(tasks, spec).value == 0
        assert arrival_bound(tasks, spec).value == 5

    def test_a_node_without_a_cpu_lets_a_task_fail_there(self) -> None:
        devices = [
            {"type": "cpu", "node": "m"},
            {"type": "gpu", "node": "n", "memory_mb": 8000},
        ]
        # As under `fail`: nothing can run on a CPU of its node what does not fit the GPU.
        assert cluster_bound(tasks_of([HUNGRY]), spec_with(devices)).value == (
            pytest.approx(7 / 6 + 3 / 4)
        )

    def test_one_type(self) -> None:
        spec = spec_with([{"type": "cpu", "count": 4}])
        assert cluster_bound(tasks_of([EASY] * 6), spec).value == pytest.approx(1.5)


class TestArrivals:
    def test_no_tasks_take_no_time(self) -> None:
        for spec in (spec_of(), spec_with(SPEEDS)):
            assert cluster_bound(tasks_of([]), spec).value == 0
            assert arrival_bound(tasks_of([]), spec).value == 0

    def test_the_last_task_needs_its_time(self) -> None:
        # The second arrives at 10 and takes 0.5 s on a GPU (serial: a split saves nothing).
        tasks = tasks_of([EASY, (*EASY[:3], 10.0)])
        assert arrival_bound(tasks, spec_of(gpus=1)).value == pytest.approx(10.5)
        # Overlapped, a split takes 1/3 s.
        overlapped = spec_of(gpus=1, split="overlapped")
        assert arrival_bound(tasks, overlapped).value == pytest.approx(10 + 1 / 3)

    def test_a_burst_needs_the_time_of_the_cluster(self) -> None:
        # Eight at once at 10: 8/3 s of work for the whole cluster, whatever came before.
        burst = tasks_of([EASY] + [(*EASY[:3], 10.0)] * 8)
        assert arrival_bound(burst, spec_of(gpus=1)).value == pytest.approx(10 + 8 / 3)

    @pytest.mark.parametrize("count", [70, 7000])
    def test_a_burst_on_three_types(self, count: int) -> None:
        burst = tasks_of([LIGHT] + [(*LIGHT[:3], 10.0)] * count)
        bound = arrival_bound(burst, spec_with(SPEEDS))
        assert bound.value == pytest.approx(10 + count / 7, rel=1e-7)
        assert bound.gap < 1e-6

    def test_a_task_needs_no_cpu_beside_its_accelerator(self) -> None:
        devices = [{"type": "cpu", "node": "m"}, {"type": "gpu", "node": "n"}]
        tasks = tasks_of([(*EASY[:3], 3.0)])
        assert arrival_bound(tasks, spec_with(devices)).value == pytest.approx(3.5)

    def test_it_counts_from_simulated_time_0(self) -> None:
        tasks = tasks_of([(*LIGHT[:3], 3.0)])
        assert arrival_bound(tasks, spec_with(SPEEDS)).value == pytest.approx(3.25)


@st.composite
def contests(draw: st.DrawFn) -> tuple[Tasks, RunSpec, np.ndarray, np.ndarray, np.ndarray]:
    """Tasks, and any decisions at all about them: share, accelerator and CPU of its node."""
    spec = draw(specs(noise=True))
    platform = spec.platform
    tasks = draw(task_lists(spec, most=25))
    shares, devices, cpus = [], [], []
    for _ in range(len(tasks)):
        share = draw(st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)))
        device = draw(st.sampled_from([NOWHERE, *platform.accelerators.tolist()]))
        near = platform.cpus
        if share > 0 and device != NOWHERE:
            near = near[platform.node_of[near] == platform.node_of[device]]
        shares.append(share)
        devices.append(device)
        cpus.append(draw(st.sampled_from([NOWHERE, *near.tolist()])))
    return tasks, spec, np.array(shares), np.array(devices), np.array(cpus)


def finish_of(
    tasks: Tasks, spec: RunSpec, share: np.ndarray, device: np.ndarray, cpu: np.ndarray
) -> float:
    platform = spec.platform
    device, cpu = platform.complete(tasks.task_id, share, device, cpu)
    priced = price(tasks, share, spec, device, cpu)
    cluster = Cluster.idle(len(platform))
    schedule = virtual.run(cluster, tasks, device, cpu, priced, spec.physics.split, platform)
    return float(schedule.finish.max())


@settings(max_examples=200, deadline=None)
@given(contests())
def test_no_decisions_beat_it_in_the_virtual_cluster(
    contest: tuple[Tasks, RunSpec, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    tasks, spec, *decisions = contest
    finish = finish_of(tasks, spec, *decisions)
    first = float(tasks.arrival_time[0])
    slack = 1e-9 * max(1.0, finish)
    bound, by_arrival = cluster_bound(tasks, spec), arrival_bound(tasks, spec)
    assert bound.value <= finish - first + slack
    assert by_arrival.value <= finish + slack
    # Knowing more never loosens it.
    assert by_arrival.value - first >= bound.value - slack
    assert bound.value <= bound.upper
    assert by_arrival.value <= by_arrival.upper


def earliest_finish(tasks: Tasks, spec: RunSpec) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whole tasks, each where it would end first by its real times. A list scheduler for tasks
    of width 1 that fit everywhere, without parents."""
    platform = spec.platform
    times = real_seconds(tasks, spec)[:, platform.type_of]
    free = np.zeros(len(platform))
    share, device, cpu = np.zeros(len(tasks)), *np.full((2, len(tasks)), NOWHERE)
    for i, arrival in enumerate(tasks.arrival_time):
        end = np.maximum(free, arrival) + times[i]
        chosen = int(end.argmin())
        free[chosen] = end[chosen]
        share[i] = 1.0 if chosen in platform.accelerators else 0.0
        (device if share[i] else cpu)[i] = chosen
    return share, device, cpu


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("rate", [20.0, 1e9])
def test_a_list_scheduler_comes_close_to_it(noise: float, rate: float) -> None:
    devices: list[dict[str, Any]] = [
        {"type": "cpu", "count": 4},
        {"type": "old", "count": 3, "speed": 2, "memory_mb": 1e6},
        {"type": "new", "count": 2, "speed": 6, "memory_mb": 1e6, "bandwidth_mb_s": 4000},
    ]
    draw = np.random.default_rng(3)
    count = 2000
    tasks = Tasks(
        np.arange(count),
        draw.lognormal(6.0, 0.8, count),
        draw.uniform(0, 1, count),
        draw.lognormal(6.0, 1.0, count),
        np.cumsum(draw.exponential(1 / rate, count)),
    )
    spec = spec_with(devices, noise=noise)
    finish = finish_of(tasks, spec, *earliest_finish(tasks, spec))
    assert 1.0 <= finish / arrival_bound(tasks, spec).value < 1.25


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("types", [2, 4])
def test_many_tasks_are_no_matter(policy: str, types: int) -> None:
    draw = np.random.default_rng(1)
    count = 200_000
    tasks = Tasks(
        np.arange(count),
        draw.lognormal(5.3, 0.8, count),
        draw.uniform(0, 1, count),
        draw.lognormal(6.7, 1.3, count),
        np.cumsum(draw.exponential(0.25, count)),
    )
    devices: list[dict[str, Any]] = [
        {"type": "cpu"},
        {"type": "gpu", "count": 4},
        {"type": "old", "count": 2, "speed": 0.6, "memory_mb": 4000},
        {"type": "new", "speed": 2, "memory_mb": 16_000},
    ]
    spec = spec_with(devices[:types], memory_policy=policy)
    bound = cluster_bound(tasks, spec)
    assert bound.gap < 1e-6
    assert 0 < bound.value < arrival_bound(tasks, spec).value
