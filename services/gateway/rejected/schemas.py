"""Responses that are about dead letters."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class LetterRow(BaseModel):
    sequence: int = Field(description="its number among the dead letters")
    at: float = Field(description="when it was rejected")
    service: str = Field(description="the service that rejected it")
    subject: str = Field(description="its original subject; empty when unknown")
    stream: str
    origin: int = Field(description="its sequence number in that stream")
    reason: str
    size: int = Field(description="bytes of the message")
    replay_obstacle: str | None = Field(description="why it can never be replayed; none: it may")


class LetterPage(BaseModel):
    letters: list[LetterRow]
    next_before: int | None = Field(description="`before` of the next page; none: the last page")
    total: int = Field(description="all dead letters, also those that the filter leaves out")
    services: dict[str, int] = Field(description="dead letters by service")


class LetterDetail(LetterRow):
    headers: dict[str, str]
    kind: Literal["batch", "json", "text", "bytes"] = Field(description="what the body is")
    text: str = Field(description="the start of the body; bytes as a hex dump; empty for a batch")
    envelope: str = Field(description="a batch's envelope, unparsed")
    rows: list[dict[str, Any]] = Field(description="the first rows of a batch")
    count: int = Field(description="rows that the batch has")


class Replayed(BaseModel):
    sequence: int
    subject: str
    stored_as: int | None = Field(description="its new sequence number; none: nothing was sent")
    note: str


class Purged(BaseModel):
    purged: int
    complete: bool = Field(description="false: there are more, repeat the request")
