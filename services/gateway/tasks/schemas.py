"""Bodies and responses that are about tasks and their results."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from services.gateway.http.problems import MANY, ONE
from services.gateway.http.row_models import model_of, row_of
from services.gateway.models.schemas import StoredModel
from shared.domain.hardware.cluster_spec import MOST_DEVICES
from shared.domain.hardware.measured_times import LONGEST_KIND
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
    kind: str = Field(
        default="", max_length=LONGEST_KIND, description="a row of the run's measured table"
    )
    divisible: bool = Field(
        default=True, description="whether it may be split between an accelerator and a CPU"
    )
    width: int = Field(
        default=1, ge=1, le=MOST_DEVICES, description="devices of one type that it takes at once"
    )
    home: int = Field(
        default=-1, ge=-1, le=MOST_DEVICES, description="node that its data is on; -1: all nodes"
    )
    last_child: int = Field(
        default=-1,
        ge=-1,
        le=2**62,
        description="id of the last task that may depend on it; -1: as far as the run allows",
    )


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
    """One scheduler's decision for one task, and its result. A failed task is charged as if it had
    run on the slowest device type that can run it."""

    device_name: str | None = Field(description="the accelerator that ran a part, if any")
    cpu_name: str | None = Field(description="the CPU that ran a part, if any")
    vs_oracle: float | None = Field(description="its time over the Oracle's for this task")


class TaskPage(BaseModel):
    rows: list[ResultRow]
    next_before: int | None = Field(description="`before` of the next page; none: the last page")
    next_offset: int | None = Field(
        default=None, description="`offset` of the next page of a sorted list; none: the last page"
    )


_Task: Any = model_of(pydantic_fields(TASK))


class Task(_Task):  # type: ignore[misc]
    """What schedulers know of a task."""


class TypeTime(BaseModel):
    """What the task takes when devices of one type run all of it, at the node of its data."""

    type: str
    accelerator: bool
    devices: int = Field(description="of that type in the cluster")
    expected_seconds: float | None = Field(
        description="transfer included, as if it fitted the memory; none: this type cannot run it"
    )
    real_seconds: float | None = Field(
        description="with the noise that no scheduler knows; the same as expected without noise"
    )
    transfer_seconds: float = Field(description="to the device; the time includes it")
    fits_memory: bool
    speedup: float | None = Field(
        description="of the expected computing alone, over the fastest CPU type; over the slowest "
        "type where no CPU can run it"
    )
    measured: bool | None = Field(
        description="whether the size is within the measured ones; none: the time is a formula's"
    )


class TaskPhysics(BaseModel):
    """What the task takes on every device type, and the best that it could take."""

    types: list[TypeTime]
    best_share: float = Field(description="the Oracle's")
    best_device: str | None = Field(description="the Oracle's accelerator, if it uses one")
    best_cpu: str | None = Field(description="the Oracle's CPU, if it uses one")
    best_seconds: float | None = Field(description="the Oracle's; none: no device can run the task")
    cpu_seconds: float | None = Field(description="expected on the fastest CPU type")
    gpu_seconds: float | None = Field(description="expected on the fastest accelerator type")
    speedup: float | None = Field(description="of that accelerator type")
    transfer_seconds: float = Field(description="to that accelerator type")
    fits_gpu_memory: bool = Field(description="that of that accelerator type")


class ExplainedRow(ResultRow):
    explanation: str = Field(description="of its time, in one sentence")


class TaskDetail(BaseModel):
    run: str
    task: Task
    physics: TaskPhysics
    results: list[ExplainedRow]


class QueuedWork(BaseModel):
    """What earlier tasks had left a device to do when a task arrived."""

    seconds: float = Field(description="of work that was not done")
    tasks: int = Field(description="tasks that were not done")
    waiting: int = Field(description="those of them that it had not started")


class DeviceQueue(QueuedWork):
    device: str
    type: str
    chosen: bool = Field(description="whether the scheduler gave it a part of this task")


class TypeQueue(QueuedWork):
    """The work queued on all devices of a type."""

    type: str
    devices: int
    shortest: float = Field(description="seconds of the device with the least work")
    longest: float = Field(description="seconds of the device with the most work")


class ArrivalQueue(BaseModel):
    """What one scheduler's cluster had to do when the task arrived, and when the task began."""

    scheduler: str
    started: float = Field(description="when its first part began, seconds of simulated time")
    finish: float
    devices: list[DeviceQueue] = Field(
        description="all; of more than 16 the chosen ones, and of each type the one with least work"
    )
    types: list[TypeQueue]
    complete: bool = Field(description="otherwise there was more work, of older tasks")


class ArrivalQueues(BaseModel):
    run: str
    task_id: int
    arrival_time: float
    queues: list[ArrivalQueue]


class ComparedDevice(BaseModel):
    """What a scheduler knew of one device when it placed a task."""

    device: str
    type: str
    chosen: bool = Field(description="whether it runs this task, or a part of it")
    queued: float = Field(description="seconds of work that earlier tasks had left it to do")
    predicted: float | None = Field(
        description="the scheduler's own seconds of the whole task there; none: it predicts none, "
        "or this type cannot run it"
    )
    expected: float | None = Field(
        description="the platform's seconds of the whole task there; none: it cannot run it"
    )
    score: float | None = Field(
        description="what the scheduler compared, lower is better; none: it cannot run the task"
    )


class Choice(BaseModel):
    """Why one scheduler chose the devices of a task."""

    scheduler: str
    model_version: int = Field(description="of the model that decided; 0: no model")
    explored: bool = Field(description="chosen to learn from it, not for its score")
    probability: float = Field(description="with which this choice was made")
    overruled: bool = Field(
        description="neither explored nor the best score: a rule of the scheduler, such as the "
        "guard of `attention_agent`, decided"
    )
    compared: int = Field(description="devices that have a score")
    devices: list[ComparedDevice] = Field(
        description="the ten with the best scores and the chosen ones, by score"
    )
    queues_complete: bool = Field(description="otherwise more was queued, of older tasks")
    model: StoredModel | None = Field(
        description="the model that decided, with its figures; none: no model, or not stored yet"
    )


class Choices(BaseModel):
    run: str
    task_id: int
    choices: list[Choice] = Field(description="of the schedulers that say what they compared")
