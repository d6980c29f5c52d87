"""The cluster bound: by hand, against a linear-programming solver, under the real simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from shared.domain import virtual_cluster as virtual
from shared.domain.cluster_bound import arrival_bound, cluster_bound
from shared.domain.physics import price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.virtual_cluster import Cluster

POLICIES = ("cpu", "page", "fail")


def tasks_of(rows: list[tuple[float, float, float, float]], parents: Any = ()) -> Tasks:
    """Rows of size, intensity, memory, arrival."""
    columns = np.array(rows, dtype=float).reshape(len(rows), 4)
    return Tasks(np.arange(len(rows)), *columns.T, parents)


def spec_of(cpus: int = 1, gpus: int = 4, memory: float = 8000, **physics: Any) -> RunSpec:
    cluster = {"cpus": cpus, "gpus": gpus, "gpu_memory_mb": memory}
    return RunSpec.parse({"cluster": cluster, "physics": physics})


# T = 1 s on a CPU; S = 2.5 and X = 0.1, so 0.5 s on a GPU.
EASY = (1000.0, 0.5, 1600.0, 0.0)
# T = 16/3 s on a CPU; 7/3 s on a GPU; only half of it fits.
HUNGRY = (4000.0, 1.0, 16_000.0, 0.0)


def test_one_task_is_cut_so_that_both_devices_end_together() -> None:
    # y/2 = 1 - y, so y = 2/3 and both end after 1/3 s.
    assert cluster_bound(tasks_of([EASY]), spec_of(gpus=1)) == pytest.approx(1 / 3, rel=1e-12)


def test_more_devices_share_the_work() -> None:
    # 2 GPUs and 2 CPUs: y/2 / 2 = (1 - y) / 2, the same cut in half the time.
    assert cluster_bound(tasks_of([EASY]), spec_of(cpus=2, gpus=2)) == pytest.approx(1 / 6)


def test_what_does_not_fit_stays_on_the_cpu() -> None:
    # Half of it must stay: 8/3 s on the CPU, longer than the other half on the GPU (7/6 s).
    assert cluster_bound(tasks_of([HUNGRY]), spec_of(gpus=1)) == pytest.approx(8 / 3)


def test_paging_makes_the_second_half_dearer() -> None:
    # First half: 7/6 s on the GPU. The rest costs 7/3 + 1 = 10/3 a whole task there, 16/3 on the
    # CPU: 7/6 + z 10/3 = (1/2 - z) 16/3 gives z = 9/52 and C = 7/6 + 30/52.
    bound = cluster_bound(tasks_of([HUNGRY]), spec_of(gpus=1, memory_policy="page"))
    assert bound == pytest.approx(7 / 6 + 30 / 52, rel=1e-12)


def test_a_task_that_may_fail_counts_nothing_unless_it_is_known_not_to_have_failed() -> None:
    spec, tasks = spec_of(gpus=1, memory_policy="fail"), tasks_of([HUNGRY, EASY])
    assert cluster_bound(tasks, spec) == pytest.approx(1 / 3)
    ran = np.array([False, False])
    # CPU: 8/3 of the hungry one. GPU: its other half and the easy one, 7/6 + 1/2 < 8/3.
    assert cluster_bound(tasks, spec, failed=ran) == pytest.approx(8 / 3)
    dropped = np.array([True, False])
    assert cluster_bound(tasks, spec, failed=dropped) == pytest.approx(1 / 3)


def test_no_tasks_take_no_time() -> None:
    assert cluster_bound(tasks_of([]), spec_of()) == 0
    assert arrival_bound(tasks_of([]), spec_of()) == 0


def test_arrivals_lift_the_bound() -> None:
    spec = spec_of(gpus=1)
    # The second arrives at 10 and takes 0.5 s on a GPU (serial: a split saves nothing).
    tasks = tasks_of([EASY, (*EASY[:3], 10.0)])
    assert arrival_bound(tasks, spec) == pytest.approx(10.5)
    # Overlapped, a split takes 1/3 s.
    assert arrival_bound(tasks, spec_of(gpus=1, split="overlapped")) == pytest.approx(10 + 1 / 3)
    # Eight at once at 10: 8/3 s of work for the whole cluster, whatever came before.
    burst = tasks_of([EASY] + [(*EASY[:3], 10.0)] * 8)
    assert arrival_bound(burst, spec) == pytest.approx(10 + 8 / 3)


specs = st.builds(
    spec_of,
    cpus=st.integers(1, 3),
    gpus=st.integers(1, 4),
    memory=st.sampled_from([1000.0, 8000.0]),
    split=st.sampled_from(["serial", "overlapped"]),
    memory_policy=st.sampled_from(POLICIES),
)
rows = st.tuples(
    st.floats(1, 20_000), st.floats(0, 1), st.floats(0.1, 64_000), st.floats(0, 50)
)  # fmt: skip


def solved(tasks: Tasks, spec: RunSpec, failed: np.ndarray) -> float:
    """The relaxation as a linear program. Per task: a cheap share, a paged share; then C.

    Written from the formulas of the physics, without the project's functions.
    """
    c = (tasks.size / 1000) ** 1.5 / (tasks.compute_intensity + 0.5)
    x = tasks.memory_required / 16_000
    g = c / (1 + 3 * tasks.compute_intensity) + x
    c, g, x = (np.where(failed, 0.0, part) for part in (c, g, x))
    room = np.minimum(1.0, spec.cluster.gpu_memory_mb / tasks.memory_required)
    more = 1 - room if spec.physics.memory_policy == "page" else np.zeros(len(tasks))
    n = len(tasks)
    scale = c.sum() or 1.0
    gpu_row = np.concatenate((g, g + x, [-spec.cluster.gpus * scale])) / scale
    cpu_row = np.concatenate((-c, -c, [-spec.cluster.cpus * scale])) / scale
    limits = [(0, room[i]) for i in range(n)] + [(0, more[i]) for i in range(n)] + [(0, None)]
    answer = linprog(
        np.concatenate((np.zeros(2 * n), [1.0])),
        A_ub=np.array([gpu_row, cpu_row]),
        b_ub=np.array([0.0, -c.sum() / scale]),
        bounds=limits,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0
    return float(answer.fun * scale)


@settings(max_examples=150, deadline=None)
@given(spec=specs, rows=st.lists(rows, min_size=1, max_size=12), data=st.data())
def test_it_is_what_a_linear_programming_solver_finds(
    spec: RunSpec, rows: list[tuple[float, float, float, float]], data: st.DataObject
) -> None:
    tasks = tasks_of(rows)
    failed = np.zeros(len(tasks), dtype=bool)
    if spec.physics.memory_policy == "fail":
        failed = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
        failed = np.array(failed)
    bound = cluster_bound(tasks, spec, failed=failed)
    assert bound == pytest.approx(solved(tasks, spec, failed), rel=1e-9, abs=1e-12)


@st.composite
def contests(draw: st.DrawFn) -> tuple[Tasks, RunSpec, np.ndarray, np.ndarray]:
    """Tasks in order of arrival, perhaps dependent, and any decisions at all."""
    spec = draw(specs)
    found = sorted(draw(st.lists(rows, min_size=1, max_size=25)), key=lambda row: row[3])
    if draw(st.booleans()):
        found = [(*row[:3], 0.0) for row in found]
    parents: Any = ()
    if draw(st.booleans()):
        parents = [
            draw(st.lists(st.integers(0, i - 1), max_size=2, unique=True)) if i else []
            for i in range(len(found))
        ]
    share = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))
    shares = draw(st.lists(share, min_size=len(found), max_size=len(found)))
    gpu = st.integers(0, spec.cluster.gpus - 1)
    gpus = draw(st.lists(gpu, min_size=len(found), max_size=len(found)))
    return tasks_of(found, parents), spec, np.array(shares), np.array(gpus)


@settings(max_examples=300, deadline=None)
@given(contests())
def test_no_decisions_beat_it_in_the_real_simulator(
    contest: tuple[Tasks, RunSpec, np.ndarray, np.ndarray],
) -> None:
    tasks, spec, shares, gpus = contest
    priced = price(tasks, shares, spec)
    cluster = Cluster.idle(spec)
    schedule = virtual.run(cluster, tasks, gpus, priced, spec.physics.split)
    finish = float(schedule.finish.max())
    span = finish - float(tasks.arrival_time[0])
    slack = 1e-9 * max(1.0, finish)
    for failed in (None, priced.failed):
        assert cluster_bound(tasks, spec, failed) <= span + slack
        assert arrival_bound(tasks, spec, failed) <= finish + slack
        # Knowing more never loosens it.
        by_arrival = arrival_bound(tasks, spec, failed) - float(tasks.arrival_time[0])
        assert by_arrival >= cluster_bound(tasks, spec, failed) - slack
    assert cluster_bound(tasks, spec) <= cluster_bound(tasks, spec, priced.failed) + slack


@pytest.mark.parametrize("policy", POLICIES)
def test_a_million_tasks_are_no_matter(policy: str) -> None:
    draw = np.random.default_rng(1)
    count = 1_000_000
    tasks = Tasks(
        np.arange(count),
        draw.lognormal(5.3, 0.8, count),
        draw.uniform(0, 1, count),
        draw.lognormal(6.7, 1.3, count),
        np.cumsum(draw.exponential(0.25, count)),
    )
    spec = spec_of(memory_policy=policy)
    assert 0 < cluster_bound(tasks, spec) < arrival_bound(tasks, spec)
