"""A request for advice and its progress: files in a folder that the gateway and the lab share.

<reports folder>/<name>/request.json    written by the gateway
<reports folder>/<name>/progress.json   written by the lab
<reports folder>/<name>/report.html     and report.pdf, report.json: the answer
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.domain.spec_parts.learning_spec import Objective

REQUEST, PROGRESS = "request.json", "progress.json"


class AdviceRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    platform: str = Field(
        default="", description="a shipped platform's name; empty: the default node"
    )
    platform_file: str = Field(default="", description="instead: the text of a platform file")
    trace: str = Field(default="", description="the text of a trace; empty: generated jobs")
    trace_name: str = Field(default="jobs.csv", pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,79}$")
    preset: str = Field(default="", description="of generated jobs")
    objective: Objective = Objective()
    schedulers: tuple[str, ...] = Field(
        default=(), max_length=64, description="none: all that are deployed"
    )
    load: float | None = Field(default=None, gt=0, le=10)
    tasks: int = Field(default=1000, ge=20, le=20_000, description="of each run, generated")
    budget_minutes: float = Field(default=5, gt=0, le=240)


class AdviceProgress(BaseModel):
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    share: float = Field(default=0.0, description="of the budget, 0..1")
    text: str = Field(default="", description="what runs at the moment, or what went wrong")
    headline: str = Field(default="", description="the answer in a sentence")


def read_progress(folder: Path) -> AdviceProgress:
    """The progress of a request; `waiting` until somebody looks at it."""
    try:
        return AdviceProgress.model_validate_json((folder / PROGRESS).read_text())
    except (OSError, ValueError):
        return AdviceProgress()
