"""Where a scheduler stands in a run: exact totals after a batch.

The simulator adds them up once, in task order, and sends them with every batch of results. They
are the store's rollup: a redelivered batch brings the same standing again, never a second count.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from shared.batches import COUNTABLE, Envelope
from shared.errors import Unreadable

Count = Annotated[int, Field(ge=0, lt=COUNTABLE)]


class Standing(BaseModel):
    model_config = ConfigDict(extra="ignore")

    tasks: Count = 0
    failed: Count = 0
    gpu_tasks: Count = 0  # tasks of which a part ran on a GPU
    total_time: float = 0.0
    total_wait: float = 0.0
    total_turnaround: float = 0.0
    total_energy: float = 0.0
    total_cost: float = 0.0
    total_cost_cloud: float = 0.0
    total_cost_electricity: float = 0.0
    makespan: float = 0.0  # when the last task so far finishes, from the run's start
    clock: float = 0.0  # arrival of the newest task
    cpu_busy: list[float] = []  # seconds of work each CPU was given
    gpu_busy: list[float] = []

    def over(self, oracle: Standing | None) -> float | None:
        """Total execution time over the Oracle's; none while they differ in tasks."""
        if oracle is None or oracle.tasks != self.tasks or oracle.total_time <= 0:
            return None
        return self.total_time / oracle.total_time


def standing_of(envelope: Envelope) -> Standing:
    """The standing that a batch of results brings."""
    try:
        return Standing.model_validate((envelope.state or {})["standing"])
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"results without a standing: {error!r}") from None
