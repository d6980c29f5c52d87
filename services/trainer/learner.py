"""The contract of learners: what makes the models that a learning scheduler decides with.

To add a learning scheduler, put a `Learner` and the policy that uses its models into one file and
start the arena with `hybrid up --add my_learner.py`. The trainer does the rest: it collects the
results, publishes and signs versions, compares a new model with the one in service, detects drift,
rolls back, and continues after a restart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np

from shared.domain.spec import RunSpec
from shared.domain.tasks import Bools, Floats, Integers, Tasks, concatenate, take


@dataclass(frozen=True, slots=True)
class Results:
    """What became of a scheduler's decisions: one row for each task, in task order."""

    tasks: Tasks
    share: Floats  # that the scheduler chose for an accelerator
    device: Integers  # the accelerator; -1: none
    cpu: Integers  # the CPU of the rest; -1: none
    time: Floats
    wait: Floats
    turnaround: Floats
    energy: Floats
    cost: Floats
    gpu_time: Floats
    cpu_time: Floats
    expected_time: Floats
    explored: Bools
    probability: Floats
    failed: Bools

    def __len__(self) -> int:
        return len(self.tasks)

    def rows(self, rows: slice | Integers) -> Results:
        columns = {name: getattr(self, name)[rows] for name in COLUMNS}
        return Results(tasks=take(self.tasks, rows), **columns)

    def last(self, count: int) -> Results:
        return self.rows(slice(max(len(self) - count, 0), None))

    def all_but_last(self, count: int) -> Results:
        return self.rows(slice(0, max(len(self) - count, 0)))


COLUMNS = tuple(field.name for field in fields(Results) if field.name != "tasks")


def join(parts: Sequence[Results]) -> Results:
    """One set of results from several that follow each other."""
    if len(parts) == 1:
        return parts[0]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS
    }
    return Results(tasks=concatenate([part.tasks for part in parts]), **columns)


@dataclass(frozen=True, slots=True)
class Update:
    """A new model: its bytes, why it was made, and figures to show beside it."""

    body: bytes
    reason: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    # What it was trained on, if that is not just the results: how many tasks, and the oldest one
    # (-1: generated).
    trained_on: int | None = None
    first_task: int | None = None


class Learner(ABC):
    """Makes the models of one scheduler in one run.

    `learn` must depend on its arguments and the spec alone: after a restart the trainer calls it
    with the newest published model and stored results, and the next model has to be the same to
    the last bit. So what must survive, such as an optimiser's moments, is part of the model.
    """

    name: ClassVar[str]  # of the scheduler that decides with the models
    learns_from: ClassVar[str] = ""  # the scheduler whose results are needed; empty: its own
    model_format: ClassVar[Literal["onnx", "safetensors"]] = "safetensors"

    # How many of the newest results are kept back to compare a new model with the one in service,
    # and how much worse it may be; 0: every model is published. Needs `score`.
    judge_on: int = 0
    tolerance: float = 0.0

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec

    @property
    def window(self) -> int:
        """How many of the newest results are kept, those to judge on among them."""
        return 1000

    @property
    def every(self) -> int:
        """How many new results make the next model due (by wall clock; not in lockstep)."""
        return 50

    @abstractmethod
    def pretrain(self, tasks: Tasks) -> Update | None:
        """The first model, from generated tasks like those of the run."""

    @abstractmethod
    def learn(self, model: bytes | None, results: Results, new: int, version: int) -> Update | None:
        """The model after this one (None: there is none yet). The last `new` results have arrived
        since the last call; `version` is the number of the model to make, for random numbers:
        `np.random.default_rng([spec.seed, version])`. None: there is nothing to publish."""

    def is_due(self, model: bytes | None, results: Results, new: int) -> bool:
        """Whether it is time to learn (by wall clock; not in lockstep)."""
        return new >= self.every

    def score(self, model: bytes, results: Results) -> float:
        """How good a model is on these results: lower is better."""
        raise NotImplementedError(f"{self.name} sets `judge_on` but has no `score`")

    def errors(self, model: bytes, results: Results) -> Floats | None:
        """How wrong the model was about each result; a lasting rise is drift. None: not watched."""
        return None


def without_parents(tasks: Tasks) -> Tasks:
    """As ClickHouse returns them: what a learner sees must not depend on where it comes from."""
    return replace(tasks, parents=(), last_child=None)
