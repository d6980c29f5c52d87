"""Responses that are about reports of the lab."""

from __future__ import annotations

from pydantic import BaseModel, Field

from services.gateway.reports.report_folder import Kind


class Report(BaseModel):
    name: str = Field(description="the folder of the experiment")
    title: str
    kind: Kind = "experiment"
    written_at: float
