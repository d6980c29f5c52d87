"""A scheduler's exact totals in a run, after a batch.

The simulator adds them up in task order and sends them with every batch of results, so a
redelivered batch brings the same totals again and nothing is counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.errors import Unreadable
from shared.messages.envelope import INT64_LIMIT, Envelope

Count = Annotated[int, Field(ge=0, lt=INT64_LIMIT)]


@dataclass(frozen=True, slots=True)
class Since:
    """The schema version of the store that added a field."""

    version: int


class Standing(BaseModel):
    model_config = ConfigDict(extra="ignore")

    tasks: Count = Field(default=0, description="tasks with a result")
    failed: Count = Field(default=0, description="tasks whose status is failed")
    gpu_tasks: Count = Field(default=0, description="tasks of which a part ran on an accelerator")
    total_time: float = Field(default=0.0, description="execution time, seconds")
    total_wait: float = Field(default=0.0, description="time in queues, seconds")
    total_turnaround: float = Field(default=0.0, description="arrival to finish, seconds")
    total_energy: float = Field(default=0.0, description="joules")
    total_cost: float = Field(default=0.0, description="dollars, by the cost model of the run")
    total_cost_cloud: float = Field(default=0.0, description="dollars, by rented device time")
    total_cost_electricity: float = Field(default=0.0, description="dollars, by energy")
    makespan: float = Field(default=0.0, description="when the last task finishes, simulated s")
    clock: float = Field(default=0.0, description="arrival of the newest task, simulated s")
    busy: Annotated[list[float], Since(2)] = Field(
        default=[], description="seconds of work given to each device (to each meter of the run)"
    )
    total_slowdown: Annotated[float, Since(2)] = Field(
        default=0.0, description="bounded slowdowns: turnaround over the time on the fastest device"
    )
    turnaround_p50: Annotated[float, Since(2)] = Field(default=0.0, description="median, seconds")
    turnaround_p95: Annotated[float, Since(2)] = Field(default=0.0, description="seconds")
    turnaround_p99: Annotated[float, Since(2)] = Field(default=0.0, description="seconds")
    idle_energy: Annotated[float, Since(2)] = Field(
        default=0.0, description="of idle devices until the last task finishes, joules"
    )

    @model_validator(mode="before")
    @classmethod
    def _first_format(cls, data: Any) -> Any:
        """Versions before 0.2 counted GPUs and CPUs apart."""
        if isinstance(data, dict) and "busy" not in data and "gpu_busy" in data:
            return {**data, "busy": [*data["gpu_busy"], *data.get("cpu_busy", [])]}
        return data

    def time_over(self, oracle: Standing | None) -> float | None:
        """Total execution time over the Oracle's; None while their numbers of tasks differ."""
        if oracle is None or oracle.tasks != self.tasks or oracle.total_time <= 0:
            return None
        return self.total_time / oracle.total_time


def standing_of(envelope: Envelope) -> Standing:
    """The scheduler's totals after this batch of results."""
    try:
        return Standing.model_validate((envelope.state or {})["standing"])
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"results without a standing: {error!r}") from None
