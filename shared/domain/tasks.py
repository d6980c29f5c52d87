"""A batch of tasks and a batch of decisions, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]

FEATURES = ("size", "compute_intensity", "memory_required")
# The value of a column that is None.
USUAL: dict[str, Any] = {"divisible": True, "width": 1, "home": -1}

# How many tasks back a parent may be unless the workload says otherwise.
DEPENDENCY_WINDOW = 256
# The most that the workload may say. The cluster remembers a task until its last child is served.
FARTHEST_PARENT = 1_000_000

# The most tasks of one batch, and of one request.
MOST_BATCH_TASKS = 10_000

# Largest size, MB or arrival time: a larger task would dominate every sum.
LARGEST = 1e9


@dataclass(frozen=True, slots=True)
class Tasks:
    """Columns of equal length. A column of extra facts is None, or empty, when all tasks of the
    batch have the usual value: no parents, no kind, may be split, one device, no home."""

    task_id: Integers
    size: Floats
    compute_intensity: Floats
    memory_required: Floats
    arrival_time: Floats
    parents: Sequence[Sequence[int]] = ()  # ids of the tasks that each one depends on
    kind: Sequence[str] = ()  # which row of a measured table
    divisible: Bools | None = None  # whether it may be split between an accelerator and a CPU
    width: Integers | None = None  # how many devices of one type it takes at once
    home: Integers | None = None  # the node that its data is on; -1: on all of them
    last_child: Integers | None = None  # id of the last task that may depend on it

    def __len__(self) -> int:
        return len(self.task_id)

    def delayed(self, seconds: float) -> Tasks:
        """The same tasks, so much later."""
        return replace(self, arrival_time=self.arrival_time + seconds) if seconds else self

    @property
    def may_split(self) -> Bools | None:
        """None: all may be split."""
        if self.width is None:
            return self.divisible
        alone: Bools = self.width == 1
        return alone if self.divisible is None else alone & self.divisible


@dataclass(frozen=True, slots=True)
class Decisions:
    """A policy's decision for each task of a batch. Defaults: the accelerators and the CPUs in
    rotation by task id, no model, no exploration."""

    gpu_fraction: Floats
    device: NDArray[np.integer] | None = None  # number of the accelerator
    cpu: NDArray[np.integer] | None = None  # number of the CPU that runs the rest
    model_version: int = 0
    explored: NDArray[np.bool_] | None = None
    probability: Floats | None = None
    expected_time: Floats | None = None  # seconds of execution that the policy expects
    # Row numbers in the order in which tasks that arrive together are served; None: by id.
    order: Integers | None = None
    # What the policy compared: its own seconds on each device type, and a score for each device.
    predicted: Sequence[Sequence[float]] | Floats | None = None
    scores: Sequence[Sequence[float]] | None = None


def take(tasks: Tasks, rows: slice | Integers) -> Tasks:
    return Tasks(**{field.name: _take(getattr(tasks, field.name), rows) for field in fields(Tasks)})


def _take(values: Any, rows: slice | Integers) -> Any:
    if values is None or len(values) == 0:
        return values
    if isinstance(rows, slice) or isinstance(values, np.ndarray):
        return values[rows]
    return [values[row] for row in rows]


def first_batch(tasks: Tasks, size: int, most: int) -> int:
    """How many of the tasks make a batch of about this size: tasks that arrive at the same moment
    stay together, since a scheduler may serve them in another order, unless they are too many."""
    if len(tasks) <= size:
        return len(tasks)
    arrival = tasks.arrival_time
    after = int(np.searchsorted(arrival[size:], arrival[size - 1], side="right")) + size
    return min(after, most)


def concatenate(batches: Sequence[Tasks]) -> Tasks:
    """One batch of several."""
    if len(batches) == 1:
        return batches[0]
    columns: dict[str, Any] = {}
    for field in fields(Tasks):
        values = [getattr(batch, field.name) for batch in batches]
        if field.name in ("task_id", *FEATURES, "arrival_time"):
            columns[field.name] = np.concatenate(values)
        elif field.name in USUAL and any(each is not None for each in values):
            columns[field.name] = np.concatenate(
                [
                    np.full(len(batch), USUAL[field.name]) if each is None else each
                    for batch, each in zip(batches, values, strict=True)
                ]
            )
    if any(len(batch.kind) for batch in batches):
        columns["kind"] = [kind for batch in batches for kind in (batch.kind or [""] * len(batch))]
    if any(len(batch.parents) for batch in batches):
        columns["parents"] = [
            parents for batch in batches for parents in (batch.parents or [()] * len(batch))
        ]
    if any(batch.last_child is not None for batch in batches):
        columns["last_child"] = np.concatenate([known_last_child(batch) for batch in batches])
    return Tasks(**columns)


def known_last_child(tasks: Tasks) -> Integers:
    """The last task that may depend on each one."""
    return tasks.task_id + DEPENDENCY_WINDOW if tasks.last_child is None else tasks.last_child
