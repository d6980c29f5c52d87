"""Bodies of the HTTP interface."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from shared.events import ServiceReport
from shared.runs import RunState
from shared.tasks import LARGEST


def example(**fields: Any) -> ConfigDict:
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
    model_config = example(run="1116-081502-6a1f", batch=412, task_ids=[8240])

    run: str
    batch: int
    task_ids: list[int]


class Taken(BaseModel):
    model_config = example(run="1116-081502-6a1f", accepted=2000, next_task=8000, ended=False)

    run: str
    accepted: int = Field(description="tasks of this request; the others found no room")
    next_task: int = Field(description="the first task of the next request")
    ended: bool = Field(description="the run takes no more: it completes once all is stored")


RUN: dict[str, Any] = {
    "run": "1116-081502-6a1f",
    "name": "overlap on a small node",
    "state": "running",
    "created_at": 1794816902.5,
    "updated_at": 1794816902.5,
    "spec": {"seed": 42, "pace": 20.0, "schedulers": ["greedy", "oracle"]},
}
STANDING: dict[str, Any] = {
    "results": 400,
    "failed": 0,
    "gpu_tasks": 212,
    "total_time": 46.1,
    "avg_time": 0.115,
    "avg_wait": 0.02,
    "makespan": 101.7,
    "avg_energy": 4.9,
    "avg_cost": 8.1e-6,
    "total_energy": 1960.2,
    "total_cost": 0.0032,
    "clock": 99.8,
    "cpu_busy": [28.4],
    "gpu_busy": [4.6, 4.1, 4.5, 4.5],
    "vs_oracle": 1.3,
}


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
    model_config = example(**RUN)

    run: str
    name: str
    state: RunState
    created_at: float
    updated_at: float
    spec: dict[str, Any]


class RunDetail(Run):
    model_config = example(**RUN, tasks=400, bound=None, schedulers={"greedy": STANDING})

    tasks: int = Field(description="tasks sent so far")
    bound: float | None = Field(
        description="the cluster bound, seconds: no makespan is below it; none until the run is "
        "complete, and for more than two million tasks"
    )
    schedulers: dict[str, SchedulerStanding]


class Status(BaseModel):
    model_config = example(
        is_running=True,
        tasks_processed=400,
        run="1116-081502-6a1f",
        state="running",
        tasks_sent=402,
        schedulers={"greedy": STANDING},
        lag={"tasks/scheduler-greedy": 0, "results/recorder": 2},
        rejected=1,
        rejected_by={"simulator": 1},
    )

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
    rejected_by: dict[str, int] = Field(
        default={}, description="dead letters by the service that put them aside"
    )


class Part(BaseModel):
    ok: bool
    problem: str | None = None


class Health(BaseModel):
    model_config = example(
        status="degraded",
        nats={"ok": True, "problem": None},
        clickhouse={"ok": True, "problem": None},
        services=[],
        missing=["scheduler oracle"],
    )

    status: str
    nats: Part
    clickhouse: Part
    services: list[ServiceReport]
    missing: list[str] = Field(description="services that should be there and do not answer")


class Deleted(BaseModel):
    model_config = example(runs=3, left=0)

    runs: int
    left: int = Field(description="finished runs with work on its way: ask again later")


class Rollback(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"version": 3}})

    version: int = Field(ge=1, le=2**32 - 1, description="the one to go back to")


class Scheduler(BaseModel):
    model_config = example(
        name="greedy", deployed=3, description="The GPU's share is the compute intensity."
    )

    name: str
    deployed: int = Field(description="workers that answer")
    description: str = Field(description="what its policy says of itself; empty when unknown")


class Preset(BaseModel):
    model_config = example(
        name="readme",
        description="sizes 500 to 1500; intensity 0.1 to 0.9; memory 50 to 150 MB",
    )

    name: str
    description: str


class Config(BaseModel):
    model_config = example(token_required=False, version="0.1.0")

    token_required: bool = Field(description="calls that change something need a token")
    version: str


class Checked(BaseModel):
    model_config = example(
        ok=False, problems=["seed: Input should be greater than or equal to 0 (got -1)"], spec=None
    )

    ok: bool
    problems: list[str] = Field(description="a line for each field that is wrong")
    spec: dict[str, Any] | None = Field(description="with all defaults filled in, when it is ok")
