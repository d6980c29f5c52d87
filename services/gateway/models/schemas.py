"""Bodies and responses that are about models."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field


class StoredModel(BaseModel):
    """A model that was trained, whether it was published or rejected."""

    run: str
    name: str
    version: int = Field(description="that it was published as, or would have been")
    shipped: bool
    reason: str
    score: float | None = Field(description="lower is better, 1 is the Oracle")
    champion_score: float | None
    sha256: str
    format: str
    trained_on: int
    first_task: int
    last_task: int
    metrics: dict[str, float]
    created_at: datetime


class RollbackRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"version": 3}})

    version: int = Field(ge=1, le=2**32 - 1, description="the version to go back to")
