"""Responses of the analysis endpoints."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from services.gateway.analysis.ranking import Weights


class Ranked(BaseModel):
    rank: int = Field(description="1 is best; equal scores share one")
    name: str
    score: float = Field(description="1 is best in everything that counts; lower is better")
    pareto: bool = Field(description="no other is better in one measure and as good in the others")
    avg_time: float
    avg_energy: float
    avg_cost: float


class Ranking(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    run: str
    weights: Weights
    ranking: list[Ranked]


class Track(BaseModel):
    """Totals of one scheduler after some of its batches, oldest first."""

    tasks: list[int]
    total_time: list[float]
    total_energy: list[float]
    total_cost: list[float]


class Progress(BaseModel):
    run: str
    schedulers: dict[str, Track]


class Device(BaseModel):
    name: str = Field(examples=["gpu_0"])
    utilization: float = Field(description="share of the whole window, 0..1")
    busy: list[float] = Field(description="share of each step, 0..1")


class Utilization(BaseModel):
    """The window ends with the arrival of the scheduler's newest task."""

    run: str
    scheduler: str
    start: float = Field(description="seconds of simulated time")
    end: float
    step: float
    average: float
    devices: list[Device]


class Window(BaseModel):
    first: int
    last: int = Field(description="one past the last task")
    tasks: int


class Histogram(BaseModel):
    edges: list[float] = Field(description="one more than counts; logarithmic")
    counts: list[int]


class Wins(BaseModel):
    names: list[str]
    matrix: list[list[float | None]] = Field(
        description="share of tasks in which the row was faster than the column; failed is slowest"
    )
    ties: list[list[float | None]]


class Correlation(BaseModel):
    names: list[str]
    matrix: list[list[float | None]] = Field(description="Pearson; none where nothing varies")


class Cell(BaseModel):
    tasks: int
    gpu_share: float = Field(description="mean share sent to a GPU")


class Heatmap(BaseModel):
    size_edges: list[float]
    intensity_edges: list[float]
    cells: list[list[Cell | None]] = Field(description="a row per intensity, a column per size")


class Point(BaseModel):
    task_id: int
    size: float
    compute_intensity: float
    memory_required: float
    gpu_fraction: float


class Split(BaseModel):
    gpu_time: float
    cpu_time: float
    gpu_tasks: int
    tasks: int


class Analysis(BaseModel):
    """Of the newest tasks that every scheduler has a result for."""

    run: str
    scheduler: str = Field(description="whose shares, times, energy and cost are analysed")
    window: Window
    sizes: Histogram
    wins: Wins
    correlation: Correlation
    heatmap: Heatmap
    scatter: list[Point]
    split: dict[str, Split]
