"""Sizes, wins, correlations and GPU shares over a window of tasks. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from services.gateway.analysis.schemas import (
    Analysis,
    Cell,
    Correlation,
    Heatmap,
    Histogram,
    Point,
    Split,
    Window,
    Wins,
)
from shared.domain.tasks import Floats

SIZE_BINS = 20
HEAT_SIZES, HEAT_INTENSITIES = 10, 10
SCATTER_TASKS = 300
TIE = 1e-9  # seconds

FEATURES = ("size", "compute_intensity", "memory_required")
MEASURES = ("time", "energy", "cost", "gpu_fraction")


@dataclass(frozen=True, slots=True)
class Frame:
    """A window as arrays: features by task, results by scheduler and task."""

    task_id: NDArray[np.int64]
    features: dict[str, Floats]
    results: dict[str, dict[str, Floats]]


def frame(features: pa.Table, results: pa.Table) -> Frame:
    """Only tasks that have a result of every scheduler: the recorder may be between two inserts."""
    common = features.column("task_id").to_numpy()
    names = results.column("scheduler").to_numpy(zero_copy_only=False)
    tables: dict[str, pa.Table] = {}
    for name in sorted(set(names.tolist())):
        tables[name] = results.filter(pa.array(names == name))
        common = np.intersect1d(common, tables[name].column("task_id").to_numpy())

    def columns(table: pa.Table, *names: str) -> dict[str, Floats]:
        rows = table.filter(pa.compute.is_in(table.column("task_id"), pa.array(common)))
        return {name: floats(rows, name) for name in names}

    return Frame(
        task_id=common,
        features=columns(features, *FEATURES),
        results={
            name: columns(table, *MEASURES, "gpu_time", "cpu_time", "failed")
            for name, table in tables.items()
        },
    )


def floats(table: pa.Table, name: str) -> Floats:
    return np.asarray(table.column(name).to_numpy(), dtype=np.float64)


def analyse(run: str, scheduler: str, names: Sequence[str], window: Frame) -> Analysis:
    tasks = len(window.task_id)
    first = int(window.task_id[0]) if tasks else 0
    last = int(window.task_id[-1]) + 1 if tasks else 0
    present = [name for name in names if name in window.results]
    own = window.results.get(scheduler, {column: np.zeros(0) for column in MEASURES})
    return Analysis(
        run=run,
        scheduler=scheduler,
        window=Window(first=first, last=last, tasks=tasks),
        sizes=sizes(window.features["size"]),
        wins=wins(present, [window.results[name] for name in present]),
        correlation=correlation({**window.features, **{key: own[key] for key in MEASURES}}),
        heatmap=heatmap(
            window.features["size"], window.features["compute_intensity"], own["gpu_fraction"]
        ),
        scatter=scatter(window, own["gpu_fraction"]),
        split={name: split(window.results[name]) for name in present},
    )


def sizes(size: Floats) -> Histogram:
    edges = log_edges(size, SIZE_BINS)
    counts, _ = np.histogram(size, edges)
    return Histogram(edges=edges.tolist(), counts=counts.tolist())


def log_edges(values: Floats, bins: int) -> Floats:
    """Evenly spaced logarithms from the smallest to the largest value."""
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


def scatter(window: Frame, share: Floats) -> list[Point]:
    columns = {"task_id": window.task_id, **window.features, "gpu_fraction": share}
    newest = [column[-SCATTER_TASKS:].tolist() for column in columns.values()]
    return [Point(**dict(zip(columns, row, strict=True))) for row in zip(*newest, strict=False)]


def split(results: dict[str, Floats]) -> Split:
    return Split(
        gpu_time=float(results["gpu_time"].sum()),
        cpu_time=float(results["cpu_time"].sum()),
        gpu_tasks=int((results["gpu_time"] > 0).sum()),
        tasks=len(results["gpu_time"]),
    )
