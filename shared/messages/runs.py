"""The record of a run: its spec and its state, as the run book stores it."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, ValidationError

from shared.domain.schedulers import LEARNERS
from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor
from shared.errors import Unreadable
from shared.messages.formats import LOCKSTEP, RunFormat, problem


class RunState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    COMPLETED = "completed"


ACTIVE = {RunState.RUNNING, RunState.PAUSED}

# The states from which a run may change to each state.
ALLOWED_FROM: dict[RunState, set[RunState]] = {
    RunState.PAUSED: {RunState.RUNNING},
    RunState.RUNNING: {RunState.PAUSED},
    RunState.STOPPED: ACTIVE,
    RunState.COMPLETED: ACTIVE,
}


class Suspension(BaseModel):
    """Why a scheduler takes no part in a run any more."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    reason: str
    batch: int | None = None  # that it failed on; None: it failed before it decided one
    at: float
    # A retry continues here: the first message on the run's tasks that it may not have decided.
    next_batch: int = 0
    next_sequence: int = 0  # in TASKS
    left_out: bool = False  # for good: no retry


class Retry(BaseModel):
    """A scheduler that was suspended takes part again: a consumer of its own delivers the run's
    tasks to it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    sequence: int  # in TASKS, from which on
    batch: int | None = None  # that it had failed on
    at: float


class SuspensionRequest(BaseModel):
    """From a worker or the trainer, whose scheduler keeps failing, to the generator."""

    model_config = ConfigDict(extra="ignore")

    run: str
    scheduler: str
    reason: str
    batch: int | None = None
    # The retry that it failed after, 0 if there was none; older versions do not say.
    retried_at: float | None = None


class Fork(BaseModel):
    """Where a run branches off another one: it shares that run's tasks and results before `at`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    run: str  # the parent
    at: int  # the first task of its own
    changes: tuple[str, ...] = ()  # as they were given: path=value
    # Its task stream begins here.
    cursor: Cursor
    next_batch: int
    # By scheduler that the parent does not have: the one of the parent whose cluster it takes over.
    takes_over: dict[str, str] = {}
    # The learners that go on with the parent's models, each with the first task that it may learn
    # from; the others are pre-trained, and learn from `at` on.
    learners: dict[str, int] = {}
    # In lockstep: the version of the parent's models that decides task `at`.
    version: int | None = None
    # Whether devices and prices are the parent's.
    same_platform: bool = True
    # How many of the parent's submitted tasks follow, and whether the stream ends with them.
    submitted: int = 0
    ended: bool = False


class RunRecord(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    run: str
    spec: RunSpec
    state: RunState
    created_at: float
    updated_at: float
    # The schedulers that learn, plug-ins among them; older records have none.
    learners: tuple[str, ...] = LEARNERS
    message_format: RunFormat = 1
    # By scheduler; services of older versions wrote none of these two.
    suspended: dict[str, Suspension] = {}
    resumed: dict[str, Retry] = {}
    # What people write about it; older records have none.
    tags: tuple[str, ...] = ()
    notes: str = ""
    fork: Fork | None = None  # None: it begins with its first task

    @property
    def competing(self) -> tuple[str, ...]:
        """The schedulers that are compared, and that the run waits for."""
        return tuple(name for name in self.spec.schedulers if name not in self.suspended)

    @property
    def active(self) -> bool:
        return self.state in ACTIVE

    @property
    def learning_schedulers(self) -> list[str]:
        return [name for name in self.spec.schedulers if name in self.learners]

    @property
    def in_segments(self) -> bool:
        """Whether batches of tasks end where a segment of lockstep ends."""
        return self.spec.lockstep and bool(self.learning_schedulers)


def new_run_id() -> str:
    """Sorts by time within a year; short enough to type."""
    return datetime.now(UTC).strftime("%m%d-%H%M%S-") + secrets.token_hex(2)


def read_run_record(body: bytes, run: str) -> RunRecord:
    """Fields that a newer version added are ignored here, unlike in a spec that a user wrote."""
    try:
        record = RunRecord.model_validate_json(body, extra="ignore")
    except ValidationError as error:
        raise Unreadable(f"not a readable run record: {problem(error)}") from None
    if record.run != run:
        raise Unreadable(f"the record of another run, {record.run}")
    return record if record.message_format >= LOCKSTEP else _learning_by_wall_clock(record)


def _learning_by_wall_clock(record: RunRecord) -> RunRecord:
    """A run that an older version started has models that do not follow the tasks."""
    learning = record.spec.learning.model_copy(update={"sync": "free"})
    spec = record.spec.model_copy(update={"learning": learning})
    return record.model_copy(update={"spec": spec})
