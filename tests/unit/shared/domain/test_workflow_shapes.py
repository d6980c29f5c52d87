"""Workflows of known shapes, and the runs that are made of them."""

from __future__ import annotations

import numpy as np
import pytest

from shared.domain.spec import RunSpec
from shared.domain.spec_parts.workflow_shapes import FEWEST_TASKS, SHAPES, Shape, workflow_parents
from shared.domain.workload import Cursor, generate


def test_the_shapes_by_hand() -> None:
    assert workflow_parents("pipeline", 5) == [[], [0], [1], [2], [3]]
    assert workflow_parents("fork_join", 5) == [[], [0], [0], [0], [1, 2, 3]]
    # Three images, two differences, the collection, the model, three corrections, the sum.
    assert workflow_parents("montage", 11) == [
        [], [], [], [0, 1], [1, 2], [3, 4], [5], [0, 6], [1, 6], [2, 6], [7, 8, 9],
    ]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_a_workflow_has_its_tasks_and_one_end(shape: Shape) -> None:
    for tasks in range(FEWEST_TASKS, 40):
        parents = workflow_parents(shape, tasks)
        assert len(parents) == tasks
        assert all(max(ids, default=-1) < place for place, ids in enumerate(parents))
        with_children = {i for ids in parents for i in ids}
        assert with_children == set(range(tasks - 1))


def test_a_run_is_one_workflow_after_the_other_in_batches_of_any_size() -> None:
    rule = {"shape": "fork_join", "workflow_tasks": 5}
    spec = RunSpec.parse({"workload": {"dependencies": rule}})
    complete, _ = generate(spec, Cursor(), 12)
    assert [list(ids) for ids in complete.parents] == [
        [], [0], [0], [0], [1, 2, 3], [], [5], [5], [5], [6, 7, 8], [], [10],
    ]  # fmt: skip
    first, cursor = generate(spec, Cursor(), 7)
    second, _ = generate(spec, cursor, 5)
    assert [*first.parents, *second.parents] == list(complete.parents)


def test_parents_of_a_large_workflow_are_remembered() -> None:
    rule = {"shape": "fork_join", "workflow_tasks": 1000}
    assert RunSpec.parse({"workload": {"dependencies": rule}}).workload.reach == 1000


def test_the_tasks_of_a_workflow_arrive_together_at_the_rate_of_single_tasks() -> None:
    rule = {"shape": "pipeline", "workflow_tasks": 8}
    spec = RunSpec.parse({"workload": {"arrival_rate": 10, "dependencies": rule}})
    tasks, _ = generate(spec, Cursor(), 16_000)
    arrival = tasks.arrival_time.reshape(-1, 8)
    assert (arrival == arrival[:, :1]).all()
    assert (np.diff(arrival[:, 0]) > 0).all()
    # 2,000 exponential gaps of 0.8 s: their sum is within 10 % of 1,600 s.
    assert arrival[-1, 0] == pytest.approx(1600, rel=0.1)
