"""Whether a run can take submitted tasks: what depends on its platform and its workload.

What holds for the tasks of all runs is checked where messages are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from shared.domain.spec import RunSpec
from shared.domain.spec_parts.workload_spec import MOST_REMEMBERED
from shared.domain.tasks import Bools, Integers, Tasks


@dataclass(frozen=True, slots=True)
class TaskProblem:
    row: int
    column: str
    text: str


def submission_problems(tasks: Tasks, spec: RunSpec) -> list[TaskProblem]:
    """The first row with each problem. A `last_child` below 0 was not given."""
    return [
        *_kinds(tasks, spec),
        *_widths(tasks, spec),
        *_homes(tasks, spec),
        *_children(tasks, spec),
        *_parents(tasks),
    ]


def _kinds(tasks: Tasks, spec: RunSpec) -> Iterator[TaskProblem]:
    if not spec.physics.measured:
        return  # without making the platform for it
    measured = spec.platform.measured
    assert measured is not None
    allowed = f"allowed: {', '.join(measured.kinds)}"
    if not tasks.kind:
        yield TaskProblem(0, "kind", f"missing; {allowed}")
        return
    known = set(measured.kinds)
    for row, kind in enumerate(tasks.kind):
        if kind not in known:
            yield TaskProblem(row, "kind", f"unknown kind {kind!r}; {allowed}")
            return


def _widths(tasks: Tasks, spec: RunSpec) -> Iterator[TaskProblem]:
    if tasks.width is None:
        return
    kinds = tasks.kind or [""] * len(tasks)
    widest = {kind: spec.platform.widest(kind) for kind in set(kinds)}
    allowed = np.array([widest[kind] for kind in kinds])
    # A kind that no device can run is a problem of its own.
    if (row := _first((tasks.width > allowed) & (allowed > 0))) is not None:
        yield TaskProblem(
            row,
            "width",
            f"no device type that can run the task has {tasks.width[row]} devices; "
            f"allowed: 1 to {allowed[row]}",
        )


def _homes(tasks: Tasks, spec: RunSpec) -> Iterator[TaskProblem]:
    if tasks.home is None:
        return
    nodes = len(spec.platform.node_names)
    if (row := _first((tasks.home < -1) | (tasks.home >= nodes))) is not None:
        yield TaskProblem(
            row,
            "home",
            f"no node has the number {tasks.home[row]}; allowed: 0 to {nodes - 1}, or -1 for data "
            "that is on all nodes",
        )


def _children(tasks: Tasks, spec: RunSpec) -> Iterator[TaskProblem]:
    reach, last_child = spec.workload.reach, _last_child(tasks)
    if reach > MOST_REMEMBERED and (row := _first(last_child < 0)) is not None:
        yield TaskProblem(
            row,
            "last_child",
            "missing; it is needed where workload.dependencies.window is above "
            f"{MOST_REMEMBERED}, because every task would be remembered that long",
        )
    if (row := _first(last_child > tasks.task_id + reach)) is not None:
        yield TaskProblem(
            row,
            "last_child",
            f"{last_child[row]} is too far; allowed: up to {tasks.task_id[row] + reach}, "
            f"{reach} tasks later (workload.dependencies.window)",
        )


def _parents(tasks: Tasks) -> Iterator[TaskProblem]:
    """Parents of the same request that would be forgotten before their child."""
    first, last_child = int(tasks.task_id[0]), _last_child(tasks)
    for row, parents in enumerate(tasks.parents):
        for parent in parents:
            if parent >= first and 0 <= last_child[parent - first] < first + row:
                yield TaskProblem(
                    row,
                    "dependencies",
                    f"task {parent} cannot be a parent of task {first + row}: "
                    f"its last_child is {last_child[parent - first]}",
                )
                return


def _last_child(tasks: Tasks) -> Integers:
    return np.full(len(tasks), -1) if tasks.last_child is None else tasks.last_child


def with_last_children(tasks: Tasks, spec: RunSpec) -> Tasks:
    """A task that does not say it may have children as far away as the run allows."""
    last_child, farthest = _last_child(tasks), tasks.task_id + spec.workload.reach
    return replace(tasks, last_child=np.where(last_child < 0, farthest, last_child))


def _first(bad: Bools) -> int | None:
    return int(np.argmax(bad)) if bad.any() else None
