"""Messages of the WebSocket; `services.gateway.describe` writes their JSON schema."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    TypeAdapter,
)

from services.gateway.http.row_models import model_of
from services.gateway.runs.schemas import DeviceType, Meter, SchedulerStanding, SuspendedScheduler
from shared.domain.spec import RunSpec
from shared.messages.columns import DECISION, RESULT, pydantic_fields
from shared.messages.events import Level
from shared.messages.runs import RunState

DIGITS = 6  # significant ones: the figures are for people, and a message must stay small
HEAVIEST = 100.0


def _rounded(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")


Figure = Annotated[float | None, BeforeValidator(_rounded)]
Share = Annotated[float, AfterValidator(lambda value: round(value, 4))]


class Message(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


def _figures(fields: dict[str, Any]) -> dict[str, Any]:
    """With rounded floats."""
    return {
        name: (Figure if kind is float else kind, info) for name, (kind, info) in fields.items()
    }


# The columns of a standing that every row has, and those left out when a message is too large.
KEPT = ["tasks", "failed", "makespan", "gpu_share"]
KEPT += ["avg_time", "avg_energy", "avg_cost", "avg_wait", "avg_turnaround", "turnaround_p95"]
OMITTED = ["total_time", "total_energy", "total_cost", "avg_slowdown", "avg_idle_energy"]
OMITTED += ["turnaround_p50", "turnaround_p99", "failed_share"]


def _standing_field(name: str, **default: Any) -> Any:
    field = SchedulerStanding.model_fields[name]
    return field.annotation, Field(description=field.description, **default)


_Totals: Any = model_of(
    _figures({name: _standing_field(name) for name in KEPT})
    | _figures({name: _standing_field(name, default=None) for name in OMITTED})
)


class ComparisonRow(_Totals):  # type: ignore[misc]
    """A scheduler's totals, averages per task and place in the ranking."""

    name: str
    vs_oracle: Figure
    model_version: int
    score: Figure
    rank: int | None = Field(description="among competitors; none: a reference")
    pareto: bool


class LatestTask(Message):
    id: int
    size: Figure
    intensity: Figure
    memory: Figure


# Columns of a result that are sent.
LATEST = [
    "gpu_fraction",
    "device",
    "cpu",
    "model_version",
    "explored",
    "time",
    "energy",
    "cost",
    "status",
]
_Result: Any = model_of(
    _figures(pydantic_fields(column for column in (*DECISION, *RESULT) if column.name in LATEST)),
    Message,
)


class LatestResult(_Result):  # type: ignore[misc]
    """A scheduler's decision for the latest task, and its result."""

    device_name: str | None = Field(None, description="the accelerator that ran a part, if any")
    cpu_name: str | None = Field(None, description="the CPU that ran a part, if any")


class DeviceUtilization(Message):
    utilization: Share


class SchedulerUtilization(BaseModel):
    average_utilization: Share
    types: dict[str, Share] = Field(description="of all devices of each type")
    devices: dict[str, Share] | None = Field(None, description="left out of a large message")


class UtilizationNow(Message):
    """The mean over all schedulers, also of each meter (`cpu_0`, `gpu_0`, ...: a
    DeviceUtilization, left out of a large message); and each scheduler whose utilisation has
    changed."""

    model_config = ConfigDict(extra="allow")

    average_utilization: Share
    types: dict[str, Share] = Field(description="of all devices of each type")
    schedulers: dict[str, SchedulerUtilization]


class NotificationSummary(Message):
    type: Literal["notification"] = "notification"
    at: float
    kind: str
    service: str
    run: str = Field(description="empty: it belongs to no run")
    message: str
    level: Level
    group: str = Field(description="the same for events that say the same again")
    count: int = Field(1, description="so many of its group at once, of which this is the newest")


class Notification(NotificationSummary):
    """An event, as it happens."""

    data: dict[str, Any] = Field(description="left out if it is large")


class RunHeader(Message):
    run: str
    state: RunState
    rate: Figure = Field(description="tasks per second that all schedulers have processed lately")
    tasks_sent: int
    tasks_processed: int = Field(description="by every scheduler that is not suspended")
    suspended: dict[str, SuspendedScheduler] = Field(
        description="schedulers that kept failing, and that the run goes on without"
    )
    pretraining: list[str] = Field(
        description="learners whose first models the run waits for before it sends tasks"
    )
    learners: int = Field(description="schedulers of the run that learn")
    lag: dict[str, int] = Field(description="unprocessed messages of each consumer that has any")
    rejected: int = Field(description="dead letters")


class _Changes(RunHeader):
    type: Literal["simulation_update"] = "simulation_update"
    at: float
    sequence: int
    task: LatestTask | None = Field(description="the newest task that all schedulers have done")
    latest_results: dict[str, LatestResult] = Field(description="of that task, by scheduler")
    utilization: UtilizationNow
    comparison: list[ComparisonRow] = Field(description="best first")
    left_out: int = Field(0, description="rows at the end of the ranking that did not fit")


class Update(_Changes):
    """What has changed since the message before."""

    snapshot: Literal[False] = False


class Snapshot(_Changes):
    """The complete state: the first message, and the first after new weights."""

    snapshot: Literal[True] = True
    spec: RunSpec
    meters: list[Meter] = Field(description="the devices that `utilization` has entries of")
    types: list[DeviceType] = Field(description="the device types of the cluster")
    notifications: list[NotificationSummary] = Field(description="newest first")


class Heartbeat(Message):
    """Sent when nothing has changed for two seconds."""

    type: Literal["heartbeat"] = "heartbeat"
    at: float
    run: str
    state: RunState


class ErrorMessage(Message):
    """The last message before the gateway closes the connection."""

    type: Literal["error"] = "error"
    message: str


class WeightsMessage(BaseModel):
    """The only message of a client: the weights of its ranking. One must be above 0.
    Until it is sent, only turnaround counts."""

    model_config = ConfigDict(allow_inf_nan=False)

    type: Literal["weights"]
    turnaround: float = Field(0, ge=0, le=HEAVIEST)
    time: float = Field(0, ge=0, le=HEAVIEST)
    energy: float = Field(0, ge=0, le=HEAVIEST)
    cost: float = Field(0, ge=0, le=HEAVIEST)


class ServerMessage(
    RootModel[Snapshot | Update | Notification | NotificationSummary | Heartbeat | ErrorMessage]
):
    """Any message of the gateway."""


def json_schema() -> dict[str, Any]:
    both: TypeAdapter[Any] = TypeAdapter(ServerMessage | WeightsMessage)
    return both.json_schema(mode="serialization")
