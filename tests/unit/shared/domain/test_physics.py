"""The price of a decision and the Oracle, worked out by hand and by brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.domain.physics import fastest, price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Floats, Tasks
from shared.domain.workload import Cursor, generate
from tests.unit.shared.domain import random_clusters
from tests.unit.shared.domain.discrete_event import Job, Machines, cost_of
from tests.unit.shared.domain.random_clusters import MEMORY_POLICIES, SPLITS

RULES = list(product(SPLITS, MEMORY_POLICIES))


def task(size: float, intensity: float, memory: float) -> Tasks:
    return Tasks(
        task_id=np.array([0]),
        size=np.array([size], dtype=float),
        compute_intensity=np.array([intensity], dtype=float),
        memory_required=np.array([memory], dtype=float),
        arrival_time=np.zeros(1),
    )


def spec_with(oracle_step: float = 0.05, **physics: Any) -> RunSpec:
    return RunSpec.parse({"physics": physics, "oracle": {"step": oracle_step}})


def priced(tasks: Tasks, share: float, **physics: Any) -> dict[str, Any]:
    result = price(tasks, np.full(len(tasks), float(share)), spec_with(**physics))
    return {name: getattr(result, name)[0] for name in result.__slots__}


# T = (1000/1000)^1.5 / (0.5 + 0.5) = 1       S = 1 + 3 * 0.5 = 2.5     X = 1600/16000 = 0.1
# whole on a GPU: 1/2.5 + 0.1 = 0.5
EASY = task(1000, 0.5, 1600)
# T = 4^1.5 / (0 + 0.5) = 8/0.5 = 16          S = 1                     X = 16000/16000 = 1
# whole on a GPU: 16 + 1 = 17; shares over 0.5 need more than 8000 MB
BULKY = task(4000, 0, 16_000)
# T = 0.25^1.5 / (1 + 0.5) = 0.125/1.5 = 1/12  S = 4                    X = 4000/16000 = 1/4
# whole on a GPU: 1/48 + 12/48 = 13/48
SMALL = task(250, 1, 4000)
# T = 4^1.5 / 1.5 = 16/3                      S = 4                     X = 1
# whole on a GPU: 4/3 + 1 = 7/3; shares over 0.5 need more than 8000 MB
HUNGRY = task(4000, 1, 16_000)


def test_half_of_a_task_on_each_side_is_priced_by_hand() -> None:
    result = priced(EASY, 0.5)
    assert result["gpu_time"] == pytest.approx(0.25)  # 0.5 * 0.5
    assert result["cpu_time"] == pytest.approx(0.5)  # 0.5 * 1
    assert result["time"] == pytest.approx(0.75)
    assert result["energy"] == pytest.approx(27.5)  # 50 * 0.25 + 30 * 0.5 = 12.5 + 15
    assert result["cost_cloud"] == pytest.approx(0.000035)  # 0.0001 * 0.25 + 0.00002 * 0.5
    assert result["cost_electricity"] == pytest.approx(4.125 / 3.6e6)  # 27.5 / 3.6e6 * 0.15
    assert not result["failed"]


def test_overlapped_parts_take_as_long_as_the_longer_one_and_cost_the_same() -> None:
    result = priced(EASY, 0.5, split="overlapped")
    assert result["time"] == pytest.approx(0.5)  # max(0.25, 0.5)
    assert result["energy"] == pytest.approx(27.5)
    assert priced(EASY, 0.8, split="overlapped")["time"] == pytest.approx(0.4)  # max(0.4, 0.2)


@pytest.mark.parametrize(
    ("tasks", "share", "gpu_time", "cpu_time"),
    [
        (EASY, 0, 0, 1),
        (EASY, 1, 0.5, 0),
        (EASY, 0.2, 0.1, 0.8),
        (BULKY, 0.25, 4.25, 12),  # 0.25 * 17, 0.75 * 16; 4000 MB fit
        (SMALL, 1, 13 / 48, 0),
        (SMALL, 0, 0, 1 / 12),
        (HUNGRY, 0.5, 7 / 6, 8 / 3),  # 8000 MB just fit
    ],
)
@pytest.mark.parametrize(("split", "policy"), RULES)
def test_parts_that_fit_cost_the_same_under_every_memory_policy(
    tasks: Tasks, share: float, gpu_time: float, cpu_time: float, split: str, policy: str
) -> None:
    result = priced(tasks, share, split=split, memory_policy=policy)
    assert result["gpu_time"] == pytest.approx(gpu_time, rel=1e-14)
    assert result["cpu_time"] == pytest.approx(cpu_time, rel=1e-14)
    expected = gpu_time + cpu_time if split == "serial" else max(gpu_time, cpu_time)
    assert result["time"] == pytest.approx(expected, rel=1e-14)
    assert result["energy"] == pytest.approx(50 * gpu_time + 30 * cpu_time, rel=1e-14)
    assert not result["failed"]


def test_a_task_too_big_for_the_gpu_runs_whole_on_the_cpu() -> None:
    # 0.75 * 16000 = 12000 MB do not fit: T = 16 on the CPU, 30 W * 16 s = 480 J
    result = priced(BULKY, 0.75, memory_policy="cpu")
    assert (result["gpu_time"], result["cpu_time"], result["time"]) == (0, 16, 16)
    assert result["energy"] == 480
    assert result["cost_cloud"] == pytest.approx(0.00032)
    assert not result["failed"]


def test_paging_pays_the_transfer_of_the_overflow_twice() -> None:
    # 12000 - 8000 = 4000 MB overflow, 0.25 s more: g = 0.75 * 17 + 0.25 = 13, c = 0.25 * 16 = 4
    result = priced(BULKY, 0.75, memory_policy="page")
    assert (result["gpu_time"], result["cpu_time"], result["time"]) == (13, 4, 17)
    assert result["energy"] == 770  # 650 + 120
    overlapped = priced(BULKY, 0.75, memory_policy="page", split="overlapped")
    assert overlapped["time"] == 13


def test_a_failed_task_is_charged_the_time_of_the_slowest_device_type() -> None:
    # BULKY takes 17 s on a GPU, 16 s on a CPU: 17 s, on the GPU that it failed on.
    result = priced(BULKY, 0.75, memory_policy="fail")
    assert result["failed"]
    assert (result["gpu_time"], result["cpu_time"], result["time"]) == (17, 0, 17)
    assert result["energy"] == 50 * 17
    assert result["cost_cloud"] == pytest.approx(0.0001 * 17)
    # HUNGRY is faster on a GPU (7/3 s) than on a CPU (16/3 s).
    assert priced(HUNGRY, 1, memory_policy="fail")["gpu_time"] == pytest.approx(16 / 3)


def test_a_part_that_fills_the_memory_exactly_fits() -> None:
    assert priced(BULKY, 0.5)["gpu_time"] == 8.5  # 0.5 * 17
    assert not priced(BULKY, 0.5, memory_policy="fail")["failed"]
    assert priced(BULKY, np.nextafter(0.5, 1), memory_policy="fail")["failed"]


def test_the_spec_says_which_cost_is_called_cost() -> None:
    assert priced(EASY, 0.5, cost_model="cloud")["cost"] == pytest.approx(0.000035)
    electricity = priced(EASY, 0.5, cost_model="electricity")
    assert electricity["cost"] == pytest.approx(4.125 / 3.6e6)
    assert electricity["cost_cloud"] == pytest.approx(0.000035)


def test_every_constant_of_the_physics_is_a_setting() -> None:
    # T = (800/200)^2 / (0.5 + 1.5) = 16/2 = 8; S = 1 + 2 * 0.5 = 2; X = 300/100 = 3; whole: 7
    # half: g = 3.5, c = 4; energy 10 * 3.5 + 5 * 4 = 55; cloud 2 * 3.5 + 1 * 4 = 11
    # electricity: 55 / 3.6e6 * 7200 = 0.11
    result = priced(
        task(800, 0.5, 300),
        0.5,
        size_unit=200,
        size_exponent=2,
        intensity_offset=1.5,
        speedup_slope=2,
        bandwidth_mb_s=100,
        gpu_watts=10,
        cpu_watts=5,
        gpu_dollars_per_s=2,
        cpu_dollars_per_s=1,
        dollars_per_kwh=7200,
    )
    assert result["gpu_time"] == pytest.approx(3.5)
    assert result["cpu_time"] == pytest.approx(4)
    assert result["energy"] == pytest.approx(55)
    assert result["cost_cloud"] == pytest.approx(11)
    assert result["cost_electricity"] == pytest.approx(0.11)


def test_the_size_of_the_gpus_memory_is_a_setting() -> None:
    spec = RunSpec.parse({"cluster": {"gpu_memory_mb": 20_000}})
    assert price(BULKY, np.ones(1), spec).gpu_time[0] == 17
    spec = RunSpec.parse({"cluster": {"gpu_memory_mb": 1000}})
    assert price(EASY, np.ones(1), spec).cpu_time[0] == 1


@pytest.mark.parametrize(
    ("tasks", "split", "policy", "share", "time"),
    [
        (EASY, "serial", "cpu", 1, 0.5),
        (EASY, "overlapped", "cpu", 2 / 3, 1 / 3),  # f/2 = 1 - f
        (SMALL, "serial", "cpu", 0, 1 / 12),
        (BULKY, "serial", "cpu", 0, 16),
        # f = 1 does not fit. Serial: the more the better, up to where memory is full:
        # 0.5 * 7/3 + 0.5 * 16/3 = 23/6
        (HUNGRY, "serial", "cpu", 0.5, 23 / 6),
        (HUNGRY, "serial", "fail", 0.5, 23 / 6),
        # Paging: 7/3 + 8000/16000 = 17/6, better still
        (HUNGRY, "serial", "page", 1, 17 / 6),
        # Level at T / (T + G) = 16/23 > 0.5 does not fit; at 0.5: max(7/6, 8/3)
        (HUNGRY, "overlapped", "cpu", 0.5, 8 / 3),
        (HUNGRY, "overlapped", "fail", 0.5, 8 / 3),
        # Level with paging: 7/3 f + f - 1/2 = 16/3 (1 - f), so f = 35/52 and 17/52 * 16/3
        (HUNGRY, "overlapped", "page", 35 / 52, 68 / 39),
    ],
)
def test_the_oracle_finds_the_share_worked_out_by_hand(
    tasks: Tasks, split: str, policy: str, share: float, time: float
) -> None:
    spec = spec_with(split=split, memory_policy=policy)
    found = fastest(tasks, spec).gpu_fraction
    assert found[0] == pytest.approx(share, rel=1e-12)
    assert price(tasks, found, spec).time[0] == pytest.approx(time, rel=1e-12)


TASKS = st.tuples(st.floats(1, 20_000), st.floats(0, 1), st.floats(0, 64_000))


@settings(max_examples=400, deadline=None)
@given(
    drawn=TASKS,
    rival=st.floats(0, 1),
    split=st.sampled_from(SPLITS),
    policy=st.sampled_from(MEMORY_POLICIES),
    step=st.sampled_from([0.05, 0.1]),
)
@example(drawn=(4000, 1, 24_000), rival=1 / 3, split="serial", policy="fail", step=0.1)
def test_no_share_is_faster_than_the_oracles(
    drawn: tuple[float, float, float], rival: float, split: str, policy: str, step: float
) -> None:
    size, intensity, memory = drawn
    spec = spec_with(oracle_step=step, split=split, memory_policy=policy)
    share = float(fastest(task(size, intensity, memory), spec).gpu_fraction[0])
    node = Machines(split=split, memory_policy=policy)
    oracle = cost_of(Job(0, size, intensity, memory, 0, share), node)
    other = cost_of(Job(0, size, intensity, memory, 0, rival), node)
    assert 0 <= share <= 1
    assert not oracle.failed
    assert oracle.time <= other.time * (1 + 1e-12)


@st.composite
def tasks_on_clusters(draw: st.DrawFn) -> tuple[Machines, list[Job]]:
    cluster = draw(random_clusters.machines())
    return cluster, draw(random_clusters.jobs(cluster, max_size=3))


def rivals_of(job: Job, cluster: Machines) -> list[Job]:
    """The task with every share in steps of 0.05, on every pair of device types and nodes."""
    places = {(kind.name, node): n for n, (kind, node) in enumerate(cluster.devices)}
    accelerators = [n for n in places.values() if cluster.devices[n][0].accelerator]
    cpus = [n for n in places.values() if not cluster.devices[n][0].accelerator]
    return [
        Job(**{**vars(job), "share": share / 20, "device": device, "cpu": cpu})
        for share in range(21)
        for device in accelerators or [None]
        for cpu in cpus or [None]
    ]


def as_jobs(jobs: list[Job], decisions: Decisions) -> list[Job]:
    assert decisions.device is not None
    assert decisions.cpu is not None
    shares, devices, cpus = (
        column.tolist() for column in (decisions.gpu_fraction, decisions.device, decisions.cpu)
    )
    return [
        Job(
            **{
                **vars(job),
                "share": share,
                "device": None if device < 0 else device,
                "cpu": None if cpu < 0 else cpu,
            }
        )
        for job, share, device, cpu in zip(jobs, shares, devices, cpus, strict=True)
    ]


@settings(max_examples=80, deadline=None)
@given(tasks_on_clusters())
def test_nothing_is_faster_than_the_oracle_on_any_cluster(
    drawn: tuple[Machines, list[Job]],
) -> None:
    cluster, jobs = drawn
    found = fastest(random_clusters.tasks_of(jobs), random_clusters.spec_of(cluster))
    for job, decided in zip(jobs, as_jobs(jobs, found), strict=True):
        oracle = cost_of(decided, cluster)
        rivals = [cost_of(rival, cluster) for rival in rivals_of(job, cluster)]
        # It fails only what nobody can run. A failure of others is no way to be faster.
        assert oracle.failed == all(rival.failed for rival in rivals)
        assert all(oracle.time <= rival.time * (1 + 1e-9) for rival in rivals)


def execution_times(tasks: Tasks, share: Floats, split: str, policy: str) -> Floats:
    """The physics once more, vectorised over tasks and shares; a failure takes forever."""
    size, intensity, memory = tasks.size, tasks.compute_intensity, tasks.memory_required
    on_cpu = (size / 1000) ** 1.5 / (intensity + 0.5)
    too_big = share * memory > 8000
    if policy == "cpu":
        share = np.where(too_big, 0, share)
    gpu = share * (on_cpu / (1 + 3 * intensity) + memory / 16_000)
    if policy == "page":
        gpu = gpu + np.where(too_big, share * memory - 8000, 0) / 16_000
    cpu = (1 - share) * on_cpu
    time = gpu + cpu if split == "serial" else np.maximum(gpu, cpu)
    return np.where(too_big, np.inf, time) if policy == "fail" else time


def random_tasks(count: int) -> Tasks:
    random = np.random.default_rng(3)
    return Tasks(
        task_id=np.arange(count),
        size=random.lognormal(6, 1, count),
        compute_intensity=random.uniform(0, 1, count),
        memory_required=random.uniform(0, 40_000, count),
        arrival_time=np.zeros(count),
    )


@pytest.mark.parametrize(("split", "policy"), RULES)
@pytest.mark.parametrize("step", [0.05, 0.1])
def test_the_oracle_equals_a_fine_brute_force_search(split: str, policy: str, step: float) -> None:
    tasks = random_tasks(300)
    spec = spec_with(oracle_step=step, split=split, memory_policy=policy)
    found = execution_times(tasks, fastest(tasks, spec).gpu_fraction, split, policy)
    grid = np.linspace(0, 1, 10_001)[:, None]
    searched = execution_times(tasks, grid, split, policy).min(axis=0)
    assert (found <= searched * (1 + 1e-12)).all()
    # The best of the grid is one grid step from the best of all; no slope is above this.
    whole = execution_times(tasks, np.zeros(300), "serial", "cpu")
    slope = 2 * whole + 2 * tasks.memory_required / 16_000
    assert (searched - found <= slope * 1e-4).all()


@pytest.mark.parametrize("step", [0.05, 0.1])
def test_the_oracle_never_fails_a_task(step: float) -> None:
    # Enough memories that some shares of a full GPU round up over its memory.
    tasks = random_tasks(50_000)
    spec = spec_with(oracle_step=step, memory_policy="fail")
    share = fastest(tasks, spec).gpu_fraction
    assert (share * tasks.memory_required <= 8000).all()
    assert np.isfinite(execution_times(tasks, share, "serial", "fail")).all()


RACK = {
    "devices": [
        {"type": "gpu", "count": 2, "node": "a"},
        {"type": "tpu", "count": 4, "node": "b", "memory_mb": 100, "speedup_slope": 19},
        {"type": "cpu", "node": "a"},
        {"type": "cpu", "node": "c"},
    ],
    "nodes": [{"name": "a", "count": 2}, {"name": "b"}, {"name": "c"}],
    "network": {"bandwidth_mb_s": 1600, "latency_s": 0.5},
}


def on_rack(
    share: float, device: int, cpu: int, tasks: Tasks = EASY, **columns: Any
) -> dict[str, Any]:
    """Devices 0..3 are GPUs of nodes 0 and 1, 4..7 TPUs of node 2, 8 and 9 the CPUs of nodes 0 and
    1, 10 that of node 3."""
    spec = RunSpec.parse({"cluster": RACK, "physics": columns.pop("physics", {})})
    extra = {name: np.array([value]) for name, value in columns.items()}
    result = price(
        replace(tasks, **extra), np.array([share]), spec, np.array([device]), np.array([cpu])
    )
    return {name: getattr(result, name)[0] for name in result.__slots__}


def test_data_of_another_node_is_moved_there() -> None:
    # EASY takes 0.5 s on a GPU. Its 1600 MB take 1600 / 1600 + 0.5 = 1.5 s to another node.
    assert on_rack(1, 0, 8, home=0)["time"] == pytest.approx(0.5)
    assert on_rack(1, 0, 8, home=1)["time"] == pytest.approx(2.0)
    assert on_rack(1, 0, 8, home=-1)["time"] == pytest.approx(0.5)
    assert on_rack(0, 0, 10, home=0)["time"] == pytest.approx(2.5)
    # Each part moves its share: 0.5 (0.5 + 1.5) and 0.5 (1 + 1.5).
    moved = on_rack(0.5, 0, 8, home=3)
    assert (moved["gpu_time"], moved["cpu_time"]) == pytest.approx((1.0, 1.25))


def test_a_task_is_not_split_between_nodes() -> None:
    assert on_rack(0.6, 0, 10)["time"] == pytest.approx(0.5)  # all on the GPU
    assert on_rack(0.4, 0, 10)["time"] == pytest.approx(1.0)  # all on the CPU


def test_an_indivisible_task_runs_where_the_larger_part_would() -> None:
    half = on_rack(0.5, 0, 8, divisible=False)
    assert (half["gpu_time"], half["cpu_time"]) == (0.5, 0)
    less = on_rack(0.49, 0, 8, divisible=False)
    assert (less["gpu_time"], less["cpu_time"]) == (0, 1)


def test_without_a_cpu_in_the_node_all_of_a_task_runs_on_the_accelerator() -> None:
    # T = 1, S = 1 + 19 * 0.5 = 10.5, X = 50 / 16000 on a TPU of node 2, which has no CPU.
    small = task(1000, 0.5, 50)
    assert on_rack(0.3, 4, -1, small)["time"] == pytest.approx(1 / 10.5 + 50 / 16_000)


def test_a_task_that_does_not_fit_and_has_no_cpu_to_go_to_fails() -> None:
    # EASY does not fit the 100 MB of a TPU. The slowest type that can run it is the CPU: 1 s.
    result = on_rack(1, 4, -1)
    assert result["failed"]
    assert (result["gpu_time"], result["cpu_time"]) == (1, 0)
    # With data on another node the charge includes moving it.
    assert on_rack(1, 4, -1, home=0)["time"] == pytest.approx(2.5)
    # A CPU of another node takes the task instead.
    assert on_rack(1, 4, 10)["cpu_time"] == pytest.approx(1)


def test_a_wide_task_uses_the_memory_and_the_power_of_all_of_its_devices() -> None:
    # 300 MB do not fit one TPU or two of 100 MB each; they fit four. It takes the same time, and
    # four times the energy and cost.
    wide = task(1000, 0.5, 300)
    time = 1 / 10.5 + 300 / 16_000
    assert on_rack(1, 4, -1, wide, width=2)["failed"]
    result = on_rack(1, 4, -1, wide, width=4)
    assert result["time"] == pytest.approx(time)
    assert result["energy"] == pytest.approx(4 * 50 * time)
    assert result["cost_cloud"] == pytest.approx(4 * 0.0001 * time)


def test_a_task_wider_than_every_type_fails_and_costs_nothing() -> None:
    # No scheduler can run it, so there is nothing to compare.
    result = on_rack(1, 0, 8, width=5)
    assert result["failed"]
    assert result["time"] == result["energy"] == 0


def test_clusters_without_cpus_or_without_accelerators_run_everything_on_what_they_have() -> None:
    gpus = RunSpec.parse({"cluster": {"devices": [{"type": "gpu", "count": 2}]}})
    cpus = RunSpec.parse({"cluster": {"devices": [{"type": "cpu", "count": 2}]}})
    for share in (0.0, 0.3, 1.0):
        assert price(EASY, np.array([share]), gpus).gpu_time[0] == pytest.approx(0.5)
        assert price(EASY, np.array([share]), cpus).cpu_time[0] == pytest.approx(1)
    assert fastest(EASY, gpus).cpu == [-1]
    assert fastest(EASY, cpus).device == [-1]
    assert fastest(BULKY, cpus).gpu_fraction == [0]


def test_the_oracle_prefers_the_home_of_a_task_unless_another_type_is_worth_the_way() -> None:
    spec = RunSpec.parse({"cluster": RACK})
    small = replace(task(1000, 0.5, 16), home=np.array([1]))
    # 1 / 2.5 + 0.001 on a GPU at home (devices 2, 3), 1 / 10.5 + 0.001 + 0.51 on a TPU elsewhere.
    assert fastest(small, spec).device[0] in (2, 3)
    large = replace(task(4000, 0.5, 16), home=np.array([1]))  # T = 8: 3.2 s, or 0.76 + 0.51
    assert fastest(large, spec).device[0] in (4, 5, 6, 7)


def equal_tasks(count: int) -> Tasks:
    one = np.ones(count)
    return Tasks(np.arange(count), 1000 * one, 0.5 * one, 0 * one, 0 * one)


def test_the_oracle_takes_devices_of_all_types_that_are_as_fast_in_turns() -> None:
    # Device 0 is of one type, 1 to 3 of another; both are faster than 4 and 5.
    devices = [
        {"type": "a10"},
        {"type": "t4", "count": 3},
        {"type": "k80", "count": 2, "speed": 0.5},
        {"type": "cpu"},
    ]
    spec = RunSpec.parse({"cluster": {"devices": devices}, "workload": {"divisible": False}})
    tasks = replace(equal_tasks(8), divisible=np.zeros(8, np.bool_))
    assert fastest(tasks, spec).device.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


def test_the_oracle_uses_all_devices_alike_whatever_node_they_are_in() -> None:
    # Device 0 is alone in its node, 1 to 3 are together, each node has one CPU.
    cluster = {
        "devices": [
            {"type": "gpu", "node": "small"},
            {"type": "gpu", "count": 3, "node": "big"},
            {"type": "cpu", "node": "small"},
            {"type": "cpu", "node": "big"},
        ],
        "nodes": [{"name": "small"}, {"name": "big"}],
    }
    found = fastest(equal_tasks(8), RunSpec.parse({"cluster": cluster}))
    assert found.device.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert found.cpu.tolist() == [4, 5, 5, 5, 4, 5, 5, 5]


def test_the_oracles_share_says_where_the_task_runs() -> None:
    # Measured on GPUs alone: the share is 1, and not any other that would come to the same.
    curve = {"kind": "gemm", "type": "gpu", "sizes": [100], "seconds": [1]}
    spec = RunSpec.parse({"physics": {"measured": [curve]}})
    found = fastest(replace(EASY, kind=["gemm"]), spec)
    assert found.gpu_fraction.tolist() == [1]


def test_the_best_time_is_that_of_the_fastest_type() -> None:
    assert on_rack(0, 0, 8, task(1000, 0.5, 50))["best"] == pytest.approx(1 / 10.5 + 50 / 16_000)
    assert priced(SMALL, 1)["best"] == pytest.approx(1 / 12)


def contest(preset: str, seed: int) -> tuple[Floats, float, float, float]:
    """The Oracle's shares, and the total times of Oracle, cpu_only and gpu_only."""
    spec = RunSpec.parse({"seed": seed, "workload": {"preset": preset}})
    tasks, _ = generate(spec, Cursor(), 20_000)
    share = fastest(tasks, spec).gpu_fraction
    rivals = (share, np.zeros(20_000), np.ones(20_000))
    totals = [float(execution_times(tasks, rival, "serial", "cpu").sum()) for rival in rivals]
    return share, *totals


SEEDS = [0, 1, 42, 2**40 + 7]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_default_preset_is_a_real_contest(seed: int) -> None:
    share, oracle, cpu_only, gpu_only = contest(RunSpec().workload.preset, seed)
    assert 0.3 <= (share > 0).mean() <= 0.8
    assert cpu_only > 1.1 * oracle
    assert gpu_only > 1.1 * oracle


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("preset", ["documented", "readme", "gpu_friendly"])
def test_with_little_memory_the_gpu_wins_nearly_always(preset: str, seed: int) -> None:
    share, oracle, _, gpu_only = contest(preset, seed)
    assert (share == 1).mean() > 0.99
    assert gpu_only < 1.001 * oracle


@pytest.mark.parametrize("seed", SEEDS)
def test_with_low_intensity_and_much_memory_the_cpu_wins_nearly_always(seed: int) -> None:
    share, oracle, cpu_only, _ = contest("cpu_friendly", seed)
    assert (share == 0).mean() > 0.99
    assert cpu_only < 1.001 * oracle
