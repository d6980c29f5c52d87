"""The virtual cluster, by hand and compared with an independent simulation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.simulator.simulation import Simulation
from shared.domain import virtual_cluster as virtual
from shared.domain.physics import Price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.domain.virtual_cluster import Cluster, Schedule
from shared.messages import batches
from tests.unit.shared.domain.discrete_event import Job, Node, Report, simulate


def serve(
    gpu_time: Sequence[float],
    cpu_time: Sequence[float],
    *,
    arrival: Sequence[float] | None = None,
    gpu: Sequence[int] | None = None,
    parents: Sequence[Sequence[int]] = (),
    split: str = "serial",
    cpus: int = 1,
    gpus: int = 2,
) -> Schedule:
    """Run tasks whose parts have these lengths on an idle cluster."""
    count = len(gpu_time)
    cluster = Cluster(cpu_free=[0.0] * cpus, gpu_free=[0.0] * gpus)
    return virtual.run(
        cluster,
        tasks_of(count, arrival, parents),
        np.array(gpu if gpu is not None else [0] * count),
        price_of(gpu_time, cpu_time),
        split,
    )


def tasks_of(
    count: int, arrival: Sequence[float] | None = None, parents: Sequence[Sequence[int]] = ()
) -> Tasks:
    ones = np.ones(count)
    when = np.zeros(count) if arrival is None else np.array(arrival, dtype=float)
    return Tasks(np.arange(count), ones, ones, ones, when, parents)


def price_of(gpu_time: Sequence[float], cpu_time: Sequence[float]) -> Price:
    gpu, cpu = np.array(gpu_time, dtype=float), np.array(cpu_time, dtype=float)
    zeros = np.zeros(len(gpu))
    return Price(gpu, cpu, gpu + cpu, zeros, zeros, zeros, zeros, zeros.astype(bool))


def test_an_idle_device_starts_a_task_when_it_arrives() -> None:
    schedule = serve([2, 0], [0, 3], arrival=[1, 1.5])
    assert schedule.gpu_start[0] == 1
    assert schedule.cpu_start[1] == 1.5
    assert schedule.finish.tolist() == [3, 4.5]


def test_serial_parts_run_one_after_the_other() -> None:
    schedule = serve([2], [3], arrival=[1])
    assert schedule.gpu_start.tolist() == [1]
    assert schedule.cpu_start.tolist() == [3]
    assert schedule.finish.tolist() == [6]


def test_overlapped_parts_start_at_once_and_the_longer_one_ends_the_task() -> None:
    schedule = serve([2, 4], [3, 1], arrival=[1, 10], split="overlapped")
    assert schedule.gpu_start.tolist() == [1, 10]
    assert schedule.cpu_start.tolist() == [1, 10]
    assert schedule.finish.tolist() == [4, 14]


def test_a_busy_device_makes_the_next_task_wait() -> None:
    schedule = serve([5, 5, 5], [0, 0, 0], gpu=[0, 0, 1])
    assert schedule.gpu_start.tolist() == [0, 5, 0]
    assert schedule.finish.tolist() == [5, 10, 5]


def test_a_later_task_never_overtakes_on_a_device() -> None:
    # Task 1 waits for task 0 on GPU 1 until 10. Task 2 could use GPU 0 at once, but is behind it.
    schedule = serve([10, 1, 1], [0, 0, 0], gpu=[1, 0, 0], parents=[[], [0], []])
    assert schedule.gpu_start.tolist() == [0, 10, 11]


def test_a_serial_cpu_part_holds_the_cpu_queue_while_its_gpu_part_runs() -> None:
    # Task 0 takes the CPU at 4, after its GPU part; task 1, CPU only, is behind it in task order.
    schedule = serve([4, 0], [1, 2])
    assert schedule.cpu_start.tolist() == [4, 5]
    assert schedule.finish.tolist() == [5, 7]


def test_a_task_waits_for_its_parents() -> None:
    # Both parents start at 0: task 0 ends at 3, task 1 at 5. Task 2 arrives at 1, starts at 5.
    schedule = serve(
        [3, 5, 1], [0, 0, 0], gpu=[0, 1, 0], arrival=[0, 0, 1], parents=[[], [], [0, 1]]
    )
    assert schedule.gpu_start.tolist() == [0, 0, 5]
    assert schedule.finish.tolist() == [3, 5, 6]


def test_a_parent_that_ended_before_the_arrival_delays_nothing() -> None:
    schedule = serve([3, 1], [0, 0], arrival=[0, 7], parents=[[], [0]])
    assert schedule.gpu_start.tolist() == [0, 7]


def test_cpus_are_used_in_rotation_by_task_id() -> None:
    # Tasks 0 and 2 share CPU 0, task 1 has CPU 1 to itself.
    schedule = serve([0, 0, 0], [4, 4, 4], cpus=2)
    assert schedule.cpu_start.tolist() == [0, 0, 4]


def test_a_part_of_length_zero_occupies_no_device() -> None:
    # GPU 0 is busy until 9, but task 1 has no GPU part; the CPU serves it at its arrival.
    schedule = serve([9, 0], [0, 1], arrival=[0, 1])
    assert schedule.cpu_start[1] == 1
    assert schedule.finish.tolist() == [9, 2]


def test_the_start_of_a_missing_part_is_when_it_could_have_started() -> None:
    schedule = serve([2, 0], [0, 3], arrival=[1, 1])
    assert schedule.gpu_start[1] == 1
    assert schedule.cpu_start[0] == 3  # after its GPU part
    schedule = serve([2], [0], arrival=[1], split="overlapped")
    assert schedule.cpu_start[0] == 1


def test_a_task_that_runs_nowhere_finishes_when_it_is_ready() -> None:
    # A failed task has no parts. Its parent ends at 3; its child may start then.
    schedule = serve([3, 0, 1], [0, 0, 0], gpu=[0, 0, 1], parents=[[], [0], [1]])
    assert schedule.finish.tolist() == [3, 3, 4]


@pytest.mark.parametrize("back", [1, 2, 255, 256])
def test_a_parent_is_remembered_over_the_whole_window(back: int) -> None:
    # 300 tasks of 1 s, each on its own: task i arrives at 2 i and ends at 2 i + 1. Then, in a
    # batch of its own, a task that arrives at 0 and waits for the one `back` tasks before it.
    cluster = Cluster(cpu_free=[0.0], gpu_free=[0.0])
    before = tasks_of(300, [2.0 * i for i in range(300)])
    zeros = np.zeros(300, dtype=int)
    virtual.run(cluster, before, zeros, price_of([1] * 300, [0] * 300), "serial")
    one = np.ones(1)
    last = Tasks(np.array([300]), one, one, one, np.zeros(1), [[300 - back]])
    schedule = virtual.run(cluster, last, zeros[:1], price_of([0], [0]), "serial")
    assert schedule.finish[0] == 2 * (300 - back) + 1


def test_the_cluster_survives_json_bit_for_bit() -> None:
    awkward = [0.1 + 0.2, 1 / 3, 1e-300, 12345678.9]
    cluster = Cluster(awkward[:1], awkward[1:], next_task=2**53 + 1, finished=awkward * 64)
    again = Cluster.from_json(json.loads(json.dumps(cluster.to_json())))
    assert again == cluster


def test_a_copy_of_a_cluster_shares_nothing_with_it() -> None:
    cluster = Cluster(cpu_free=[0.0], gpu_free=[0.0])
    copy = cluster.copy()
    virtual.run(copy, tasks_of(1), np.zeros(1, dtype=int), price_of([1], [1]), "serial")
    assert cluster == Cluster(cpu_free=[0.0], gpu_free=[0.0])
    assert copy == Cluster(cpu_free=[2.0], gpu_free=[1.0], next_task=1, finished=[2.0])


# Sizes and memories such that service takes about as long as the gaps between arrivals, and
# about a third of the memories does not fit a GPU of 8000 MB.
SHARES = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))
GAPS = st.one_of(st.just(0.0), st.floats(0.001, 3))
WHOLE_TASK = st.tuples(
    st.floats(10, 3000),
    st.floats(0, 1),
    st.floats(0, 25_000),
    GAPS,
    SHARES,
    st.integers(0, 4),
    st.lists(st.integers(1, 12), max_size=3),
)
NODES = st.builds(
    Node,
    cpus=st.integers(1, 3),
    gpus=st.integers(1, 5),
    split=st.sampled_from(["serial", "overlapped"]),
    memory_policy=st.sampled_from(["cpu", "page", "fail"]),
)
CUTS = st.lists(st.integers(1, 8), min_size=1, max_size=40)


def jobs_of(drawn: list[tuple[Any, ...]], node: Node) -> list[Job]:
    jobs: list[Job] = []
    clock = 0.0
    for i, (size, intensity, memory, gap, share, gpu, lags) in enumerate(drawn):
        clock += gap
        parents = sorted({i - lag for lag in lags if lag <= i})
        jobs.append(Job(i, size, intensity, memory, clock, share, gpu % node.gpus, parents))
    return jobs


def spec_of(node: Node) -> RunSpec:
    return RunSpec.parse(
        {
            "cluster": {"cpus": node.cpus, "gpus": node.gpus, "gpu_memory_mb": node.gpu_memory},
            "physics": {"split": node.split, "memory_policy": node.memory_policy},
        }
    )


def decisions_of(jobs: list[Job], node: Node) -> pa.RecordBatch:
    tasks = Tasks(
        task_id=np.array([job.task_id for job in jobs]),
        size=np.array([job.size for job in jobs]),
        compute_intensity=np.array([job.intensity for job in jobs]),
        memory_required=np.array([job.memory for job in jobs]),
        arrival_time=np.array([job.arrival for job in jobs]),
        parents=[job.parents for job in jobs],
    )
    decisions = Decisions(
        gpu_fraction=np.array([job.share for job in jobs]), gpu=np.array([job.gpu for job in jobs])
    )
    return batches.decision_rows(batches.task_rows(tasks), tasks, decisions, node.gpus)


def pieces_of(jobs: list[Job], cuts: list[int]) -> list[list[Job]]:
    """The jobs in batches of these sizes, over and over."""
    pieces, start = [], 0
    while start < len(jobs):
        size = cuts[len(pieces) % len(cuts)]
        pieces.append(jobs[start : start + size])
        start += size
    return pieces


def results_in_batches(
    jobs: list[Job], node: Node, cuts: list[int], *, rebuilt: bool = False
) -> tuple[pa.RecordBatch, Simulation]:
    spec = spec_of(node)
    simulation = Simulation.new(spec)
    rows = []
    for number, piece in enumerate(pieces_of(jobs, cuts)):
        results, simulation = simulation.advance(decisions_of(piece, node))
        rows.append(results)
        if rebuilt:
            state = json.loads(json.dumps(simulation.state()))
            envelope = batches.Envelope("results", "run", number, 0.0, "s", state)
            simulation = Simulation.after(spec, envelope)
    return pa.concat_batches(rows), simulation


def assert_agree(rows: pa.RecordBatch, simulation: Simulation, truth: Report) -> None:
    def close(name: str, expected: list[float], *, scale: float = 0.0) -> None:
        values = rows.column(name).to_pylist()
        assert values == pytest.approx(expected, rel=1e-9, abs=1e-9 * scale + 1e-300), name

    tasks = truth.tasks
    for name in ("gpu_time", "cpu_time", "time", "energy", "finish"):
        close(name, [getattr(task, name) for task in tasks])
    # These are differences of clock readings: their error is relative to the clock.
    close("wait", [task.wait for task in tasks], scale=truth.makespan)
    close("turnaround", [task.turnaround for task in tasks], scale=truth.makespan)
    for name in ("gpu_start", "cpu_start"):
        values = rows.column(name).to_pylist()
        for start, task in zip(values, tasks, strict=True):
            expected = getattr(task, name)
            assert expected is None or start == pytest.approx(expected, rel=1e-9)
    assert rows.column("status").to_pylist() == ["failed" if t.failed else "ok" for t in tasks]
    standing = simulation.standing
    assert standing.makespan == pytest.approx(truth.makespan, rel=1e-9)
    # The reference adds up differences of clock readings, so its error grows with the clock.
    slack = 1e-9 * truth.makespan
    assert standing.cpu_busy == pytest.approx(truth.cpu_busy, rel=1e-9, abs=slack)
    assert standing.gpu_busy == pytest.approx(truth.gpu_busy, rel=1e-9, abs=slack)


@settings(max_examples=300, deadline=None)
@given(drawn=st.lists(WHOLE_TASK, min_size=1, max_size=40), node=NODES, cuts=CUTS)
def test_the_cluster_agrees_with_a_discrete_event_simulation(
    drawn: list[tuple[Any, ...]], node: Node, cuts: list[int]
) -> None:
    jobs = jobs_of(drawn, node)
    rows, simulation = results_in_batches(jobs, node, cuts)
    assert_agree(rows, simulation, simulate(jobs, node))


def many_jobs(node: Node) -> list[Job]:
    """1500, far more than the memory of finish times, with parents up to 256 tasks back."""
    random = np.random.default_rng(7)
    drawn = [
        (
            *random.uniform((10, 0, 0), (2000, 1, 25_000)).tolist(),
            float(random.exponential(0.3)),
            float(random.choice([0, 1, random.uniform()])),
            int(random.integers(0, node.gpus)),
            random.integers(1, 257, size=random.integers(0, 3)).tolist(),
        )
        for _ in range(1500)
    ]
    return jobs_of(drawn, node)


@pytest.mark.parametrize("split", ["serial", "overlapped"])
@pytest.mark.parametrize("memory_policy", ["cpu", "page", "fail"])
def test_a_long_busy_run_agrees_with_a_discrete_event_simulation(
    split: str, memory_policy: str
) -> None:
    node = Node(cpus=2, gpus=3, split=split, memory_policy=memory_policy)
    jobs = many_jobs(node)
    rows, simulation = results_in_batches(jobs, node, [1, 100, 300, 37])
    assert_agree(rows, simulation, simulate(jobs, node))


@settings(max_examples=100, deadline=None)
@given(
    drawn=st.lists(WHOLE_TASK, min_size=1, max_size=40),
    node=NODES,
    cuts=CUTS,
    rebuilt=st.booleans(),
)
def test_results_are_bit_identical_however_the_tasks_are_cut_into_batches(
    drawn: list[tuple[Any, ...]], node: Node, cuts: list[int], rebuilt: bool
) -> None:
    jobs = jobs_of(drawn, node)
    whole, after_whole = results_in_batches(jobs, node, [len(jobs)])
    cut, after_cut = results_in_batches(jobs, node, cuts, rebuilt=rebuilt)
    assert whole.equals(cut)
    assert json.dumps(after_whole.state()) == json.dumps(after_cut.state())


@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_long_run_is_bit_identical_in_batches_of_one_and_in_one_batch(rebuilt: bool) -> None:
    node = Node(cpus=2, gpus=4)
    jobs = many_jobs(node)
    whole, after_whole = results_in_batches(jobs, node, [len(jobs)])
    cut, after_cut = results_in_batches(jobs, node, [1], rebuilt=rebuilt)
    assert whole.equals(cut)
    assert json.dumps(after_whole.state()) == json.dumps(after_cut.state())
