"""What a window of tasks shows: sizes, wins, correlations, where the GPU wins. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from services.gateway.shapes import example
from shared.tasks import Floats

SIZE_BINS = 20
HEAT_SIZES, HEAT_INTENSITIES = 10, 10
SCATTER_TASKS = 300
TIE = 1e-9  # seconds

FEATURES = ("size", "compute_intensity", "memory_required")
MEASURES = ("time", "energy", "cost", "gpu_fraction")


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
    """The newest tasks that every scheduler has a result for."""

    model_config = example(
        run="1116-081502-6a1f",
        scheduler="oracle",
        window={"first": 0, "last": 400, "tasks": 400},
        sizes={"edges": [25.0, 200.0, 1600.0], "counts": [190, 210]},
        wins={
            "names": ["greedy", "oracle"],
            "matrix": [[None, 0.0], [0.98, None]],
            "ties": [[None, 0.02], [0.02, None]],
        },
        correlation={"names": ["size", "time"], "matrix": [[1.0, 0.91], [0.91, 1.0]]},
        heatmap={
            "size_edges": [25.0, 200.0, 1600.0],
            "intensity_edges": [0.0, 1.0],
            "cells": [[{"tasks": 190, "gpu_share": 0.21}, {"tasks": 210, "gpu_share": 0.74}]],
        },
        scatter=[
            {
                "task_id": 399,
                "size": 172.1,
                "compute_intensity": 0.85,
                "memory_required": 377.0,
                "gpu_fraction": 1.0,
            }
        ],
        split={"oracle": {"gpu_time": 14.1, "cpu_time": 21.3, "gpu_tasks": 205, "tasks": 400}},
    )

    run: str
    scheduler: str = Field(description="whose shares, times, energy and cost are looked at")
    window: Window
    sizes: Histogram
    wins: Wins
    correlation: Correlation
    heatmap: Heatmap
    scatter: list[Point]
    split: dict[str, Split]


@dataclass(frozen=True, slots=True)
class Frame:
    """A window as arrays: features by task, results by scheduler and task."""

    task_id: NDArray[np.int64]
    features: dict[str, Floats]
    results: dict[str, dict[str, Floats]]


def frame(features: pa.Table, results: pa.Table) -> Frame:
    """The tasks that are stored for everybody; the recorder may be between two inserts."""
    known = features.column("task_id").to_numpy()
    names = results.column("scheduler").to_numpy(zero_copy_only=False)
    tables: dict[str, pa.Table] = {}
    for name in sorted(set(names.tolist())):
        tables[name] = results.filter(pa.array(names == name))
        known = np.intersect1d(known, tables[name].column("task_id").to_numpy())
    wanted = pa.array(known)
    chosen = features.filter(pa.compute.is_in(features.column("task_id"), wanted))
    columns = (*MEASURES, "gpu_time", "cpu_time", "failed")
    return Frame(
        task_id=known,
        features={name: _floats(chosen, name) for name in FEATURES},
        results={
            name: {
                column: _floats(
                    table.filter(pa.compute.is_in(table.column("task_id"), wanted)), column
                )
                for column in columns
            }
            for name, table in tables.items()
        },
    )


def _floats(table: pa.Table, name: str) -> Floats:
    return np.asarray(table.column(name).to_numpy(), dtype=np.float64)


def analyse(run: str, scheduler: str, names: Sequence[str], seen: Frame) -> Analysis:
    tasks = len(seen.task_id)
    first = int(seen.task_id[0]) if tasks else 0
    last = int(seen.task_id[-1]) + 1 if tasks else 0
    present = [name for name in names if name in seen.results]
    own = seen.results.get(scheduler, {column: np.zeros(0) for column in MEASURES})
    return Analysis(
        run=run,
        scheduler=scheduler,
        window=Window(first=first, last=last, tasks=tasks),
        sizes=sizes(seen.features["size"]),
        wins=wins(present, [seen.results[name] for name in present]),
        correlation=correlation({**seen.features, **{key: own[key] for key in MEASURES}}),
        heatmap=heatmap(
            seen.features["size"], seen.features["compute_intensity"], own["gpu_fraction"]
        ),
        scatter=scatter(seen, own["gpu_fraction"]),
        split={name: split(seen.results[name]) for name in present},
    )


def sizes(size: Floats) -> Histogram:
    edges = log_edges(size, SIZE_BINS)
    counts, _ = np.histogram(size, edges)
    return Histogram(edges=edges.tolist(), counts=counts.tolist())


def log_edges(values: Floats, bins: int) -> Floats:
    """Evenly spaced logarithms from the least to the greatest, which both lie inside."""
    if len(values) == 0:
        return np.geomspace(1, 10, bins + 1)
    low, high = float(values.min()), float(values.max())
    if high <= low * 1.001:
        low, high = low / 1.5, high * 1.5
    edges = np.geomspace(low, high, bins + 1)
    edges[0], edges[-1] = low, high  # geomspace may round past them
    return edges


def wins(names: Sequence[str], results: Sequence[dict[str, Floats]]) -> Wins:
    times = [np.where(row["failed"] > 0, np.inf, row["time"]) for row in results]
    count = len(times[0]) if times else 0
    matrix: list[list[float | None]] = [[None] * len(names) for _ in names]
    ties: list[list[float | None]] = [[None] * len(names) for _ in names]
    for i, row in enumerate(times):
        for j, column in enumerate(times):
            if i == j or not count:
                continue
            both_failed = np.isinf(row) & np.isinf(column)
            ahead = np.where(both_failed, 0.0, column) - np.where(both_failed, 0.0, row)
            matrix[i][j] = float((ahead > TIE).mean())
            ties[i][j] = float((np.abs(ahead) <= TIE).mean())
    return Wins(names=list(names), matrix=matrix, ties=ties)


def correlation(columns: dict[str, Floats]) -> Correlation:
    names = list(columns)
    centred = {name: values - values.mean() for name, values in columns.items() if len(values)}

    def pearson(one: str, other: str) -> float | None:
        if one not in centred or other not in centred:
            return None
        a, b = centred[one], centred[other]
        spread = float(np.sqrt((a @ a) * (b @ b)))
        scale = np.abs(columns[one]).max() * np.abs(columns[other]).max() * len(a)
        if spread <= 1e-12 * scale:  # what is left of a constant after rounding
            return None
        return float(np.clip(a @ b / spread, -1.0, 1.0))

    return Correlation(
        names=names, matrix=[[pearson(one, other) for other in names] for one in names]
    )


def heatmap(size: Floats, intensity: Floats, share: Floats) -> Heatmap:
    size_edges = log_edges(size, HEAT_SIZES)
    intensity_edges = np.linspace(0, 1, HEAT_INTENSITIES + 1)
    cells: list[list[Cell | None]] = [[None] * HEAT_SIZES for _ in range(HEAT_INTENSITIES)]
    if len(share) == len(size) > 0:
        edges: Any = [intensity_edges, size_edges]
        counts, _, _ = np.histogram2d(intensity, size, bins=edges)
        shares, _, _ = np.histogram2d(intensity, size, bins=edges, weights=share)
        for i, j in zip(*np.nonzero(counts), strict=True):
            mean = min(max(float(shares[i, j] / counts[i, j]), 0.0), 1.0)
            cells[i][j] = Cell(tasks=int(counts[i, j]), gpu_share=mean)
    return Heatmap(
        size_edges=size_edges.tolist(), intensity_edges=intensity_edges.tolist(), cells=cells
    )


def scatter(seen: Frame, share: Floats) -> list[Point]:
    newest = range(max(len(share) - SCATTER_TASKS, 0), len(share))
    return [
        Point(
            task_id=int(seen.task_id[i]),
            size=float(seen.features["size"][i]),
            compute_intensity=float(seen.features["compute_intensity"][i]),
            memory_required=float(seen.features["memory_required"][i]),
            gpu_fraction=float(share[i]),
        )
        for i in newest
    ]


def split(results: dict[str, Floats]) -> Split:
    return Split(
        gpu_time=float(results["gpu_time"].sum()),
        cpu_time=float(results["cpu_time"].sum()),
        gpu_tasks=int((results["gpu_time"] > 0).sum()),
        tasks=len(results["gpu_time"]),
    )
