"""Responses that are about requests for advice."""

from __future__ import annotations

from pydantic import Field

from shared.messages.advice import AdviceProgress


class Advice(AdviceProgress):
    name: str = Field(description="the folder of the request, and the name of its report")
    asked_at: float
