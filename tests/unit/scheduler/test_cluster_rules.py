"""The rules of the literature, by hand and against independent implementations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.scheduler.cluster_worker import ClusterCopy, place
from services.scheduler.policies.heft import upward_ranks
from services.scheduler.policy import ClusterPolicy, load
from services.simulator.simulation import Simulation
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.messages import batches
from shared.messages.batches import Batch, Envelope


def machine(speeds: Sequence[float]) -> RunSpec:
    """One CPU of each speed: a task of size 1000 and intensity 0.5 takes 1/speed seconds."""
    devices = [{"type": f"cpu{number}", "speed": speed} for number, speed in enumerate(speeds)]
    return RunSpec.parse({"cluster": {"devices": devices}})


def tasks_of(
    seconds: Sequence[float],
    arrival: Sequence[float] | None = None,
    parents: Sequence[Sequence[int]] = (),
) -> Tasks:
    """Seconds at speed 1."""
    count = len(seconds)
    return Tasks(
        task_id=np.arange(count),
        size=1000 * np.array(seconds, float) ** (2 / 3),
        compute_intensity=np.full(count, 0.5),
        memory_required=np.zeros(count),
        arrival_time=np.array(arrival or [0.0] * count),
        parents=parents,
    )


def results(name: str, spec: RunSpec, tasks: Tasks) -> dict[str, list[Any]]:
    """The simulator's results for a policy's decisions on an idle cluster."""
    policy = load(name)
    assert isinstance(policy, ClusterPolicy)
    batch = Batch(Envelope("tasks", "run", 0, 0.0), batches.task_rows(tasks))
    prepared = policy.prepare(tasks, spec)
    decided, _ = place(batch, policy, ClusterCopy.new(spec), spec, prepared)
    rows, _ = Simulation.new(spec).advance(decided.rows)
    return rows.to_pydict()


def test_least_loaded_takes_the_shortest_queue_however_slow_the_device() -> None:
    found = results("least_loaded", machine([10, 1]), tasks_of([1, 1, 1, 1]))
    # 0.1 s each on the first device: it has the shorter queue until the end.
    assert found["cpu"] == [0, 1, 0, 0]


def test_eft_takes_the_device_that_ends_first() -> None:
    found = results("eft", machine([4, 1]), tasks_of([1, 1, 1, 1, 1]))
    assert found["cpu"] == [0, 0, 0, 0, 1]
    assert found["finish"] == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.0])


def test_heft_places_the_longest_path_first() -> None:
    """Task 0 is alone; 1 and 2 are a chain of 6 s on two equal devices. By id, 0 and 1 start and
    the rest of the chain ends at 6; with a third task of 3 s before the chain it would end at 9."""
    parents = [[], [], [], [2]]
    tasks = tasks_of([3, 3, 3, 3], parents=parents)
    assert max(results("eft", machine([1, 1]), tasks)["finish"]) == pytest.approx(9)
    found = results("heft", machine([1, 1]), tasks)
    assert max(found["finish"]) == pytest.approx(6)
    assert found["turn"] == [1, 2, 0, -1]


def test_without_dependencies_heft_is_eft() -> None:
    tasks = tasks_of([3, 1, 2, 2], arrival=[0, 0.5, 1, 1])
    spec = machine([2, 1])
    assert results("heft", spec, tasks)["finish"] == results("eft", spec, tasks)["finish"]


def test_the_rank_is_the_longest_path_behind_a_task() -> None:
    parents = [[], [0], [0], [1, 2], [2]]
    ranks = upward_ranks(tasks_of([1] * 5, parents=parents), np.array([1.0, 10, 2, 3, 20]))
    assert ranks.tolist() == [23, 13, 22, 3, 20]


def plain_eft(
    seconds: Sequence[float], arrival: Sequence[float], speeds: Sequence[float]
) -> list[float]:
    """Minimum completion time, from its definition."""
    free = [0.0] * len(speeds)
    finish = []
    for work, now in zip(seconds, arrival, strict=True):
        ends = [max(each, now) + work / speed for each, speed in zip(free, speeds, strict=True)]
        best = min(range(len(speeds)), key=ends.__getitem__)
        free[best] = ends[best]
        finish.append(ends[best])
    return finish


def plain_heft(
    seconds: Sequence[float], parents: Sequence[Sequence[int]], speeds: Sequence[float]
) -> float:
    """The makespan of HEFT with insertion, from its definition in the paper, without transfers."""
    count = len(seconds)
    mean = [work * sum(1 / speed for speed in speeds) / len(speeds) for work in seconds]

    def rank(task: int) -> float:
        children = [child for child in range(count) if task in parents[child]]
        return mean[task] + max(map(rank, children), default=0.0)

    busy: list[list[tuple[float, float]]] = [[] for _ in speeds]
    finish: dict[int, float] = {}
    for task in sorted(range(count), key=lambda each: (-rank(each), each)):
        ready = max((finish[parent] for parent in parents[task]), default=0.0)
        options = []
        for number, speed in enumerate(speeds):
            length = seconds[task] / speed
            start = ready
            for begin, end in sorted(busy[number]):
                if start + length <= begin:
                    break
                start = max(start, end)
            options.append((start + length, number, start))
        end, number, start = min(options)
        busy[number].append((start, end))
        finish[task] = end
    return max(finish.values())


def best_makespan(
    seconds: Sequence[float], parents: Sequence[Sequence[int]], speeds: Sequence[float]
) -> float:
    """The shortest of all schedules that place tasks in some order, each behind the last one."""
    best = np.inf
    orders = itertools.permutations(range(len(seconds)))
    for order in orders if any(parents) else [tuple(range(len(seconds)))]:
        turn = {task: position for position, task in enumerate(order)}
        if any(turn[parent] > turn[task] for task in order for parent in parents[task]):
            continue
        for devices in itertools.product(range(len(speeds)), repeat=len(seconds)):
            free, finish = [0.0] * len(speeds), [0.0] * len(seconds)
            for task in order:
                start = max([free[devices[task]], *(finish[each] for each in parents[task])])
                finish[task] = free[devices[task]] = start + seconds[task] / speeds[devices[task]]
            best = min(best, max(finish))
    return float(best)


SECONDS = st.lists(st.floats(0.1, 10), min_size=1, max_size=40)
SPEEDS = st.lists(st.floats(0.5, 4), min_size=1, max_size=5)


@settings(max_examples=100, deadline=None)
@given(SECONDS, SPEEDS, st.data())
def test_eft_agrees_with_its_definition(
    seconds: list[float], speeds: list[float], data: st.DataObject
) -> None:
    steps = data.draw(st.lists(st.floats(0, 3), min_size=len(seconds), max_size=len(seconds)))
    arrival = list(itertools.accumulate(steps))
    found = results("eft", machine(speeds), tasks_of(seconds, arrival))
    assert found["finish"] == pytest.approx(plain_eft(seconds, arrival, speeds), rel=1e-9)


@st.composite
def graphs(draw: st.DrawFn, most: int) -> tuple[list[float], list[list[int]], list[float]]:
    seconds = draw(st.lists(st.floats(0.1, 10), min_size=1, max_size=most))
    parents = [
        sorted(draw(st.sets(st.integers(0, row - 1), max_size=3))) if row else []
        for row in range(len(seconds))
    ]
    return seconds, parents, draw(st.lists(st.floats(0.5, 4), min_size=1, max_size=4))


@settings(max_examples=100, deadline=None)
@given(graphs(most=20))
def test_heft_agrees_with_its_definition(
    graph: tuple[list[float], list[list[int]], list[float]],
) -> None:
    seconds, parents, speeds = graph
    found = results("heft", machine(speeds), tasks_of(seconds, parents=parents))
    expected = plain_heft(seconds, parents, speeds)
    assert max(found["finish"]) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.one_of(graphs(most=5), graphs(most=8).map(lambda graph: (graph[0], [()] * 8, graph[2]))))
def test_no_rule_is_better_than_the_best_of_all_schedules(
    graph: tuple[list[float], list[list[int]], list[float]],
) -> None:
    seconds, parents, speeds = graph[0], graph[1][: len(graph[0])], graph[2][:2]
    best = best_makespan(seconds, parents, speeds)
    for name in ("least_loaded", "eft", "heft"):
        found = results(name, machine(speeds), tasks_of(seconds, parents=parents))
        assert max(found["finish"]) >= best * (1 - 1e-9)
