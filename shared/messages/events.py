"""Control messages: events, and a service's reply to a roll call."""

from __future__ import annotations

import time
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from shared.messages.formats import FORMATS, EventFormat


class Event(BaseModel):
    """Something that a user would want to read. `kind` is the last token of its subject."""

    model_config = ConfigDict(extra="ignore")

    kind: str = Field(pattern=r"^[a-z_]{1,32}$")
    message: str = Field(max_length=2000)
    service: str
    run: str = ""
    at: float = Field(default_factory=time.time)
    data: dict[str, Any] = {}
    message_format: EventFormat = FORMATS["event"]


class ServiceReport(BaseModel):
    """One process and its health."""

    model_config = ConfigDict(extra="ignore")

    service: str
    scheduler: str = ""
    instance: str
    host: str
    pid: int
    started_at: float
    http_port: int
    description: str = ""  # of a scheduler's policy
    learner: str = ""  # whose models the policy decides with
    problems: dict[str, str] = {}

    @property
    def healthy(self) -> bool:
        return not self.problems
