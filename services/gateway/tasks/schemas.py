"""Bodies and responses that are about tasks and their results."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from services.gateway.http.problems import MANY, ONE
from services.gateway.http.row_models import model_of, row_of
from shared.domain.tasks import LARGEST
from shared.messages.columns import DECISION, RESULT, TASK, pydantic_fields

TASK_ID, *FEATURES = TASK


class SubmittedTask(BaseModel):
    """Without an arrival time the task arrives with the run's newest task."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"size": 960, "compute_intensity": 0.75, "memory_required": 81}
        },
    )

    size: float = Field(gt=0, le=LARGEST)
    compute_intensity: float = Field(ge=0, le=1)
    memory_required: float = Field(ge=0, le=LARGEST, description="MB")
    arrival_time: float | None = Field(default=None, ge=0, le=LARGEST)
    dependencies: list[int] = Field(default=[], max_length=256)


class Submission(BaseModel):
    model_config = ConfigDict(extra="forbid")

    run: str | None = Field(default=None, description="none: the newest active run")
    tasks: list[SubmittedTask] = Field(min_length=1, max_length=2000)


def _form(body: Any) -> str:
    return MANY if isinstance(body, dict) and "tasks" in body else ONE


# The form is chosen before validation, so that errors name the fields of one form only.
OneOrMany = Annotated[
    Annotated[SubmittedTask, Tag(ONE)] | Annotated[Submission, Tag(MANY)], Discriminator(_form)
]


class Accepted(BaseModel):
    run: str
    batch: int
    task_ids: list[int]


class BulkAccepted(BaseModel):
    run: str
    accepted: int = Field(description="tasks stored; send the others again")
    next_task: int = Field(description="`first` of the next request")
    ended: bool = Field(description="no more tasks are accepted; the run completes by itself")


_ResultRow: Any = row_of(
    {
        "scheduler": (str, ...),
        **pydantic_fields((TASK_ID, *DECISION, *RESULT)),
        # The recorder may have stored results whose task it has not stored yet.
        **{name: (kind | None, info) for name, (kind, info) in pydantic_fields(FEATURES).items()},
    }
)


class ResultRow(_ResultRow):  # type: ignore[misc]
    """One scheduler's decision for one task, and its result."""

    vs_oracle: float | None = Field(description="its time over the Oracle's for this task")


class TaskPage(BaseModel):
    rows: list[ResultRow]
    next_before: int | None = Field(description="`before` of the next page; none: the last page")


_Task: Any = model_of(pydantic_fields(TASK))


class Task(_Task):  # type: ignore[misc]
    """What schedulers know of a task."""


class TaskPhysics(BaseModel):
    """What the task takes when one device runs all of it."""

    cpu_seconds: float
    gpu_seconds: float = Field(description="transfer included, as if it fitted the memory")
    speedup: float = Field(description="of the computing alone")
    transfer_seconds: float
    fits_gpu_memory: bool
    best_share: float = Field(description="the Oracle's")


class ExplainedRow(ResultRow):
    explanation: str = Field(description="of its time, in one sentence")


class TaskDetail(BaseModel):
    run: str
    task: Task
    physics: TaskPhysics
    results: list[ExplainedRow]
