"""Which version decides a task in lockstep, and what it knows."""

from __future__ import annotations

from typing import Any

import pytest

from shared.domain.learning.lockstep import (
    deciding_version,
    first_decided,
    learned_before,
    left_of_segment,
)
from shared.domain.spec import RunSpec


def spec_of(pretrain: int = 1000) -> RunSpec:
    return RunSpec.parse({"learning": {"lockstep_tasks": 100, "pretrain_tasks": pretrain}})


@pytest.mark.parametrize(
    ("task", "version"), [(0, 1), (99, 1), (100, 1), (199, 1), (200, 2), (299, 2), (300, 3)]
)
def test_the_pretrained_model_decides_two_segments_and_each_later_one_a_segment(
    task: int, version: int
) -> None:
    assert deciding_version(task, spec_of()) == version


@pytest.mark.parametrize(("task", "version"), [(0, 0), (199, 0), (200, 1), (300, 2)])
def test_without_pretraining_the_first_two_segments_have_no_model(task: int, version: int) -> None:
    assert deciding_version(task, spec_of(pretrain=0)) == version


@pytest.mark.parametrize("pretrain", [0, 1000])
def test_a_version_knows_all_results_before_the_segment_before_its_own(pretrain: int) -> None:
    spec = spec_of(pretrain)
    for task in range(200, 1000, 100):
        version = deciding_version(task, spec)
        assert first_decided(version, spec) == task
        assert learned_before(version, spec) == task - 100


def test_a_batch_ends_with_its_segment() -> None:
    assert [left_of_segment(task, spec_of()) for task in (0, 1, 99, 100)] == [100, 99, 1, 100]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"pace": "max", "tasks": 1000}, True),
        ({"pace": "max"}, False),
        ({"pace": 20, "tasks": 1000}, False),
        ({"pace": "max", "tasks": 10**6}, False),
        ({"pace": "max", "workload": {"source": "submitted"}}, True),
        ({"pace": 20, "tasks": 1000, "learning": {"sync": "lockstep"}}, True),
        ({"pace": "max", "tasks": 1000, "learning": {"sync": "free"}}, False),
    ],
)
def test_counted_tasks_at_pace_max_are_in_lockstep_unless_the_spec_says_otherwise(
    fields: dict[str, Any], expected: bool
) -> None:
    assert RunSpec.parse(fields).lockstep is expected
