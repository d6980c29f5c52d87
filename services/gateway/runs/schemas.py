"""Parameters and responses that are about runs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from shared.domain.spec import RunSpec
from shared.messages.runs import RunRecord, RunState
from shared.messages.standing import Standing

RunQuery = Annotated[
    str | None, Query(description="a run's id; none: the newest active run", max_length=64)
]
SchedulerPath = Annotated[str, Path(description="a scheduler's name", max_length=32)]
RunPath = Annotated[str, Path(description="a run's id", examples=["1116-081502-6a1f"])]


# By field: the total that it is the mean of.
PER_TASK = {
    "avg_time": "total_time",
    "avg_wait": "total_wait",
    "avg_turnaround": "total_turnaround",
    "avg_slowdown": "total_slowdown",
    "avg_energy": "total_energy",
    "avg_idle_energy": "idle_energy",
    "avg_cost": "total_cost",
    "gpu_share": "gpu_tasks",
    "failed_share": "failed",
}


def per_task(standing: Standing) -> dict[str, float]:
    tasks = standing.tasks or 1
    return {name: getattr(standing, total) / tasks for name, total in PER_TASK.items()}


class SchedulerStanding(Standing):
    """A scheduler's totals and its averages per task. A failed task is charged as if it had run on
    the slowest device type that can run it."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    vs_oracle: float | None = Field(
        description="total execution time over the Oracle's; none while they differ in tasks"
    )
    vs_bound: float | None = Field(
        default=None, description="makespan over the bound of the run; none while that is unknown"
    )

    results: int = Field(
        description="tasks with a result of its own; the rest is over `tasks`, which all have"
    )
    avg_time: float = Field(description="seconds")
    avg_wait: float = Field(description="seconds")
    avg_turnaround: float = Field(description="seconds")
    avg_slowdown: float = Field(
        description="mean bounded slowdown: turnaround over the time on the fastest device"
    )
    avg_energy: float = Field(description="joules, of devices that work")
    avg_idle_energy: float = Field(description="joules, of idle devices: beside avg_energy")
    avg_cost: float = Field(description="dollars")
    gpu_share: float = Field(description="share of the tasks that used an accelerator")
    failed_share: float = Field(description="share of the tasks that failed")

    @classmethod
    def of(cls, standing: Standing, oracle: Standing | None, results: int) -> SchedulerStanding:
        return cls(
            **dict(standing),
            vs_oracle=standing.time_over(oracle),
            results=results,
            **per_task(standing),
        )

    def over(self, bound: float | None) -> SchedulerStanding:
        """With the makespan compared to the run's bound."""
        return self.model_copy(update={"vs_bound": self.makespan / bound if bound else None})


class Meter(BaseModel):
    """Whose work is added up: a device, or the devices of a type in a large cluster."""

    model_config = ConfigDict(from_attributes=True)

    name: str = Field(examples=["gpu_0"])
    type: str
    node: str = Field(description="empty: of several nodes")
    devices: int


class DeviceType(BaseModel):
    """What equal devices share."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    accelerator: bool
    count: int


class SuspendedScheduler(BaseModel):
    """A scheduler that keeps failing in a run, which goes on without it."""

    reason: str
    batch: int | None = Field(description="that it failed on; none: before it decided one")
    at: float
    left_out: bool = Field(description="for good; else it can be retried while the run is active")


class RunFork(BaseModel):
    """Where a run branches off another one, whose tasks and results before it shares."""

    model_config = ConfigDict(from_attributes=True)

    run: str = Field(description="the run that it was forked from")
    at: int = Field(description="the first task of its own")
    changes: list[str] = Field(description="what is different from there on, as path=value")


class ForkRequest(BaseModel):
    """A fork of a run at a task, with something changed."""

    model_config = ConfigDict(extra="forbid")

    at: int = Field(ge=0, lt=2**62, description="the first task that the fork decides itself")
    changes: list[str] = Field(
        default=[],
        max_length=100,
        description="fields of the spec that are different from there on, as path=value",
        examples=[["cluster.gpus=5", "workload.arrival_rate=20"]],
    )
    takes_over: dict[str, str] = Field(
        default={},
        description="by scheduler that the run does not have: the one whose cluster it continues",
    )


class Run(BaseModel):
    run: str
    name: str
    state: RunState
    created_at: float
    updated_at: float
    spec: RunSpec
    lockstep: bool = Field(
        description="which model decides a task follows from the task, so that results can be "
        "repeated; the objective of such a run cannot be changed"
    )
    learning_schedulers: list[str] = Field(description="those of its schedulers that learn")
    suspended: dict[str, SuspendedScheduler] = Field(
        description="by name: schedulers that kept failing, and that the run goes on without"
    )
    tags: list[str] = Field(description="given by people, to find it again")
    notes: str = Field(description="written by people")
    fork: RunFork | None = Field(default=None, description="none: it is no fork")


class RunDetail(Run):
    tasks: int = Field(description="tasks sent so far")
    bound: float | None = Field(
        description="the arrival bound, seconds of simulated time: no makespan is below it; none "
        "until the run is complete, and for more than two million tasks"
    )
    load: float | None = Field(
        description="work that arrives over what all devices together can do, of the first 10,000 "
        "tasks; none where all arrive at once, and for submitted tasks until the run has ended"
    )
    meters: list[Meter] = Field(description="what `busy` of a scheduler has a number for each")
    types: list[DeviceType] = Field(description="the device types of the cluster")
    schedulers: dict[str, SchedulerStanding]


def suspended_schedulers(
    record: RunRecord, characters: int | None = None
) -> dict[str, SuspendedScheduler]:
    """By name; with a limit to the characters of all reasons together."""
    most = None if characters is None else characters // max(len(record.suspended), 1)
    return {
        name: SuspendedScheduler(
            reason=each.reason[:most], batch=each.batch, at=each.at, left_out=each.left_out
        )
        for name, each in record.suspended.items()
    }


Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40)]


class RunNotes(BaseModel):
    """What people write about a run."""

    tags: list[Tag] = Field(default=[], max_length=20)
    notes: str = Field(default="", max_length=4000)


class SpecCheck(BaseModel):
    ok: bool
    problems: list[str] = Field(description="a line for each invalid field")
    spec: RunSpec | None = Field(description="with all defaults filled in, when it is ok")


class Scheduler(BaseModel):
    name: str
    deployed: int = Field(description="workers that answer")
    description: str = Field(description="the first line of its policy's docstring, if it has one")


class Preset(BaseModel):
    name: str
    description: str


class Platform(BaseModel):
    name: str
    description: str
    sources: list[str] = Field(description="where the figures come from")
    assumed: list[str] = Field(description="what is neither measured nor from a source")
    spec: dict[str, Any] = Field(description="the fields of a run spec that it gives")
