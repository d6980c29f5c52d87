"""Bodies of the HTTP interface."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from shared.events import ServiceReport
from shared.runs import RunState
from shared.tasks import LARGEST


def _example(**fields: Any) -> ConfigDict:
    """One example for the interface's description."""
    return ConfigDict(json_schema_extra={"example": fields})


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


class Scheduler(BaseModel):
    model_config = _example(
        name="greedy", deployed=3, description="The GPU's share is the compute intensity."
    )

    name: str
    deployed: int = Field(description="workers that answer")
    description: str = Field(description="what its policy says of itself; empty when unknown")


class Preset(BaseModel):
    name: str
    description: str


class Config(BaseModel):
    token_required: bool = Field(description="calls that change something need a token")
    version: str


class Checked(BaseModel):
    ok: bool
    problems: list[str] = Field(description="a line for each field that is wrong")
    spec: dict[str, Any] | None = Field(description="with all defaults filled in, when it is ok")


class WeightsShape(BaseModel):
    time: float
    energy: float
    cost: float


class Ranked(BaseModel):
    rank: int = Field(description="1 is best; equal scores share one")
    name: str
    score: float = Field(description="1 is best in everything that counts; lower is better")
    pareto: bool = Field(description="nobody beats it in one measure without losing in another")
    avg_time: float
    avg_energy: float
    avg_cost: float


class Ranking(BaseModel):
    model_config = _example(
        run="1116-081502-6a1f",
        weights={"time": 1, "energy": 0.5, "cost": 0},
        ranking=[
            {
                "rank": 1,
                "name": "oracle",
                "score": 1.02,
                "pareto": True,
                "avg_time": 0.11,
                "avg_energy": 4.3,
                "avg_cost": 6.1e-6,
            }
        ],
    )

    run: str
    weights: WeightsShape
    ranking: list[Ranked]


class Track(BaseModel):
    """Totals of one scheduler after some of its batches; the last is the newest."""

    tasks: list[int]
    total_time: list[float]
    total_energy: list[float]
    total_cost: list[float]


class Progress(BaseModel):
    run: str
    schedulers: dict[str, Track]


class Row(BaseModel):
    """One scheduler's decision for one task, and what it cost."""

    task_id: int
    scheduler_name: str
    gpu_fraction: float
    gpu: int
    model_version: int
    explored: bool
    probability: float
    actual_time: float
    wait: float
    turnaround: float
    energy_consumption: float
    execution_cost: float
    status: str
    size: float | None
    compute_intensity: float | None
    memory_required: float | None
    arrival_time: float | None
    vs_oracle: float | None = Field(description="its time over the Oracle's for this task")


class TaskPage(BaseModel):
    rows: list[Row]
    next_before: int | None = Field(description="`before` of the next page; none: the last page")


class StoredEvent(BaseModel):
    model_config = _example(
        sequence=41,
        at=1794700000.25,
        kind="run",
        service="gateway",
        run="1116-081502-6a1f",
        message="run 1116-081502-6a1f is paused",
        data={},
    )

    sequence: int
    at: float
    kind: str
    service: str
    run: str
    message: str
    data: dict[str, Any]


class EventPage(BaseModel):
    events: list[StoredEvent]
    next_before: int | None = Field(description="`before` of the next page; none: the last page")
