"""The virtual cluster, by hand and compared with independent simulations."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.scheduler import policy
from services.simulator.simulation import Simulation
from shared.domain.cluster import virtual_cluster as virtual
from shared.domain.cluster.virtual_cluster import MOST_GAPS, Cluster, Schedule
from shared.domain.physics import Price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.workload import Cursor, generate
from shared.messages import batches
from tests.unit.shared.domain.discrete_event import (
    CPU,
    GPU,
    Entry,
    Job,
    Kind,
    Machines,
    Report,
    by_events,
    by_intervals,
    cost_of,
)
from tests.unit.shared.domain.random_clusters import (
    MEMORY_POLICIES,
    SPLITS,
    decisions_of,
    jobs,
    machines,
    spec_of,
    tasks_of,
)


def serve(
    gpu_time: Sequence[float],
    cpu_time: Sequence[float],
    *,
    arrival: Sequence[float] | None = None,
    gpu: Sequence[int] | None = None,
    cpu: Sequence[int] | None = None,
    parents: Sequence[Sequence[int]] = (),
    width: Sequence[int] | None = None,
    split: str = "serial",
    cpus: int = 1,
    gpus: int = 2,
) -> Schedule:
    """Run tasks whose parts have these lengths on an idle cluster. CPU c is device gpus + c."""
    count = len(gpu_time)
    spec = RunSpec.parse({"cluster": {"cpus": cpus, "gpus": gpus}})
    return virtual.run(
        Cluster.idle(gpus + cpus),
        plain_tasks(count, arrival, parents, width),
        np.array(gpu if gpu is not None else [0] * count),
        gpus + np.array(cpu if cpu is not None else [0] * count),
        price_of(gpu_time, cpu_time),
        split,
        spec.platform,
    )


def plain_tasks(
    count: int,
    arrival: Sequence[float] | None = None,
    parents: Sequence[Sequence[int]] = (),
    width: Sequence[int] | None = None,
    first: int = 0,
) -> Tasks:
    ones = np.ones(count)
    when = np.zeros(count) if arrival is None else np.array(arrival, dtype=float)
    ids = np.arange(first, first + count)
    wide = None if width is None else np.array(width)
    return Tasks(ids, ones, ones, ones, when, parents, width=wide)


def price_of(gpu_time: Sequence[float], cpu_time: Sequence[float]) -> Price:
    gpu, cpu = np.array(gpu_time, dtype=float), np.array(cpu_time, dtype=float)
    zeros = np.zeros(len(gpu))
    return Price(gpu, cpu, gpu + cpu, zeros, zeros, zeros, zeros, zeros.astype(bool), zeros)


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


def test_a_task_that_waits_for_its_parents_does_not_block_those_behind_it() -> None:
    # Task 1 waits for task 0 on GPU 1 until 10. Task 2 fits into the 10 s before it on GPU 0, and
    # task 3 into what is left of them; task 4 is longer than any gap.
    schedule = serve(
        [10, 1, 4, 6, 1.5], [0] * 5, gpu=[1, 0, 0, 0, 0], parents=[[], [0], [], [], []]
    )
    assert schedule.gpu_start.tolist() == [0, 10, 0, 4, 11]


def test_a_cpu_part_that_waits_for_its_gpu_part_does_not_block_the_cpu() -> None:
    # Task 0 takes the CPU from 4 to 5, after its GPU part; task 1, CPU only, runs before that.
    schedule = serve([4, 0], [1, 2])
    assert schedule.cpu_start.tolist() == [4, 0]
    assert schedule.finish.tolist() == [5, 2]


def test_a_part_takes_the_earliest_gap_that_it_fits_into() -> None:
    # GPU 0 gets parts at 2 (task 2, after its parent on GPU 1) and at 10 (task 3): gaps 0-2, 3-10.
    schedule = serve(
        [2, 8, 1, 1, 3, 2, 1],
        [0] * 7,
        gpu=[1, 1, 0, 0, 0, 0, 0],
        parents=[[], [], [0], [1], [], [], [0]],
    )
    assert schedule.gpu_start.tolist()[:4] == [0, 2, 2, 10]
    assert schedule.gpu_start.tolist()[4] == 3  # too long for the first gap
    assert schedule.gpu_start.tolist()[5] == 0  # just as long as the first gap
    assert schedule.gpu_start.tolist()[6] == 6  # ready at 2: the rest of the second gap


def test_a_part_starts_within_a_gap_when_it_is_ready() -> None:
    # A gap from 0 to 10 on GPU 0, before task 1. Task 2 arrives at 3 and takes 3-5; task 3 arrives
    # then too and takes 5-9, because 3 s before task 2 are past.
    schedule = serve(
        [10, 1, 2, 4], [0] * 4, gpu=[1, 0, 0, 0], arrival=[0, 0, 3, 3], parents=[[], [0], [], []]
    )
    assert schedule.gpu_start.tolist() == [0, 10, 3, 5]


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


def test_a_part_of_length_zero_occupies_no_device() -> None:
    # GPU 0 is busy until 9, but task 1 has no GPU part; the CPU serves it at its arrival.
    schedule = serve([9, 0], [0, 1], arrival=[0, 1])
    assert schedule.cpu_start[1] == 1
    assert schedule.finish.tolist() == [9, 2]


@pytest.mark.parametrize("parents", [(), ([], [])])
def test_the_start_of_a_missing_part_is_when_it_could_have_started(
    parents: Sequence[Sequence[int]],
) -> None:
    schedule = serve([2, 0], [0, 3], arrival=[1, 1], parents=parents)
    assert schedule.gpu_start[1] == 1
    assert schedule.cpu_start[0] == 3  # after its GPU part
    schedule = serve([2, 0], [0, 1], arrival=[1, 1], parents=parents, split="overlapped")
    assert schedule.cpu_start[0] == 1


def test_a_task_without_parts_finishes_when_it_is_ready() -> None:
    # Its parent ends at 3; its child may start then.
    schedule = serve([3, 0, 1], [0, 0, 0], gpu=[0, 0, 1], parents=[[], [0], [1]])
    assert schedule.finish.tolist() == [3, 3, 4]


def test_a_wide_task_starts_when_all_of_its_devices_are_free_together() -> None:
    # GPUs 0, 1, 2 are busy until 1, 5, 3. Width 2 from GPU 1: GPUs 1 and 2, at 5. Width 3 from GPU
    # 2 goes on with GPU 0: all three, behind that at 7. GPU 0 is idle from 1 to 7 for task 5.
    schedule = serve(
        [1, 5, 3, 2, 1, 6], [0] * 6, gpu=[0, 1, 2, 1, 2, 0], width=[1, 1, 1, 2, 3, 1], gpus=3
    )
    assert schedule.gpu_start.tolist() == [0, 0, 0, 5, 7, 1]
    assert schedule.finish.tolist() == [1, 5, 3, 7, 8, 7]


def test_a_wide_task_fits_into_gaps_that_its_devices_have_in_common() -> None:
    # Task 2 waits for task 0 and leaves 0-10 idle on GPU 0; task 4 waits for task 1 and leaves 4-9
    # idle on GPU 1, which is busy before. Task 5 takes both from 4 to 8.
    schedule = serve(
        [10, 9, 1, 4, 1, 4],
        [0] * 6,
        gpu=[2, 3, 0, 1, 1, 0],
        width=[1, 1, 1, 1, 1, 2],
        parents=[[], [], [0], [], [1], []],
        gpus=4,
    )
    assert schedule.gpu_start.tolist() == [0, 0, 10, 0, 9, 4]


def test_a_task_wider_than_its_type_takes_all_of_it_once() -> None:
    schedule = serve([1, 2], [0, 0], gpu=[0, 1], width=[1, 5])
    assert schedule.gpu_start.tolist() == [0, 1]


@pytest.mark.parametrize("back", [1, 2, 255, 256, 100_000])
def test_a_parent_is_remembered_until_its_last_child(back: int) -> None:
    # Task 0 runs from 0 to 1000. Then tasks without children, and a child of task 0.
    cluster, spec = Cluster.idle(5), RunSpec()

    def run(tasks: Tasks, seconds: float, last_child: int) -> Schedule:
        count = len(tasks)
        tasks = replace(tasks, last_child=np.full(count, last_child))
        price = price_of([seconds] * count, [0] * count)
        device, cpu = np.zeros(count, int), np.full(count, 4)
        return virtual.run(cluster, tasks, device, cpu, price, "serial", spec.platform)

    run(plain_tasks(1), 1000, last_child=back)
    if back > 1:
        run(plain_tasks(back - 1, first=1), 0, last_child=0)
    schedule = run(plain_tasks(1, parents=[[0]], first=back), 1, last_child=0)
    assert schedule.finish.tolist() == [1001]
    assert cluster.finished == {}


def test_a_task_without_a_last_child_is_remembered_for_256_tasks() -> None:
    cluster, spec = Cluster.idle(5), RunSpec()
    zeros = np.zeros(300, dtype=int)
    price = price_of([1] * 300, [0] * 300)
    virtual.run(cluster, plain_tasks(300), zeros, zeros + 4, price, "serial", spec.platform)
    assert list(cluster.finished) == list(range(300 - 256, 300))


def test_a_task_that_ended_before_the_latest_arrival_is_forgotten() -> None:
    cluster, spec = Cluster.idle(5), RunSpec()
    at = np.zeros(3, int)
    tasks, price = plain_tasks(3, [0, 0, 1]), price_of([1, 1, 1], [0, 0, 0])
    virtual.run(cluster, tasks, at, at + 4, price, "serial", spec.platform)
    assert cluster.finished == {1: (2.0, 257), 2: (3.0, 258)}
    # Its child arrives out of order; it is not ready before the latest arrival.
    late = plain_tasks(1, [0.5], parents=[[0]], first=3)
    schedule = virtual.run(
        cluster, late, at[:1] + 1, at[:1] + 4, price_of([1], [0]), "serial", spec.platform
    )
    assert schedule.gpu_start.tolist() == [1]


def test_a_gap_is_forgotten_when_the_last_arrival_is_behind_it() -> None:
    cluster, spec = Cluster.idle(5), RunSpec()
    # GPU 0 is idle until task 1 starts there at 10.
    virtual.run(
        cluster,
        plain_tasks(2, parents=[[], [0]]),
        np.array([1, 0]),
        np.array([4, 4]),
        price_of([10, 1], [0, 0]),
        "serial",
        spec.platform,
    )
    assert cluster.gaps == {0: [(0, 10)]}
    nothing = price_of([0], [0])
    for task, (arrival, gaps) in enumerate([(9.5, {0: [(0, 10)]}), (10, {})], 2):
        tasks = plain_tasks(1, [arrival], first=task)
        at = np.array([0])
        virtual.run(cluster, tasks, at, at + 4, nothing, "serial", spec.platform)
        assert cluster.gaps == gaps


def test_of_too_many_gaps_the_shortest_is_forgotten() -> None:
    cluster = Cluster.idle(1)
    lengths = [3.0, 1.0, 2.0] + [4.0] * (MOST_GAPS - 2)  # one more than are remembered
    for length in lengths:
        cluster.place(0, cluster.free[0] + length, 1.0)
    kept = [end - begin for begin, end in cluster.gaps[0]]
    assert kept == [3.0, 2.0] + [4.0] * (MOST_GAPS - 2)


def test_all_devices_together_remember_a_limited_number_of_gaps() -> None:
    cluster = Cluster.idle(100_000)
    for step in range(1, 10):
        cluster.place(7, 10.0 * step, 1.0)
    assert len(cluster.gaps[7]) == 1
    assert cluster.earliest(7, 0.0, 1.0) < 90


def test_the_cluster_survives_json_bit_for_bit() -> None:
    awkward = [0.1 + 0.2, 1 / 3, 1e-300, 12345678.9]
    cluster = Cluster(
        awkward,
        gaps={2: [(1 / 3, 1 / 3 + 1e-15), (0.5, 0.7)], 0: [(0.0, 0.1)]},
        clock=0.1 + 0.7,
        next_task=10**12,
        finished={10**12 - 5: (1 / 7, 10**12 + 3), 3: (2 / 7, 10**12)},
    )
    again = Cluster.from_json(json.loads(json.dumps(cluster.to_json())))
    assert again == cluster
    idle = Cluster.idle(3)
    assert Cluster.from_json(json.loads(json.dumps(idle.to_json()))) == idle


def test_the_state_of_versions_before_0_3_is_read() -> None:
    finished = base64.b64encode(np.array([1.5, 2.5], "<f8").tobytes()).decode()
    data = {"cpu_free": [7.0], "gpu_free": [3.0, 4.0], "next_task": 9, "finished": finished}
    cluster = Cluster.from_json(data)
    # The GPUs are devices 0 and 1. Tasks 7 and 8 may have children up to 256 tasks on.
    assert cluster == Cluster([3.0, 4.0, 7.0], next_task=9, finished={7: (1.5, 263), 8: (2.5, 264)})


def test_a_copy_of_a_cluster_shares_nothing_with_it() -> None:
    cluster, spec = Cluster.idle(2), RunSpec.parse({"cluster": {"gpus": 1}})
    zero = np.zeros(1, dtype=int)
    cluster.place(0, 5.0, 1.0)
    before = json.dumps(cluster.to_json())
    copy = cluster.copy()
    price = price_of([1], [1])
    virtual.run(copy, plain_tasks(1), zero, zero + 1, price, "serial", spec.platform)
    assert json.dumps(cluster.to_json()) == before
    assert copy == Cluster([6.0, 2.0], {0: [(1.0, 5.0)], 1: [(0.0, 1.0)]}, 0.0, 1, {0: (2.0, 256)})


def pieces_of(rows: pa.RecordBatch, cuts: list[int]) -> list[pa.RecordBatch]:
    """The rows in batches of these sizes, over and over."""
    pieces, start = [], 0
    while start < rows.num_rows:
        pieces.append(rows.slice(start, cuts[len(pieces) % len(cuts)]))
        start += pieces[-1].num_rows
    return pieces


def results_of(
    drawn: list[Job], cluster: Machines, cuts: list[int] | None = None, *, rebuilt: bool = False
) -> tuple[pa.RecordBatch, Simulation]:
    """What the simulator makes of these decisions. `rebuilt`: after each batch the simulation goes
    on from the state that it sent."""
    spec, tasks = spec_of(cluster), tasks_of(drawn)
    rows = batches.decision_rows(
        batches.task_rows(tasks), tasks, decisions_of(drawn), spec.platform
    )
    simulation, results = Simulation.new(spec), []
    for number, piece in enumerate(pieces_of(rows, cuts or [len(drawn)])):
        found, simulation = simulation.advance(piece)
        results.append(batches.complete(found, "results"))
        if rebuilt:
            state = json.loads(json.dumps(simulation.state()))
            envelope = batches.Envelope("results", "run", number, 0.0, "s", state)
            simulation = Simulation.after(spec, envelope)
    return pa.concat_batches(results), simulation


def column(rows: pa.RecordBatch, name: str) -> list[float]:
    values: list[float] = rows.column(name).to_pylist()
    return values


def assert_prices_agree(rows: pa.RecordBatch, drawn: list[Job], cluster: Machines) -> None:
    costs = [cost_of(job, cluster) for job in drawn]
    for name in ("gpu_time", "cpu_time", "time", "energy"):
        expected = [getattr(cost, name) for cost in costs]
        assert column(rows, name) == pytest.approx(expected, rel=1e-9, abs=1e-300), name
    cloud = [cost.cloud for cost in costs]
    assert column(rows, "cost_cloud") == pytest.approx(cloud, rel=1e-9, abs=1e-300)
    status = ["failed" if cost.failed else "ok" for cost in costs]
    assert rows.column("status").to_pylist() == status


def assert_schedules_agree(
    rows: pa.RecordBatch, simulation: Simulation, drawn: list[Job], truth: Report, rel: float
) -> None:
    runs = truth.runs
    assert column(rows, "finish") == pytest.approx([run.finish for run in runs], rel=rel, abs=0)
    for name in ("gpu_start", "cpu_start"):
        for start, run in zip(column(rows, name), runs, strict=True):
            expected = getattr(run, name)
            assert expected is None or start == pytest.approx(expected, rel=rel, abs=0), name
    makespan = max(run.finish for run in runs)
    assert simulation.standing.makespan == pytest.approx(makespan, rel=rel)
    assert simulation.standing.busy == pytest.approx(truth.busy, rel=1e-9, abs=1e-9 * makespan)
    for row, (job, run) in enumerate(zip(drawn, runs, strict=True)):
        turnaround = run.finish - job.arrival
        wait = max(turnaround - column(rows, "time")[row], 0.0)
        assert column(rows, "turnaround")[row] == pytest.approx(turnaround, abs=1e-9 * makespan)
        assert column(rows, "wait")[row] == pytest.approx(wait, abs=1e-9 * makespan)


def parts_of(rows: pa.RecordBatch) -> list[tuple[float, float]]:
    return list(zip(column(rows, "gpu_time"), column(rows, "cpu_time"), strict=True))


@st.composite
def drawn_runs(
    draw: st.DrawFn, *, plain: bool = False, max_size: int = 40
) -> tuple[Machines, list[Job]]:
    cluster = draw(machines())
    return cluster, draw(jobs(cluster, plain=plain, max_size=max_size))


@settings(max_examples=200, deadline=None)
@given(drawn_runs())
def test_prices_and_schedules_agree_with_the_independent_simulation(
    run: tuple[Machines, list[Job]],
) -> None:
    cluster, drawn = run
    rows, simulation = results_of(drawn, cluster)
    assert_prices_agree(rows, drawn, cluster)
    # With the same lengths of parts, every start and finish is the same to the last bit.
    truth = by_intervals(drawn, parts_of(rows), cluster)
    assert_schedules_agree(rows, simulation, drawn, truth, rel=0)


@settings(max_examples=80, deadline=None)
@given(drawn_runs(plain=True))
def test_without_waiting_parts_it_is_first_come_first_served(
    run: tuple[Machines, list[Job]],
) -> None:
    cluster, drawn = run
    if cluster.split == "serial":
        drawn = [Job(**{**vars(job), "divisible": False}) for job in drawn]
    rows, simulation = results_of(drawn, cluster)
    truth = by_events(drawn, parts_of(rows), cluster)
    assert_schedules_agree(rows, simulation, drawn, truth, rel=1e-9)


@settings(max_examples=80, deadline=None)
@given(
    drawn_runs(),
    st.lists(st.integers(1, 8), min_size=1, max_size=40),
    st.booleans(),
    st.lists(st.floats(0, 20), min_size=40, max_size=40),
)
def test_results_are_bit_identical_however_the_tasks_are_cut_into_batches(
    run: tuple[Machines, list[Job]], cuts: list[int], rebuilt: bool, moved: list[float]
) -> None:
    cluster, drawn = run
    for arrivals in (None, moved):  # also of tasks that do not arrive in order
        if arrivals is not None:
            for job, arrival in zip(drawn, arrivals, strict=False):
                job.arrival = arrival
        whole, after_whole = results_of(drawn, cluster)
        cut, after_cut = results_of(drawn, cluster, cuts, rebuilt=rebuilt)
        assert whole.equals(cut)
        assert json.dumps(after_whole.state()) == json.dumps(after_cut.state())
        truth = by_intervals(drawn, parts_of(whole), cluster)
        assert_schedules_agree(whole, after_whole, drawn, truth, rel=0)


@settings(max_examples=80, deadline=None)
@given(drawn_runs())
def test_nobody_waits_longer_than_first_come_first_served(
    run: tuple[Machines, list[Job]],
) -> None:
    cluster, drawn = run
    rows, _ = results_of(drawn, cluster)
    without = by_intervals(drawn, parts_of(rows), cluster, overtaking=False)
    waits = [run.finish for run in without.runs]
    assert all(mine <= other for mine, other in zip(column(rows, "finish"), waits, strict=True))
    if not any(job.parents or job.width > 1 for job in drawn) and (
        cluster.split == "overlapped" or not any(g > 0 and c > 0 for g, c in parts_of(rows))
    ):
        assert column(rows, "finish") == waits


@pytest.mark.parametrize(
    "name", ["round_robin", "greedy", "random", "oracle", "cpu_only", "gpu_only"]
)
def test_in_the_default_run_nobody_waits_longer_than_first_come_first_served(name: str) -> None:
    spec = RunSpec.parse({"seed": 42})
    tasks, _ = generate(spec, Cursor(), 10_000)
    share = policy.load(name).decide(tasks, spec).gpu_fraction
    columns = (tasks.size, tasks.compute_intensity, tasks.memory_required, tasks.arrival_time)
    drawn = [
        Job(task_id, *values)
        for task_id, *values in zip(
            range(10_000), *(column.tolist() for column in (*columns, share)), strict=True
        )
    ]
    rows, _ = results_of(drawn, Machines())
    parts = parts_of(rows)
    before = [run.finish for run in by_intervals(drawn, parts, Machines(), overtaking=False).runs]
    finish = column(rows, "finish")
    assert all(mine <= other for mine, other in zip(finish, before, strict=True))
    # Somebody is sooner exactly where a task is split.
    assert (finish != before) == any(gpu > 0 and cpu > 0 for gpu, cpu in parts)


RACK = [
    Entry(GPU, 3, "a"),
    Entry(Kind("v100", True, 2.0, 5.0, 16_000.0, 32_000.0, 250.0, 0.001), 2, "b"),
    Entry(CPU, 2, "a"),
    Entry(Kind("cpu_big", False, 2.0, watts=90.0), 1, "b"),
]


def many_jobs(cluster: Machines, count: int = 1500) -> list[Job]:
    """A busy run, with parents up to 400 tasks back."""
    random = np.random.default_rng(7)
    accelerators = [n for n, (kind, _) in enumerate(cluster.devices) if kind.accelerator]
    clock, found = 0.0, []
    for i in range(count):
        clock += float(random.exponential(0.3))
        size, intensity, memory = random.uniform((10, 0, 0), (2000, 1, 25_000)).tolist()
        lags = random.integers(1, 401, size=random.integers(0, 3)).tolist()
        found.append(
            Job(
                i,
                size,
                intensity,
                memory,
                clock,
                share=float(random.choice([0, 1, random.uniform()])),
                device=int(random.choice(accelerators)),
                parents=sorted({i - lag for lag in lags if lag <= i}),
                divisible=bool(random.random() < 0.8),
                width=int(random.choice([1, 2], p=[0.9, 0.1])),
                home=int(random.integers(0, 3)),
            )
        )
    return found


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("memory_policy", MEMORY_POLICIES)
def test_a_long_busy_run_agrees_with_the_independent_simulation(
    split: str, memory_policy: str
) -> None:
    cluster = Machines(RACK, {"a": 2, "b": 1}, split=split, memory_policy=memory_policy)
    drawn = many_jobs(cluster)
    rows, simulation = results_of(drawn, cluster, [1, 100, 300, 37], rebuilt=True)
    assert_prices_agree(rows, drawn, cluster)
    truth = by_intervals(drawn, parts_of(rows), cluster)
    assert_schedules_agree(rows, simulation, drawn, truth, rel=0)
    busiest = max(truth.busy) / simulation.standing.makespan
    assert busiest > 0.5


@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_long_run_is_bit_identical_in_batches_of_one_and_in_one_batch(rebuilt: bool) -> None:
    cluster = Machines(RACK, {"a": 2, "b": 1})
    drawn = many_jobs(cluster)
    whole, after_whole = results_of(drawn, cluster)
    cut, after_cut = results_of(drawn, cluster, [1], rebuilt=rebuilt)
    assert whole.equals(cut)
    assert json.dumps(after_whole.state()) == json.dumps(after_cut.state())


def test_a_cluster_of_10_000_devices_agrees_with_the_independent_simulation() -> None:
    cluster = Machines([Entry(GPU, 4, "n"), Entry(CPU, 1, "n")], {"n": 2000})
    drawn = [
        Job(i, 1000.0, 0.5, 1600.0, 0.0, share=0.5, parents=[i - 8000] if i >= 8000 else [])
        for i in range(8100)
    ]
    rows, simulation = results_of(drawn, cluster, [1000])
    # Half of a task takes 0.25 s on its GPU and 0.5 s on its node's CPU, which four GPUs share:
    # the first task is ready for the CPU at 0.25, the others follow.
    assert column(rows, "finish")[:4] == [0.75, 1.25, 1.75, 2.25]
    assert len(simulation.cluster.free) == 10_000
    assert math.isclose(sum(simulation.standing.busy), 8100 * 0.75)
