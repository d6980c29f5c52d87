"""Sizes, wins, correlations and device types over a window of tasks. Pure numpy."""

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
    Contest,
    Correlation,
    Heatmap,
    Histogram,
    Point,
    Split,
    Window,
    Wins,
)
from services.gateway.tasks.device_names import cpus_of
from shared.domain.hardware.platform import NOWHERE, Platform
from shared.domain.tasks import Floats, Integers

SIZE_BINS = 20
HEAT_SIZES, HEAT_INTENSITIES = 10, 10
SCATTER_TASKS = 300
TIE = 1e-9  # seconds

FEATURES = ("size", "compute_intensity", "memory_required")
MEASURES = ("time", "energy", "cost", "gpu_fraction")
RESULT_COLUMNS = (*MEASURES, "turnaround", "device", "cpu", "gpu_time", "cpu_time", "failed")


@dataclass(frozen=True, slots=True)
class Frame:
    """A window as arrays: features by task, results by scheduler and task."""

    task_id: NDArray[np.int64]
    features: dict[str, Floats]
    width: Floats
    results: dict[str, dict[str, Floats]]


def frame(features: pa.Table, results: pa.Table) -> Frame:
    """The tasks that have a result of every scheduler: the recorder may be between two inserts."""
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
        width=columns(features, "width")["width"],
        results={name: columns(table, *RESULT_COLUMNS) for name, table in tables.items()},
    )


def floats(table: pa.Table, name: str) -> Floats:
    return np.asarray(table.column(name).to_numpy(), dtype=np.float64)


def analyse(
    run: str,
    scheduler: str,
    names: Sequence[str],
    window: Frame,
    platform: Platform,
    wins_by: Contest = "turnaround",
) -> Analysis:
    tasks = len(window.task_id)
    first = int(window.task_id[0]) if tasks else 0
    last = int(window.task_id[-1]) + 1 if tasks else 0
    present = [name for name in names if name in window.results]
    own = window.results.get(scheduler, dict.fromkeys(RESULT_COLUMNS, np.zeros(0)))
    types = [each.name for each in platform.types]
    work = {name: work_of(window.results[name], window, platform) for name in present}
    ran_on = work[scheduler].ran_on if scheduler in work else np.zeros(0, np.int64)
    return Analysis(
        run=run,
        scheduler=scheduler,
        types=types,
        window=Window(first=first, last=last, tasks=tasks),
        sizes=sizes(window.features["size"]),
        wins=wins(present, [window.results[name] for name in present], wins_by),
        correlation=correlation({**window.features, **{key: own[key] for key in MEASURES}}),
        heatmap=heatmap(
            window.features["size"],
            window.features["compute_intensity"],
            own["gpu_fraction"],
            ran_on,
            len(types),
        ),
        scatter=scatter(window, own, [types[number] for number in ran_on]),
        split={name: split(window.results[name], work[name], len(types)) for name in present},
    )


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one scheduler by task: device seconds and device types of both parts."""

    gpu_time: Floats
    cpu_time: Floats
    gpu_type: Integers
    cpu_type: Integers

    @property
    def ran_on(self) -> Integers:
        """The device type that worked on each task longest."""
        return np.where(self.gpu_time > self.cpu_time, self.gpu_type, self.cpu_type)


def work_of(results: dict[str, Floats], window: Frame, platform: Platform) -> Work:
    device, cpu = results["device"].astype(np.int64), results["cpu"].astype(np.int64)
    cpu = cpus_of(cpu, window.task_id, platform)
    # A cluster without CPUs, or without accelerators, has only one of the two.
    device, cpu = np.where(device == NOWHERE, cpu, device), np.where(cpu == NOWHERE, device, cpu)
    return Work(
        results["gpu_time"] * window.width,
        results["cpu_time"] * window.width,
        platform.type_of[device],
        platform.type_of[cpu],
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


def wins(names: Sequence[str], results: Sequence[dict[str, Floats]], by: Contest) -> Wins:
    times = [np.where(row["failed"] > 0, np.inf, row[by]) for row in results]
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
    return Wins(by=by, names=list(names), matrix=matrix, ties=ties)


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


def heatmap(
    size: Floats, intensity: Floats, share: Floats, ran_on: Integers, types: int
) -> Heatmap:
    size_edges = log_edges(size, HEAT_SIZES)
    intensity_edges = np.linspace(0, 1, HEAT_INTENSITIES + 1)
    cells: list[list[Cell | None]] = [[None] * HEAT_SIZES for _ in range(HEAT_INTENSITIES)]
    if len(share) == len(size) > 0:
        edges: Any = [intensity_edges, size_edges]
        counts, _, _ = np.histogram2d(intensity, size, bins=edges)
        shares, _, _ = np.histogram2d(intensity, size, bins=edges, weights=share)
        by_type = np.stack(
            [
                np.histogram2d(intensity, size, bins=edges, weights=ran_on == number)[0]
                for number in range(types)
            ],
            axis=2,
        )
        for i, j in zip(*np.nonzero(counts), strict=True):
            tasks = int(counts[i, j])
            mean = min(max(float(shares[i, j] / tasks), 0.0), 1.0)
            cells[i][j] = Cell(
                tasks=tasks, gpu_share=mean, types=(by_type[i, j] / tasks).round(4).tolist()
            )
    return Heatmap(
        size_edges=size_edges.tolist(), intensity_edges=intensity_edges.tolist(), cells=cells
    )


def scatter(window: Frame, own: dict[str, Floats], types: Sequence[str]) -> list[Point]:
    columns: dict[str, Sequence[Any]] = {
        "task_id": window.task_id.tolist(),
        **{name: values.tolist() for name, values in window.features.items()},
        "gpu_fraction": own["gpu_fraction"].tolist(),
        "type": types,
        "failed": (own["failed"] > 0).tolist(),
    }
    newest = [column[-SCATTER_TASKS:] for column in columns.values()]
    return [Point(**dict(zip(columns, row, strict=True))) for row in zip(*newest, strict=False)]


def split(results: dict[str, Floats], work: Work, types: int) -> Split:
    by_type = np.bincount(work.gpu_type, work.gpu_time, types)
    by_type += np.bincount(work.cpu_type, work.cpu_time, types)
    return Split(
        gpu_time=float(work.gpu_time.sum()),
        cpu_time=float(work.cpu_time.sum()),
        gpu_tasks=int((work.gpu_time > 0).sum()),
        tasks=len(work.gpu_time),
        failed=int((results["failed"] > 0).sum()),
        type_time=by_type.tolist(),
        type_tasks=np.bincount(work.ran_on, minlength=types).tolist(),
    )
