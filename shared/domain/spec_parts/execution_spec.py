"""What a RunSpec may say of how its tasks are executed: simulated, or for real by the executor."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from shared.domain.spec_model import Positive, SpecModel


class Execution(SpecModel):
    """`execution: real` is short for `execution: {mode: real}`. See docs/real-runs.md."""

    mode: Literal["simulated", "real"] = Field(
        default="simulated", description="on virtual clusters, or on the executor's machine"
    )
    stretch_tasks: int = Field(
        default=100, ge=1, le=100_000, description="tasks that each scheduler runs in its turn"
    )
    task_seconds: Positive = Field(
        default=30, description="longest time of a task on a device; then it is killed"
    )
    task_memory_mb: Positive = Field(
        default=1024, description="most memory of a task on a device; with more it fails"
    )

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return {"mode": data} if isinstance(data, str) else data
