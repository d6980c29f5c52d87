"""Responses that are about reports of the lab."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Report(BaseModel):
    name: str = Field(description="the folder of the experiment")
    title: str
    written_at: float
