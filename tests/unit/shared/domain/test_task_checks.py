"""Submitted tasks that a run cannot take are found, with what is allowed instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared.domain.spec import RunSpec
from shared.domain.task_checks import TaskProblem, submission_problems, with_last_children
from shared.domain.tasks import Tasks

# Two racks of four v100 and one CPU each.
CLUSTER = {
    "devices": [
        {"type": "v100", "count": 4, "node": "rack"},
        {"type": "cpu", "count": 1, "node": "rack"},
    ],
    "nodes": [{"name": "rack", "count": 2}],
}
CURVES = [
    {"kind": "gemm", "type": "v100", "sizes": [1, 9], "seconds": [1, 2]},
    {"kind": "sort", "type": "cpu", "sizes": [1, 9], "seconds": [1, 2]},
]
FORMULA = RunSpec.parse({"cluster": CLUSTER})
MEASURED = RunSpec.parse({"cluster": CLUSTER, "physics": {"measured": CURVES}})


def tasks_with(first: int = 0, count: int = 3, **columns: Any) -> Tasks:
    fixed = np.ones(count)
    return Tasks(np.arange(first, first + count), fixed, fixed / 2, fixed, fixed, **columns)


def spec_with(**workload: Any) -> RunSpec:
    return RunSpec.parse({"workload": {"source": "submitted", **workload}})


def only(tasks: Tasks, spec: RunSpec) -> TaskProblem:
    (problem,) = submission_problems(tasks, spec)
    return problem


def test_plain_tasks_have_no_problem() -> None:
    assert submission_problems(tasks_with(), FORMULA) == []
    assert submission_problems(tasks_with(kind=["any", "name", ""]), FORMULA) == []


def test_a_kind_must_be_one_of_the_measured_table() -> None:
    assert submission_problems(tasks_with(kind=["gemm", "sort", "gemm"]), MEASURED) == []
    problem = only(tasks_with(kind=["gemm", "fft", "dft"]), MEASURED)
    assert problem == TaskProblem(1, "kind", "unknown kind 'fft'; allowed: gemm, sort")
    problem = only(tasks_with(), MEASURED)
    assert problem == TaskProblem(0, "kind", "missing; allowed: gemm, sort")


def test_some_device_type_must_have_as_many_devices_as_the_task_is_wide() -> None:
    assert submission_problems(tasks_with(width=np.array([1, 8, 2])), FORMULA) == []
    problem = only(tasks_with(width=np.array([1, 8, 9])), FORMULA)
    assert (problem.row, problem.column) == (2, "width")
    assert "has 9 devices; allowed: 1 to 8" in problem.text


def test_the_device_type_must_be_one_that_can_run_the_kind() -> None:
    """Only the two CPUs can sort."""
    kinds, width = ["gemm", "sort", "sort"], np.array([8, 2, 3])
    problem = only(tasks_with(kind=kinds, width=width), MEASURED)
    assert (problem.row, problem.column) == (2, "width")
    assert "has 3 devices; allowed: 1 to 2" in problem.text


@pytest.mark.parametrize("home", [2, 1000, -2])
def test_data_is_on_a_node_of_the_cluster_or_on_all(home: int) -> None:
    assert submission_problems(tasks_with(home=np.array([0, 1, -1])), FORMULA) == []
    problem = only(tasks_with(home=np.array([0, home, -1])), FORMULA)
    assert (problem.row, problem.column) == (1, "home")
    assert "allowed: 0 to 1, or -1" in problem.text


def test_every_column_is_reported() -> None:
    tasks = tasks_with(kind=["fft"] * 3, home=np.array([5, 0, 0]), last_child=np.array([9, 9, 999]))
    found = [(each.row, each.column) for each in submission_problems(tasks, MEASURED)]
    assert found == [(0, "kind"), (0, "home"), (2, "last_child")]


@pytest.mark.parametrize(("window", "reach"), [(64, 256), (1000, 1000)])
def test_children_are_as_far_away_as_a_parent_may_be(window: int, reach: int) -> None:
    spec = spec_with(dependencies={"window": window})
    tasks = tasks_with(first=100, last_child=np.array([100 + reach, 101, -1]))
    assert submission_problems(tasks, spec) == []
    farther = tasks_with(first=100, last_child=np.array([100, 101 + reach + 1, -1]))
    problem = only(farther, spec)
    assert (problem.row, problem.column) == (1, "last_child")
    assert f"allowed: up to {101 + reach}" in problem.text


def test_a_task_that_names_no_last_child_may_have_children_as_far_as_the_run_allows() -> None:
    spec = spec_with(dependencies={"window": 1000})
    given = with_last_children(tasks_with(first=50, last_child=np.array([50, -1, 60])), spec)
    assert given.last_child is not None
    assert given.last_child.tolist() == [50, 1051, 60]
    missing = with_last_children(tasks_with(first=50), spec)
    assert missing.last_child is not None
    assert missing.last_child.tolist() == [1050, 1051, 1052]


def test_the_last_child_is_needed_where_all_tasks_would_be_remembered_for_long() -> None:
    spec = spec_with(dependencies={"window": 10_001})
    problem = only(tasks_with(last_child=np.array([5, -1, -1])), spec)
    assert (problem.row, problem.column) == (1, "last_child")
    assert problem.text.startswith("missing; it is needed")
    assert only(tasks_with(), spec).row == 0
    assert submission_problems(tasks_with(last_child=np.array([5, 10_002, 2])), spec) == []


def test_a_task_cannot_depend_on_one_that_said_it_has_no_such_child() -> None:
    parents: list[list[int]] = [[9], [], [10]]
    fine = tasks_with(first=10, parents=parents, last_child=np.array([12, 11, 12]))
    assert submission_problems(fine, FORMULA) == []
    forgotten = tasks_with(first=10, parents=parents, last_child=np.array([11, 11, 12]))
    problem = only(forgotten, FORMULA)
    assert (problem.row, problem.column) == (2, "dependencies")
    assert "task 10 cannot be a parent of task 12: its last_child is 11" in problem.text
