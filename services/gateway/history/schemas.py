"""Responses that are about events and the history of runs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from services.gateway.http.row_models import model_of
from services.gateway.tasks.schemas import ResultRow
from shared.messages.columns import pydantic_fields
from shared.messages.events import Level, group_of, level_of
from shared.store.schema import TABLES


class ComparativeRow(ResultRow):
    run: str


_TrainingRow: Any = model_of(pydantic_fields(TABLES["training_data"].columns))


class TrainingRow(_TrainingRow):  # type: ignore[misc]
    """A task's features with the Oracle's share and time."""


class StoredEvent(BaseModel):
    sequence: int
    at: float
    kind: str
    service: str
    run: str
    message: str
    data: dict[str, Any]
    level: Level
    group: str = Field(description="the same for events that say the same again")

    @classmethod
    def of(cls, row: dict[str, Any]) -> StoredEvent:
        about = {name: row[name] for name in ("kind", "service", "run", "message")}
        return cls(**row, level=level_of(row["kind"]), group=group_of(**about))


class EventPage(BaseModel):
    events: list[StoredEvent]
    next_before: int | None = Field(description="`before` of the next page; none: the last page")


class Deleted(BaseModel):
    runs: int
    left: int = Field(description="finished runs with messages on the bus: try again later")
