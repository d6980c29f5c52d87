"""Stored rows as the interface shows them: results, events, models."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from services.gateway.shapes import example

ROW: dict[str, Any] = {
    "task_id": 8240,
    "scheduler_name": "greedy",
    "gpu_fraction": 0.75,
    "gpu": 0,
    "model_version": 0,
    "explored": False,
    "probability": 1.0,
    "actual_time": 0.365,
    "wait": 0.0,
    "turnaround": 0.365,
    "energy_consumption": 14.5,
    "execution_cost": 2.15e-5,
    "status": "ok",
    "size": 960.0,
    "compute_intensity": 0.75,
    "memory_required": 81.0,
    "arrival_time": 2060.2,
    "vs_oracle": 1.54,
}


class Row(BaseModel):
    """One scheduler's decision for one task, and what it cost."""

    task_id: int
    scheduler_name: str
    gpu_fraction: float
    gpu: int
    model_version: int
    explored: bool
    probability: float
    actual_time: float
    wait: float
    turnaround: float
    energy_consumption: float
    execution_cost: float
    status: str
    size: float | None
    compute_intensity: float | None
    memory_required: float | None
    arrival_time: float | None
    vs_oracle: float | None = Field(description="its time over the Oracle's for this task")


class ComparativeRow(Row):
    model_config = example(run="1116-081502-6a1f", **ROW)

    run: str


class TaskPage(BaseModel):
    model_config = example(rows=[ROW], next_before=8191)

    rows: list[Row]
    next_before: int | None = Field(description="`before` of the next page; none: the last page")


EVENT: dict[str, Any] = {
    "sequence": 41,
    "at": 1794816911.25,
    "kind": "run",
    "service": "gateway",
    "run": "1116-081502-6a1f",
    "message": "run 1116-081502-6a1f is paused",
    "data": {},
}


class StoredEvent(BaseModel):
    sequence: int
    at: float
    kind: str
    service: str
    run: str
    message: str
    data: dict[str, Any]


class EventPage(BaseModel):
    model_config = example(events=[EVENT], next_before=None)

    events: list[StoredEvent]
    next_before: int | None = Field(description="`before` of the next page; none: the last page")


class StoredModel(BaseModel):
    """A model that was made, shipped or kept back."""

    model_config = example(
        run="1116-081502-6a1f",
        name="hybrid_ml",
        version=5,
        shipped=True,
        reason="not worse: 1.0041 against 1.0043 on the newest 25 results",
        score=1.0041,
        champion_score=1.0043,
        sha256="a5f4cda80fc331f100f898b8ffeefecbf61b7d70bcbfd2dba7d53b27c37aeef5",
        format="onnx",
        trained_on=975,
        first_task=-1,
        last_task=178,
        metrics={"score": 1.0041, "champion_score": 1.0043},
        created_at="2026-11-16T06:14:16.610040Z",
    )

    run: str
    name: str
    version: int = Field(description="that it was shipped as, or would have been")
    shipped: bool
    reason: str
    score: float | None = Field(description="lower is better, 1 is the Oracle")
    champion_score: float | None
    sha256: str
    format: str
    trained_on: int
    first_task: int
    last_task: int
    metrics: dict[str, Any]
    created_at: datetime


class TrainingRow(BaseModel):
    """A task's features with the Oracle's answer."""

    model_config = example(
        run="1116-081502-6a1f",
        task_id=8240,
        size=960.0,
        compute_intensity=0.75,
        memory_required=81.0,
        optimal_gpu_fraction=1.0,
        optimal_time=0.237,
    )

    run: str
    task_id: int
    size: float
    compute_intensity: float
    memory_required: float
    optimal_gpu_fraction: float
    optimal_time: float


def vs_oracle(time: float, status: str, oracle: float | None) -> float | None:
    """A result's time over the Oracle's for the same task; none where one of them failed."""
    return time / oracle if oracle and status == "ok" else None
