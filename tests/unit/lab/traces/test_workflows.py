"""Workflows lose no edge, and the virtual cluster takes about as long as a list scheduler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.lab.traces.problem_report import Report
from services.lab.traces.trace import Trace
from shared.domain.cluster import virtual_cluster
from shared.domain.physics import price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks, take
from tests.unit.lab.traces.list_scheduler import layered_workflow, list_schedule
from tests.unit.lab.traces.reading import read, written

CPUS = 8
SPEC = RunSpec.parse({"cluster": {"devices": [{"type": "cpu", "count": CPUS}]}})


def workflow(seconds: list[float], parents: list[list[int]], order: list[int] | None = None) -> str:
    """In WfFormat; `order` is that of the list of tasks."""
    places = order or range(len(seconds))
    described = [
        {"name": f"step_{n}", "id": f"t{n}", "parents": [f"t{parent}" for parent in parents[n]]}
        for n in places
    ]
    measured = [{"id": f"t{n}", "runtimeInSeconds": seconds[n]} for n in range(len(seconds))]
    return json.dumps(
        {"workflow": {"specification": {"tasks": described}, "execution": {"tasks": measured}}}
    )


def earliest_finish(batches: list[Tasks], spec: RunSpec, run_times: list[float]) -> list[float]:
    """When tasks finish on the virtual cluster if each gets the CPU on which it ends first."""
    cluster = virtual_cluster.Cluster.idle(len(spec.platform))
    finish: list[float] = []
    for batch in batches:
        for place in range(len(batch)):
            task = take(batch, slice(place, place + 1))
            length = run_times[int(task.task_id[0])]
            ready = max((finish[parent] for parent in (task.parents or [[]])[0]), default=0.0)
            free = [cluster.earliest(cpu, ready, length) for cpu in range(len(spec.platform))]
            cpu, nowhere = np.array([int(np.argmin(free))]), np.array([-1])
            paid = price(task, np.zeros(1), spec, nowhere, cpu)
            served = virtual_cluster.run(cluster, task, nowhere, cpu, paid, "serial", spec.platform)
            finish.append(float(served.finish[0]))
    return finish


@pytest.mark.parametrize("seed", range(5))
def test_the_makespan_is_within_a_tenth_of_a_list_schedulers(tmp_path: Path, seed: int) -> None:
    seconds, parents = layered_workflow(seed, layers=12, widest=60)
    path = written(tmp_path, "wf.json", workflow(seconds, parents))
    batches = list(Trace(path, Report(), spec=SPEC).batches())
    found = max(earliest_finish(batches, SPEC, seconds))
    expected = max(list_schedule([[length] * CPUS for length in seconds], parents))
    assert found == pytest.approx(expected, rel=0.1)


def test_no_edge_is_dropped_however_far_back_a_parent_is(tmp_path: Path) -> None:
    # Every one of 1,000 tasks waits for task 0, the last one for all of them.
    parents: list[list[int]] = [[], *([0] for _ in range(999)), list(range(1000))]
    result = read(written(tmp_path, "wf.json", workflow([1.0] * 1001, parents)), spec=SPEC)
    assert result.tasks.parents == parents
    assert result.tasks.last_child is not None
    assert result.tasks.last_child.tolist() == [1000] * 1001
    assert result.trace.survey().links.window == 1000
    assert result.messages == []


def test_children_that_are_listed_before_their_parents_come_after_them(tmp_path: Path) -> None:
    seconds, parents = [1.0, 2.0, 3.0, 4.0], [[], [0], [0], [1, 2]]
    text = workflow(seconds, parents, order=[3, 1, 0, 2])
    result = read(written(tmp_path, "wf.json", text), spec=SPEC)
    # Task t0 first, then what is next in the file and ready: t1, t2, t3.
    assert result.tasks.kind == ["step"] * 4
    assert result.tasks.size.tolist() == pytest.approx([1000 * s ** (2 / 3) for s in seconds])
    assert result.tasks.parents == [[], [0], [0], [1, 2]]
    assert result.messages == []


def test_the_tasks_of_a_cycle_lose_the_edges_that_close_it(tmp_path: Path) -> None:
    text = workflow([1.0, 1.0, 1.0], [[1], [0], []])
    result = read(written(tmp_path, "wf.json", text), spec=SPEC)
    assert result.tasks.parents == [[], [], [1]]
    assert result.messages == ["task 1: adjusted: parent dropped: no such task before it: t1"]


def test_a_skipped_task_hands_its_parents_on(tmp_path: Path) -> None:
    # 0 -> 2 -> 3 -> 5 and 1 -> 3; tasks 2 and 3 ran for no time.
    seconds = [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    parents: list[list[int]] = [[], [], [0], [1, 2], [], [3]]
    result = read(written(tmp_path, "wf.json", workflow(seconds, parents)), spec=SPEC)
    # Left are 0, 1, 4 and 5 as tasks 0 to 3.
    assert result.tasks.parents == [[], [], [], [0, 1]]
    assert result.tasks.last_child is not None
    assert result.tasks.last_child.tolist() == [3, 3, 2, 3]
    assert result.messages == [
        "task 3: skipped: ran for no time",
        "task 4: skipped: ran for no time",
        "task 6: adjusted: parent replaced by its own parents: its line was skipped: t3",
    ]


@pytest.mark.parametrize("seed", range(20))
def test_edges_of_any_csv_are_those_of_a_search_by_hand(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    lines = ["task_id,size,compute_intensity,memory_required,arrival_time,dependencies"]
    known: list[str] = []
    expected: list[list[int]] = []
    ancestors: dict[str, set[int]] = {}  # of a name: the tasks that stand for it
    for number in range(120):
        name = f"n{number}"
        wanted = sorted(set(random.choice(known, random.integers(0, 4)).tolist())) if known else []
        skipped = random.random() < 0.3
        size = -1 if skipped else 100
        lines.append(f"{name},{size},0.5,1,0,{';'.join(wanted)}")
        tasks: set[int] = set().union(*(ancestors[parent] for parent in wanted))
        if not skipped:
            expected.append(sorted(tasks))
            tasks = {len(expected) - 1}
        ancestors[name] = tasks
        known.append(name)
    result = read(written(tmp_path, "t.csv", "\n".join(lines) + "\n"))
    assert result.tasks.parents == expected
    last = list(range(len(expected)))
    for child, parents in enumerate(expected):
        for parent in parents:
            last[parent] = child
    assert result.tasks.last_child is not None
    assert result.tasks.last_child.tolist() == last


def test_a_limit_keeps_the_edges_of_the_tasks_that_are_left(tmp_path: Path) -> None:
    parents: list[list[int]] = [[], *([0] for _ in range(99))]
    path = written(tmp_path, "wf.json", workflow([1.0] * 100, parents))
    options: dict[str, Any] = {"spec": SPEC, "limit": 10}
    assert read(path, **options).tasks.parents == parents[:10]
