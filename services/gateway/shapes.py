"""Bodies of the HTTP interface."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from shared.events import ServiceReport
from shared.runs import RunState
from shared.tasks import LARGEST


class SubmittedTask(BaseModel):
    """A task of a person's own. Without an arrival time it arrives with the newest task."""

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


ONE, MANY = "one", "many"


def _form(body: Any) -> str:
    return MANY if isinstance(body, dict) and "tasks" in body else ONE


# Told apart before they are checked, so that what is wrong is said of the form that was meant.
OneOrMany = Annotated[
    Annotated[SubmittedTask, Tag(ONE)] | Annotated[Submission, Tag(MANY)], Discriminator(_form)
]


class Accepted(BaseModel):
    run: str
    batch: int
    task_ids: list[int]


class SchedulerStanding(BaseModel):
    """Where a scheduler stands, from what is stored."""

    results: int
    failed: int
    gpu_tasks: int
    total_time: float
    avg_time: float
    avg_wait: float
    makespan: float
    avg_energy: float
    avg_cost: float
    total_energy: float
    total_cost: float
    clock: float
    cpu_busy: list[float]
    gpu_busy: list[float]
    vs_oracle: float | None = Field(
        description="total execution time over the Oracle's; none while they differ in tasks"
    )


class Run(BaseModel):
    run: str
    name: str
    state: RunState
    created_at: float
    updated_at: float
    spec: dict[str, Any]


class RunDetail(Run):
    tasks: int = Field(description="tasks sent so far")
    schedulers: dict[str, SchedulerStanding]


class Status(BaseModel):
    is_running: bool
    tasks_processed: int = Field(description="tasks that every scheduler has a stored result for")
    run: str | None = None
    state: RunState | None = None
    tasks_sent: int = 0
    schedulers: dict[str, SchedulerStanding] = {}
    lag: dict[str, int] = Field(
        default={}, description="messages that each reader of the bus has still to deal with"
    )
    rejected: int = Field(default=0, description="dead letters")


class Part(BaseModel):
    ok: bool
    problem: str | None = None


class Health(BaseModel):
    status: str
    nats: Part
    clickhouse: Part
    services: list[ServiceReport]
    missing: list[str] = Field(description="services that should be there and do not answer")


class Deleted(BaseModel):
    runs: int


class Rollback(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"version": 3}})

    version: int = Field(ge=1, le=2**32 - 1, description="the one to go back to")
