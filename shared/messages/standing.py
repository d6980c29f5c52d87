"""A scheduler's exact totals in a run, after a batch.

The simulator adds them up in task order and sends them with every batch of results, so a
redelivered batch brings the same totals again and nothing is counted twice.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from shared.errors import Unreadable
from shared.messages.envelope import INT64_LIMIT, Envelope

Count = Annotated[int, Field(ge=0, lt=INT64_LIMIT)]


class Standing(BaseModel):
    model_config = ConfigDict(extra="ignore")

    tasks: Count = Field(default=0, description="tasks with a result")
    failed: Count = Field(default=0, description="tasks whose status is failed")
    gpu_tasks: Count = Field(default=0, description="tasks of which a part ran on a GPU")
    total_time: float = Field(default=0.0, description="execution time, seconds")
    total_wait: float = Field(default=0.0, description="time in queues, seconds")
    total_turnaround: float = Field(default=0.0, description="arrival to finish, seconds")
    total_energy: float = Field(default=0.0, description="joules")
    total_cost: float = Field(default=0.0, description="dollars, by the cost model of the run")
    total_cost_cloud: float = Field(default=0.0, description="dollars, by rented device time")
    total_cost_electricity: float = Field(default=0.0, description="dollars, by energy")
    makespan: float = Field(default=0.0, description="when the last task finishes, simulated s")
    clock: float = Field(default=0.0, description="arrival of the newest task, simulated s")
    cpu_busy: list[float] = Field(default=[], description="seconds of work given to each CPU")
    gpu_busy: list[float] = Field(default=[], description="seconds of work given to each GPU")

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
