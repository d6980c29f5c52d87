"""What a cluster policy sees: by hand, against a plain reckoning, and against the referee."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.domain.cluster import cluster_view, observation
from shared.domain.cluster import virtual_cluster as virtual
from shared.domain.cluster.cluster_tracker import ClusterTracker, follow
from shared.domain.cluster.cluster_view import ClusterView, WrongPlacement
from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.physics import price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Floats, Integers, Tasks, take
from shared.domain.times import real_seconds, seconds
from shared.domain.workload import Cursor, generate
from shared.messages import batches
from shared.messages.envelope import Envelope
from tests.unit.shared.domain.random_clusters import jobs, machines, spec_of, tasks_of

Place = Callable[[ClusterView, int], None]

NOISY = {"physics": {"noise": 0.5}, "workload": {"arrival_rate": 20}, "cluster": {"gpus": 2}}
SPECS: dict[str, dict[str, Any]] = {
    "default": {"workload": {"arrival_rate": 16}},
    "noisy": NOISY,
    "overloaded": NOISY | {"workload": {"arrival_rate": 200}},
    "dag": NOISY | {"workload": {"arrival_rate": 12, "dependencies": {"probability": 0.5}}},
    "many": {"cluster": {"gpus": 60, "cpus": 20}, "physics": {"noise": 0.3}},
}


def by_earliest_finish(view: ClusterView, row: int) -> None:
    view.place(view.finish().argmin())


class Run:
    """A scheduler's cluster over several batches."""

    def __init__(self, spec: RunSpec, **options: Any) -> None:
        self.spec, self._options = spec, options
        self.cluster = Cluster.idle(len(spec.platform))
        self.observation = Observation(self.cluster.copy())

    def serve(self, tasks: Tasks, place: Place = by_earliest_finish) -> Decisions:
        view = ClusterView(self.cluster, self.observation, tasks, self.spec, **self._options)
        for row in view.arrivals():
            place(view, row)
        return view.decisions()

    def state(self) -> str:
        return json.dumps([self.cluster.to_json(), self.observation.to_json()])


def tasks_in(spec: RunSpec, count: int = 600) -> Tasks:
    return generate(spec, Cursor(), count)[0]


def plain(arrival: list[float], size: list[float], memory: float = 0.0, parents: Any = ()) -> Tasks:
    """Tasks of intensity 0.5: one of size 1000 takes 1 s on the CPU and 0.4 s on a GPU."""
    count = len(arrival)
    return Tasks(
        task_id=np.arange(count),
        size=np.array(size, float),
        compute_intensity=np.full(count, 0.5),
        memory_required=np.full(count, memory),
        arrival_time=np.array(arrival, float),
        parents=parents,
    )


def seen(spec: RunSpec, tasks: Tasks, place: Place = by_earliest_finish) -> list[list[Any]]:
    """Everything that the view shows before each placement."""
    shown: list[list[Any]] = []

    def look_and_place(view: ClusterView, row: int) -> None:
        arrays = (view.seconds(), view.available(), view.queued(), view.waiting(), view.finish())
        shown.append([view.now, view.ready, *(array.tolist() for array in arrays)])
        place(view, row)

    Run(spec).serve(tasks, look_and_place)
    return shown


def test_a_policy_can_say_how_it_chose() -> None:
    def place(view: ClusterView, row: int) -> None:
        if row == 1:
            view.place(0, probability=0.25, explored=True)
        else:
            view.place(0)

    decisions = Run(RunSpec()).serve(plain([0, 1, 2], [1, 1, 1]), place)
    assert np.asarray(decisions.explored).tolist() == [False, True, False]
    assert np.asarray(decisions.probability).tolist() == [1.0, 0.25, 1.0]


def test_an_idle_cluster_by_hand() -> None:
    spec = RunSpec.parse({"cluster": {"gpus": 1}})  # device 0 is the GPU, 1 the CPU
    first, second, third = seen(spec, plain([0, 0, 0.1], [1000, 1000, 1000]))
    now, ready, on_device, available, queued, waiting, finish = first
    assert (now, ready, available, queued, waiting) == (0, 0, [0, 0], [0, 0], [0, 0])
    assert on_device == finish == pytest.approx([0.4, 1.0])
    # The first task is on the GPU. The second would finish there at 0.8, on the CPU at 1.
    assert second[3] == pytest.approx([0.4, 0])
    assert second[6] == pytest.approx([0.8, 1.0])
    # It waits behind the first. The third arrives at 0.1 and takes the CPU: 1.1 instead of 1.2.
    assert third[4] == pytest.approx([0.7, 0])
    assert third[5] == [1, 0]
    assert third[6] == pytest.approx([1.2, 1.1])


def test_a_task_that_does_not_fit_the_memory_cannot_finish_there() -> None:
    spec = RunSpec.parse({"cluster": {"gpus": 1, "gpu_memory_mb": 100}})
    (only,) = seen(spec, plain([0], [1000], memory=200))
    assert only[6] == [np.inf, 1.0]


def test_a_task_waits_for_its_parents() -> None:
    spec = RunSpec.parse({"cluster": {"gpus": 2}})
    tasks = plain([0, 0.1], [1000, 1000], parents=[[], [0]])
    _, child = seen(spec, tasks)
    assert child[1] == pytest.approx(0.4)
    assert child[6] == pytest.approx([0.8, 0.8, 1.4])


def test_an_unfinished_part_counts_as_estimated_and_a_finished_one_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Real times are 3, 1/4 and 1 times the expected 0.4 s."""
    factors = np.array([3.0, 0.25, 1.0, 1.0, 1.0])

    def real(tasks: Tasks, spec: RunSpec) -> Floats:
        return np.asarray(seconds(tasks, spec) * factors[tasks.task_id, None])

    monkeypatch.setattr(cluster_view, "real_seconds", real)
    spec = RunSpec.parse({"cluster": {"gpus": 1}})
    tasks = plain([0, 0, 1.0, 1.25, 1.31], [1000] * 5)
    shown = seen(spec, tasks, lambda view, row: view.place(0))
    # At 1.0 the first should have ended at 0.4: it is expected now, the second 0.4 s later.
    assert shown[2][3][0] == pytest.approx(1.4)
    # At 1.25 it has ended, at 1.2: the second is expected at 1.6, the third at 2.0.
    assert shown[3][3][0] == pytest.approx(2.0)
    # At 1.31 the second has ended, at 1.3: the third is expected at 1.7, the fourth at 2.1.
    assert shown[4][3][0] == pytest.approx(2.1)


def reckoned_available(
    now: float, placed: list[tuple[int, float, float, float]], devices: int
) -> list[float]:
    """When each device is expected to be free: from (device, arrival, estimate, real seconds) of
    what it was given, in order."""
    available = []
    for device in range(devices):
        real_end = expected_end = 0.0
        for _, arrival, estimate, real in (each for each in placed if each[0] == device):
            started = max(real_end, arrival)
            real_end = started + real
            if real_end <= now:
                expected_end = real_end
            elif started <= now and expected_end <= started:
                expected_end = max(started + estimate, now)  # it runs
            else:
                expected_end = max(expected_end, now) + estimate  # it waits
        available.append(max(expected_end, now))
    return available


@pytest.mark.parametrize("name", ["default", "noisy", "overloaded", "many"])
def test_the_expected_queues_agree_with_a_plain_reckoning(name: str) -> None:
    spec = RunSpec.parse(SPECS[name])
    # Few enough that no queue is remembered coarsely.
    tasks = tasks_in(spec, 250)
    expected, real, kinds = seconds(tasks, spec), real_seconds(tasks, spec), spec.platform.type_of
    placed: list[tuple[int, float, float, float]] = []

    def check_and_place(view: ClusterView, row: int) -> None:
        reckoned = reckoned_available(view.now, placed, len(spec.platform))
        assert view.available() == pytest.approx(reckoned, rel=1e-9)
        device = int(np.where(np.isfinite(view.seconds()), view.finish(), np.inf).argmin())
        lengths = expected[row, kinds[device]], real[row, kinds[device]]
        placed.append((device, view.now, *lengths))
        view.place(device)

    Run(spec).serve(tasks, check_and_place)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("size", [1, 7, 250])
def test_what_is_seen_and_decided_does_not_depend_on_batches(name: str, size: int) -> None:
    spec = RunSpec.parse(SPECS[name])
    tasks = tasks_in(spec)
    whole, pieces = Run(spec), Run(spec)
    decided = whole.serve(tasks)
    edges = [*range(0, len(tasks), size), len(tasks)]
    parts = [pieces.serve(take(tasks, slice(*edge))) for edge in pairwise(edges)]
    for column in ("gpu_fraction", "device", "cpu", "expected_time"):
        joined = np.concatenate([getattr(part, column) for part in parts])
        assert np.array_equal(joined, getattr(decided, column)), column
    assert pieces.state() == whole.state()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_copy_and_the_simulator_come_to_the_same_cluster(data: st.DataObject) -> None:
    """Any placement on any cluster: splits, widths, homes, parents, memory, measured times."""
    drawn = data.draw(machines())
    spec = spec_of(drawn)
    noise = data.draw(st.sampled_from([0.0, 0.4]))
    deciding = data.draw(st.sampled_from([0.0, 0.3]))
    physics = spec.physics.model_copy(update={"noise": noise, "decision_s": deciding})
    spec = spec.model_copy(update={"physics": physics})
    tasks = tasks_of(data.draw(jobs(drawn)))
    devices = data.draw(
        st.lists(st.integers(0, len(spec.platform) - 1), min_size=len(tasks), max_size=len(tasks))
    )
    share = data.draw(st.sampled_from([None, 0.5]))
    run = Run(spec)
    decided = run.serve(tasks, lambda view, row: view.place(devices[row], share))

    columns = (decided.gpu_fraction, decided.device, decided.cpu)
    device, cpu = spec.platform.complete(tasks.task_id, *columns)
    real = price(tasks, decided.gpu_fraction, spec, device, cpu)
    cluster = Cluster.idle(len(spec.platform))
    decided_at = tasks.delayed(deciding)
    virtual.run(cluster, decided_at, device, cpu, real, spec.physics.split, spec.platform)
    assert cluster.to_json() == run.cluster.to_json()

    followed = Cluster.idle(len(spec.platform))
    known = Observation(followed.copy())
    assert decided.expected_time is not None
    follow(
        followed,
        known,
        tasks,
        decided.gpu_fraction,
        device,
        cpu,
        decided.expected_time,
        real,
        spec,
    )
    assert json.dumps([followed.to_json(), known.to_json()]) == run.state()
    if noise == 0:  # what is expected is what happens
        assert known.expected.to_json() == followed.to_json()


def test_a_task_waits_for_a_parent_that_ends_later_than_expected() -> None:
    spec = RunSpec.parse({"cluster": {"gpus": 2}})
    tasks = plain([0, 1.5], [1000, 1000], parents=[[], [0]])
    cluster = Cluster.idle(len(spec.platform))
    tracker = ClusterTracker(cluster, Observation(cluster.copy()), tasks, spec)
    tracker.arrive(0)
    tracker.place_whole(0, expected=1.0, real=2.0)
    tracker.arrive(1)
    tracker.place_whole(1, expected=0.25, real=0.25)
    assert cluster.free[:2] == [2.0, 2.25]


def real_finish(spec: RunSpec, tasks: Tasks, device: Integers, factors: Floats) -> Floats:
    """When whole tasks end that take their expected time times a factor. CPUs come last."""
    times = seconds(tasks, spec) * factors[:, None]
    share = np.where(device < spec.cluster.gpus, 1.0, 0.0)
    priced = price(tasks, share, spec, times=times)
    cluster, split = Cluster.idle(len(spec.platform)), spec.physics.split
    return virtual.run(cluster, tasks, device, device, priced, split, spec.platform).finish


def test_nothing_shows_how_long_unfinished_tasks_will_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two futures that agree on all that has finished look the same."""
    spec = RunSpec.parse({"cluster": {"gpus": 2}})
    parents = [[row - 7] if row % 5 == 0 and row > 7 else [] for row in range(60)]
    tasks = plain([row / 20 for row in range(60)], [1000] * 60, parents=parents)

    def shown(factors: Floats) -> list[list[Any]]:
        def real(tasks: Tasks, spec: RunSpec) -> Floats:
            return np.asarray(seconds(tasks, spec) * factors[tasks.task_id, None])

        with monkeypatch.context() as patch:
            patch.setattr(cluster_view, "real_seconds", real)
            return seen(spec, tasks, lambda view, row: view.place(row % 3))

    usual = np.where(np.arange(60) % 4 == 0, 1.3, 0.7)
    now = [row[0] for row in shown(usual)]
    finish = real_finish(spec, tasks, np.arange(60) % 3, usual)
    for moment in (0.5, 1.0, 1.5):
        unfinished = finish > moment
        other = np.where(unfinished, 4 * usual, usual)
        until = sum(time <= moment for time in now)
        assert shown(other)[:until] == shown(usual)[:until]
        assert shown(other) != shown(usual)


def test_a_policy_gets_no_noise_to_compute_real_times_from() -> None:
    spec = RunSpec.parse(NOISY)
    tasks = tasks_in(spec, 50)
    assert not np.array_equal(real_seconds(tasks, spec), seconds(tasks, spec))
    assert np.array_equal(real_seconds(tasks, spec.without_noise), seconds(tasks, spec))
    assert spec.without_noise is spec.without_noise


def test_the_clairvoyant_sees_real_times() -> None:
    spec = RunSpec.parse(NOISY)
    tasks = tasks_in(spec, 50)
    run = Run(spec, knows_real_times=True)
    decided = run.serve(tasks)
    device, cpu = spec.platform.complete(
        tasks.task_id, decided.gpu_fraction, decided.device, decided.cpu
    )
    real = price(tasks, decided.gpu_fraction, spec, device, cpu)
    assert np.array_equal(decided.expected_time, real.time)


def test_a_policy_may_expect_other_times() -> None:
    spec = RunSpec.parse({"cluster": {"gpus": 1}})
    tasks = plain([0], [1000])
    run = Run(spec)
    view = ClusterView(run.cluster, run.observation, tasks, spec)
    view.expect(np.array([[5.0, 2.0]]))
    for _ in view.arrivals():
        assert view.finish().tolist() == [5.0, 2.0]
        view.place(1)
        assert view.available().tolist() == [0.0, 2.0]
    assert view.decisions().expected_time == [2.0]


@pytest.mark.parametrize(("device", "share"), [(0, None), (2, None), (0, 0.5)])
def test_a_device_that_became_idle_before_the_first_wrong_estimate_is_available(
    device: int, share: float | None
) -> None:
    """On one device two tasks, exactly estimated and done; then the first wrong estimate."""
    spec = RunSpec.parse({"cluster": {"gpus": 2}})
    tasks = plain([0, 0, 10, 10.125], [1000] * 4)
    view = ClusterView(cluster := Cluster.idle(3), Observation(cluster.copy()), tasks, spec)
    view.expect(seconds(tasks, spec) * np.array([[1], [1], [2], [2]]))
    available = []
    for _, chosen in zip(view.arrivals(), [device, device, 1, 1], strict=False):
        available = view.available().tolist()
        view.place(chosen, share if chosen == device else None)
    assert available == [10.125, 10.8, 10.125]


def test_long_queues_are_remembered_coarsely() -> None:
    spec = RunSpec.parse({"cluster": {"gpus": 1}})
    tasks = plain([0.0] * 1000, [100] * 1000)
    run = Run(spec)
    run.serve(tasks, lambda view, row: view.place(0))
    (parts,) = run.observation.parts.values()
    assert len(parts) <= observation.MOST_PARTS
    assert sum(part[2] for part in parts) == 1000
    assert run.observation.waiting(0) == 999
    assert parts[-1][:2] == pytest.approx((run.cluster.free[0], run.cluster.free[0]))


def test_the_observation_survives_json_bit_for_bit() -> None:
    spec = RunSpec.parse(SPECS["dag"])
    run = Run(spec)
    run.serve(tasks_in(spec))
    data = json.loads(json.dumps(run.observation.to_json()))
    assert Observation.from_json(data) == run.observation


def test_tasks_that_arrive_together_may_be_placed_in_another_order() -> None:
    spec = RunSpec.parse({"cluster": {"gpus": 1}})
    tasks = plain([0, 0, 0], [1000, 2000, 500], parents=[[], [], [0]])
    run = Run(spec)
    view = ClusterView(run.cluster, run.observation, tasks, spec)
    order = np.array([1, 0, 2])
    for _ in view.arrivals(order):
        view.place(0)
    decisions = view.decisions()
    assert np.array_equal(decisions.order, order)
    real = price(tasks, decisions.gpu_fraction, spec)
    cluster = Cluster.idle(2)
    device = np.zeros(3, np.int64)
    schedule = virtual.run(cluster, tasks, device, device + 1, real, "serial", spec.platform, order)
    second = real.gpu_time[1]
    assert schedule.gpu_start == pytest.approx([second, 0, second + real.gpu_time[0]])
    assert cluster.to_json() == run.cluster.to_json()


@pytest.mark.parametrize(
    ("order", "problem"),
    [
        ([0, 0, 1], "not every row"),
        ([2, 0, 1], "arrive at the same moment"),
        ([1, 0, 2], "before its parent"),
    ],
)
def test_an_impossible_order_is_refused(order: list[int], problem: str) -> None:
    spec = RunSpec.parse({})
    tasks = plain([0, 0, 1], [1000] * 3, parents=[[], [0], []])
    run = Run(spec)
    view = ClusterView(run.cluster, run.observation, tasks, spec)
    with pytest.raises(WrongPlacement, match=problem):
        list(view.arrivals(np.array(order)))


def test_every_task_has_to_be_placed_once_on_a_device() -> None:
    spec = RunSpec.parse({})
    tasks = plain([0, 0], [1000, 1000])
    with pytest.raises(WrongPlacement, match="task 0 was not placed"):
        Run(spec).serve(tasks, lambda view, row: None)

    def place_twice(view: ClusterView, row: int) -> None:
        view.place(0)
        view.place(1)

    with pytest.raises(WrongPlacement, match="task 0 was placed twice"):
        Run(spec).serve(tasks, place_twice)
    with pytest.raises(WrongPlacement, match="device 5"):
        Run(spec).serve(tasks, lambda view, row: view.place(5))
    with pytest.raises(WrongPlacement, match=r"share 1\.7: from 0 to 1"):
        Run(spec).serve(tasks, lambda view, row: view.place(0, share=1.7))
    with pytest.raises(WrongPlacement, match="cpu 1: not the number of a CPU"):
        Run(spec).serve(tasks, lambda view, row: view.place(0, share=0.5, cpu=1))
    view = ClusterView(Cluster.idle(5), Observation(Cluster.idle(5)), tasks, spec)
    with pytest.raises(WrongPlacement, match="not complete"):
        view.decisions()


def test_a_policy_may_show_what_it_compared() -> None:
    """Its own times, and a score for each device; tasks without scores have none."""
    spec = RunSpec.parse({"cluster": {"gpus": 2}})
    tasks, _ = generate(spec, Cursor(), 3)
    cluster = Cluster.idle(len(spec.platform))
    view = ClusterView(cluster, Observation(cluster.copy()), tasks, spec)
    view.expect(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    for row in view.arrivals():
        scores = None if row == 1 else np.array([0.5, 1.5, 2.5]) + row
        view.place(0, scores=scores)
    decisions = view.decisions()
    assert decisions.scores == [[0.5, 1.5, 2.5], [], [2.5, 3.5, 4.5]]
    rows = batches.decision_rows(batches.task_rows(tasks), tasks, decisions, spec.platform)
    envelope = Envelope("decisions", "r", 0, 0.0, "mine")
    read = batches.decode(batches.encode(envelope, rows), "decisions.r.mine").rows
    assert read.column("predicted").to_pylist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert read.column("scores").to_pylist() == [[0.5, 1.5, 2.5], [], [2.5, 3.5, 4.5]]


def test_a_policy_that_shows_nothing_sends_no_such_columns() -> None:
    spec = RunSpec.parse({})
    tasks, _ = generate(spec, Cursor(), 3)
    decisions = Decisions(gpu_fraction=np.zeros(3))
    rows = batches.decision_rows(batches.task_rows(tasks), tasks, decisions, spec.platform)
    body = batches.encode(Envelope("decisions", "r", 0, 0.0, "mine"), rows)
    assert b"predicted" not in body
    assert batches.decode(body, "decisions.r.mine").rows.equals(rows)
