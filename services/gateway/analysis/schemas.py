"""Responses of the analysis endpoints."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from services.gateway.analysis.ranking import Weights
from services.gateway.runs.schemas import Meter, SchedulerStanding

# What decides which of two schedulers was faster with a task.
Contest = Literal["turnaround", "time"]


class Ranked(SchedulerStanding):
    """A scheduler's place, and its totals."""

    rank: int | None = Field(
        description="among competitors: 1 is best, equal scores share one; none: a reference"
    )
    name: str
    score: float = Field(description="1 is best in everything that counts; lower is better")
    pareto: bool = Field(
        description="no other competitor is better in one measure and as good in the others"
    )


class Ranking(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    run: str
    weights: Weights
    bound: float | None = Field(
        description="seconds: no makespan is below it; none until the run is complete"
    )
    ranking: list[Ranked] = Field(description="by score; the other measures do not change it")


class Track(BaseModel):
    """Totals of one scheduler after some of its tasks, oldest first."""

    tasks: list[int]
    failed: list[int]
    total_time: list[float]
    total_turnaround: list[float]
    total_energy: list[float]
    total_cost: list[float]
    turnaround_p95: list[float] = Field(
        description="of all tasks up to the end of the batch that has the last of these"
    )


class Progress(BaseModel):
    run: str
    schedulers: dict[str, Track]


class MeterUtilization(Meter):
    utilization: float = Field(description="share of the whole window, 0..1")
    busy: list[float] = Field(description="share of each step, 0..1")


class Utilization(BaseModel):
    """The window ends with the arrival of the scheduler's newest task. Its devices are the run's
    meters: a large cluster has one for all devices of a type in a node, or of a type."""

    run: str
    scheduler: str
    start: float = Field(description="seconds of simulated time")
    end: float
    step: float
    average: float = Field(description="of all devices of the cluster")
    devices: list[MeterUtilization]


class TimelineDevice(BaseModel):
    name: str
    type: str
    node: str
    parts: int = Field(description="parts of tasks that it works on in the stretch")
    busy: float = Field(description="share of the stretch that it works, 0..1")


class TimelineParts(BaseModel):
    """Lists of equal length: a part of a task on one device each, in the order of their begin."""

    row: list[int] = Field(description="position of the device in `devices`")
    task_id: list[int]
    begin: list[float] = Field(description="seconds of simulated time")
    end: list[float]
    decision: list[int] = Field(
        description="0: the whole task is on an accelerator, 1: on a CPU, 2: on both"
    )
    size: list[float | None] = Field(description="of the task; none: not stored yet")
    failed: list[bool]


class TimelineBlocks(BaseModel):
    """Instead of parts, where there are too many to draw: sums of each device and step."""

    busy: list[list[list[float]]] = Field(
        description="by decision (as in parts), device and step: the share that it works, 0..1"
    )
    size: list[list[float | None]] = Field(
        description="by device and step: mean size of the tasks that it works on; none: idle"
    )


class Timeline(BaseModel):
    """What each device of one scheduler's virtual cluster worked on, and when."""

    run: str
    scheduler: str
    start: float = Field(description="of the stretch, seconds of simulated time")
    end: float
    clock: float = Field(description="arrival of the newest task")
    makespan: float = Field(description="when the last task so far finishes")
    offset: int = Field(description="devices before the first one shown")
    matching: int = Field(description="devices of the chosen type and node")
    devices: list[TimelineDevice]
    complete: bool = Field(
        description="otherwise the stretch has so many parts that those of older tasks are left out"
    )
    parts: TimelineParts | None
    blocks: TimelineBlocks | None


class QueueTrack(BaseModel):
    """The queues of a scheduler at some moments. Unless `exact`, long ones are sampled."""

    time: list[float] = Field(description="seconds of simulated time")
    unfinished: list[float] = Field(description="tasks that have arrived and not finished")
    waiting: list[float] = Field(description="those of them that no device has started")
    exact: bool


class Queues(BaseModel):
    run: str
    schedulers: dict[str, QueueTrack]


class TypeErrors(BaseModel):
    """Lists of equal length: a value for each stretch of tasks."""

    error: list[float | None] = Field(
        description="for half of the tasks the expected and the real time differ by at most a "
        "factor of 1 + error; none: no task ran there"
    )
    tasks: list[int] = Field(description="that it was measured on")


class ErrorTrack(BaseModel):
    """How far the times that one scheduler expected were from the real ones, for tasks that ran
    completely on one device, in stretches of equally many tasks. Unless `exact`, each is measured
    on the tasks in its middle."""

    first: list[int] = Field(description="the first task of each stretch")
    last: list[int] = Field(description="one past its last task")
    types: dict[str, TypeErrors] = Field(description="by device type")
    exact: bool


class Errors(BaseModel):
    run: str
    schedulers: dict[str, ErrorTrack] = Field(description="those that expect times")


class Window(BaseModel):
    first: int
    last: int = Field(description="one past the last task")
    tasks: int


class Histogram(BaseModel):
    edges: list[float] = Field(description="one more than counts; logarithmic")
    counts: list[int]


class Wins(BaseModel):
    by: Contest
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
    gpu_share: float = Field(description="mean share sent to an accelerator")
    types: list[float] = Field(description="share of the tasks that each device type ran")


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
    type: str = Field(description="the device type that ran it")
    failed: bool


class Split(BaseModel):
    gpu_time: float = Field(description="seconds of work on accelerators")
    cpu_time: float = Field(description="seconds of work on CPUs")
    gpu_tasks: int
    tasks: int
    failed: int
    type_time: list[float] = Field(description="seconds of work on each device type")
    type_tasks: list[int] = Field(description="tasks that each device type ran")


class Analysis(BaseModel):
    """The newest tasks that every scheduler has a result for. The device type that ran a task is
    the one that worked on it longest."""

    run: str
    scheduler: str = Field(description="whose shares, times, energy and cost are analysed")
    types: list[str] = Field(description="the device types; lists by type are in this order")
    window: Window
    sizes: Histogram
    wins: Wins
    correlation: Correlation
    heatmap: Heatmap
    scatter: list[Point]
    split: dict[str, Split]


class Figures(BaseModel):
    """What a scheduler achieved on a range of tasks; means are per task."""

    tasks: int
    failed: int
    avg_turnaround: float = Field(description="seconds")
    avg_wait: float = Field(description="seconds")
    avg_time: float = Field(description="seconds of execution")
    avg_energy: float = Field(description="joules, of devices that work")
    avg_cost: float = Field(description="dollars")
    turnaround_p50: float = Field(description="exact, seconds")
    turnaround_p95: float = Field(description="exact, seconds")
    turnaround_p99: float = Field(description="exact, seconds")
    makespan: float = Field(description="when the last of these tasks finishes, simulated seconds")


class RunFigures(BaseModel):
    run: str
    first: int
    end: int = Field(description="the task after the last one of the range")
    schedulers: dict[str, Figures]


class SchedulerComparison(BaseModel):
    figures: Figures | None = Field(description="none: it takes no part in this run")
    other: Figures | None = Field(description="in the other run; none: it takes no part there")
    different: int | None = Field(
        description="tasks that finish at another time in the other run; none: it is in one run"
    )
    first_different: int | None = Field(description="the first of them; none: there is none")


class Comparison(BaseModel):
    """Two runs on the same range of tasks."""

    run: str
    other: str
    first: int
    end: int = Field(description="the task after the last one that all schedulers have done")
    schedulers: dict[str, SchedulerComparison]
