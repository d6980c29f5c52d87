"""Responses that are about the arena as a whole."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from services.gateway.runs.schemas import SchedulerStanding, SuspendedScheduler
from shared.messages.events import ServiceReport
from shared.messages.runs import RunState


class Component(BaseModel):
    ok: bool
    problem: str | None = None


class RefusedClient(BaseModel):
    """A client whose user or password NATS refuses."""

    client: str = Field(description="its name: a service, and a worker's scheduler")
    user: str
    address: str
    last_at: float = Field(description="when it last tried, in seconds since 1970")


class Health(BaseModel):
    status: Literal["ok", "degraded"]
    nats: Component
    clickhouse: Component
    services: list[ServiceReport]
    missing: list[str] = Field(description="services that are needed and do not answer")
    refused: list[RefusedClient] = Field(
        default=[], description="clients that NATS has just refused: a wrong user or password"
    )


class Status(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    is_running: bool = False
    tasks_processed: int = Field(
        default=0,
        description="tasks that every scheduler but suspended ones has a stored result for",
    )
    run: str | None = None
    state: RunState | None = None
    tasks_sent: int = 0
    schedulers: dict[str, SchedulerStanding] = {}
    suspended: dict[str, SuspendedScheduler] = Field(
        default={}, description="schedulers that kept failing, and that the run goes on without"
    )
    competing: list[str] = Field(default=[], description="the schedulers that are compared")
    pretraining: list[str] = Field(
        default=[],
        description="learners whose first models the run waits for before it sends tasks",
    )
    learners: int = Field(default=0, description="schedulers of the run that learn")
    lag: dict[str, int] = Field(
        default={}, description="messages that each consumer has not processed yet"
    )
    rejected: int = Field(default=0, description="dead letters")
    rejected_by: dict[str, int] = Field(default={}, description="dead letters by service")


class Config(BaseModel):
    token_required: bool = Field(description="requests that change something need a token")
    version: str
