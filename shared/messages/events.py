"""Control messages: events, and a service's reply to a roll call."""

from __future__ import annotations

import re
import time
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.messages.formats import FORMATS, EventFormat

MESSAGE_CHARACTERS = 2000

Level = Literal["info", "warning", "problem"]
# By kind; all others are for information.
LEVELS: dict[str, Level] = {
    "policy_failed": "problem",
    "learner_failed": "problem",
    "suspended": "problem",
    "cannot_execute": "problem",
    "rejected": "problem",
    "stuck": "problem",
    "drift": "warning",
    "model_refused": "warning",
    "left_out": "warning",
}


def level_of(kind: str) -> Level:
    return LEVELS.get(kind, "info")


def kinds_from(level: Level) -> list[str] | None:
    """The kinds of this level or a worse one; None: all."""
    if level == "info":
        return None
    return sorted(kind for kind, its in LEVELS.items() if level == "warning" or its == "problem")


_WORD, _DIGIT = re.compile(r"\S+"), re.compile(r"\d")


def group_of(kind: str, service: str, run: str, message: str) -> str:
    """The same for events that say the same again, about another batch, version or process. Models
    are told apart by their learner, and by whether they were shipped or kept back."""
    what = _WORD.sub(_without_number, message)
    if kind == "model":  # NAME version 3 shipped: REASON
        what = what.partition(":")[0]
    return f"{kind}|{service}|{run}|{what[:200]}"


def _without_number(word: re.Match[str]) -> str:
    return "#" if _DIGIT.search(word[0]) else word[0]


class Event(BaseModel):
    """Something that a user would want to read. `kind` is the last token of its subject."""

    model_config = ConfigDict(extra="ignore")

    kind: str = Field(pattern=r"^[a-z_]{1,32}$")
    message: str = Field(max_length=MESSAGE_CHARACTERS)
    service: str
    run: str = ""
    at: float = Field(default_factory=time.time)
    data: dict[str, Any] = {}
    message_format: EventFormat = FORMATS["event"]

    @property
    def group(self) -> str:
        return group_of(self.kind, self.service, self.run, self.message)


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
