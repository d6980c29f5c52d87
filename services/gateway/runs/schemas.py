"""Parameters and responses that are about runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from shared.domain.spec import RunSpec
from shared.messages.runs import RunState
from shared.messages.standing import Standing

RunQuery = Annotated[
    str | None, Query(description="a run's id; none: the newest active run", max_length=64)
]
RunPath = Annotated[str, Path(description="a run's id", examples=["1116-081502-6a1f"])]


# By field: the total that it is the mean of.
PER_TASK = {
    "avg_time": "total_time",
    "avg_wait": "total_wait",
    "avg_turnaround": "total_turnaround",
    "avg_energy": "total_energy",
    "avg_cost": "total_cost",
    "gpu_share": "gpu_tasks",
}


def per_task(standing: Standing) -> dict[str, float]:
    tasks = standing.tasks or 1
    return {name: getattr(standing, total) / tasks for name, total in PER_TASK.items()}


class SchedulerStanding(Standing):
    """A scheduler's totals and its averages per task."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    vs_oracle: float | None = Field(
        description="total execution time over the Oracle's; none while they differ in tasks"
    )

    results: int = Field(description="the same as `tasks`")
    avg_time: float = Field(description="seconds")
    avg_wait: float = Field(description="seconds")
    avg_turnaround: float = Field(description="seconds")
    avg_energy: float = Field(description="joules")
    avg_cost: float = Field(description="dollars")
    gpu_share: float = Field(description="share of the tasks that used a GPU")

    @classmethod
    def of(cls, standing: Standing, oracle: Standing | None) -> SchedulerStanding:
        return cls(
            **dict(standing),
            vs_oracle=standing.time_over(oracle),
            results=standing.tasks,
            **per_task(standing),
        )


class Run(BaseModel):
    run: str
    name: str
    state: RunState
    created_at: float
    updated_at: float
    spec: RunSpec


class RunDetail(Run):
    tasks: int = Field(description="tasks sent so far")
    bound: float | None = Field(
        description="the cluster bound, seconds: no makespan is below it; none until the run is "
        "complete, and for more than two million tasks"
    )
    schedulers: dict[str, SchedulerStanding]


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
