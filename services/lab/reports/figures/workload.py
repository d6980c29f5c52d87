"""The workload: sizes, arrivals, intensity, and which device type is the fastest for a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from services.lab.reports.figures.axes import (
    Context,
    Drawing,
    log_axis,
    panels,
    plain_axis,
)
from services.lab.reports.figures.style import FAINT
from services.lab.reports.study import Columns

# Line colours of the series: the first three of Tol's bright scheme, then more of it.
_SERIES = ("#4477aa", "#ee6677", "#228833", "#aa3377", "#ccbb44", "#66ccee")
# Colour and marker of the points of a device type, in the order of the names: cpu before gpu.
_TYPES = (
    ("#d55e00", "^"), ("#0072b2", "o"), ("#009e73", "s"), ("#cc79a7", "D"), ("#e69f00", "v"),
    ("#56b4e9", "P"),
)  # fmt: skip


def workload(context: Context) -> Drawing | None:
    series = _series(context)
    if not series:
        return None
    plot, (sizes, intensity, arrivals, scatter) = panels(4, 2.15, columns=2)
    _histogram(sizes, series, "size", logarithmic=True)
    sizes.set_xlabel("Size (log scale)")
    _histogram(intensity, series, "compute_intensity", logarithmic=False)
    intensity.set_xlabel("Compute intensity")
    for panel in (sizes, intensity):
        panel.set_ylabel("Share of tasks")
    _arrivals(arrivals, context)
    _scatter(scatter, series)
    if len(series) > 1:
        sizes.legend(loc="best")
    note = (
        "From a sample of the stream, all seeds together. Arrivals: tasks per simulated second "
        "along the run (first seed, variants with other arrivals as lines of their own). Scatter: "
        "each point is a task, coloured by the device type that is expected to be fastest for it, "
        "transfer included."
    )
    if not any("judged" in name for name, _ in series) and len(series) > 1:
        note += " Variants with the same tasks are drawn once."
    return Drawing(plot, "Workload", note)


def _series(context: Context) -> list[tuple[str, Columns]]:
    """By variant, the same tasks only once; judged tasks are a series of their own."""
    series: list[tuple[str, Columns]] = []
    variants: dict[tuple[float, ...], str] = {}
    for variant in context.study.variants:
        rows = context.study.select("workload", variant)
        if len(rows["seed"]) == 0:
            continue
        mark = tuple(float(rows[c].sum()) for c in ("size", "compute_intensity", "memory_required"))
        if mark in variants:
            continue
        variants[mark] = variant
        label = context.study.label(variant) if len(context.study.variants) > 1 else ""
        judged = np.array([bool(value) for value in rows["judged"]])
        if judged.all() or not judged.any():
            series.append((label, rows))
            continue
        for mask, when in ((~judged, "before"), (judged, "judged")):
            part = {name: values[mask] for name, values in rows.items()}
            series.append((f"{label} {when}".strip(), part))
    if len(variants) == 1 and len(series) == 1:
        return [("", series[0][1])]
    return series[: len(_SERIES)]


def _histogram(
    axes: Axes, series: list[tuple[str, Columns]], column: str, logarithmic: bool
) -> None:
    values = np.concatenate([rows[column] for _, rows in series])
    values = values[np.isfinite(values) & ((values > 0) | (not logarithmic))]
    if len(values) == 0:
        return
    space: Callable[..., np.ndarray] = np.geomspace if logarithmic else np.linspace
    low, high = float(values.min()), float(values.max())
    if high <= low:
        low, high = low * 0.9, high * 1.1 + 1e-9
    bins = space(low, high, 41)
    for (label, rows), colour in zip(series, _SERIES, strict=False):
        own = rows[column][np.isfinite(rows[column])]
        weights = np.full(len(own), 1 / max(len(own), 1))
        axes.hist(own, bins=list(bins), weights=weights, histtype="stepfilled", alpha=0.3,
                  color=colour, linewidth=0)  # fmt: skip
        axes.hist(own, bins=list(bins), weights=weights, histtype="step", color=colour,
                  linewidth=1.1, label=label)  # fmt: skip
    (log_axis if logarithmic else plain_axis)(axes, "x")


def _arrivals(axes: Axes, context: Context) -> None:
    """Arrival rate over time: tasks between two points of the sample over their seconds."""
    drawn: set[tuple[float, ...]] = set()
    many = len(context.study.variants) > 1
    for variant in context.study.variants:
        seeds = context.study.seeds_of("workload", variant)
        if not seeds:
            continue
        rows = context.study.select("workload", variant, seed=seeds[0])
        order = np.argsort(rows["task_id"], kind="stable")
        ids, when = rows["task_id"][order].astype(float), rows["arrival_time"][order]
        steps = np.unique(np.linspace(0, len(ids) - 1, 41).round().astype(int))
        ids, when = ids[steps], when[steps]
        gaps = np.diff(when)
        usable = gaps > 0
        rate = np.diff(ids)[usable] / gaps[usable]
        key = tuple(np.round(rate, 9)[:5])
        if len(rate) == 0 or key in drawn or len(drawn) >= len(_SERIES):
            continue
        colour = _SERIES[len(drawn)]
        drawn.add(key)
        middle = ((ids[:-1] + ids[1:]) / 2)[usable]
        axes.plot(middle, rate, color=colour, linewidth=1, label=context.study.label(variant))
    axes.set_ylim(bottom=0)
    low, high = axes.get_ylim()
    rates = [line.get_ydata() for line in axes.get_lines()]
    means = [float(np.mean(np.asarray(rate, dtype=float))) for rate in rates]
    if means and min(means) > 0 and max(means) / min(means) > 10:
        axes.set_ylim(min(means) / 3, high)
        log_axis(axes, "y")
    else:
        axes.set_ylim(low, high * 1.05)
        plain_axis(axes, "y")
    plain_axis(axes, "x")
    axes.set_xlabel("Tasks")
    axes.set_ylabel("Arrivals per simulated second")
    if many and len(drawn) > 1:
        axes.legend(loc="best", fontsize=6)


def _scatter(axes: Axes, series: list[tuple[str, Columns]]) -> None:
    """About 1500 evenly spaced points of each device type."""
    columns = ("compute_intensity", "memory_required", "cpu_time", "gpu_time", "fastest")
    rows = {name: np.concatenate([part[name] for _, part in series]) for name in columns}
    fastest = _fastest(rows)
    counts = Counter(fastest.tolist())
    for (name, count), (colour, marker) in zip(sorted(counts.items()), _TYPES, strict=False):
        chosen = np.flatnonzero(fastest == name)[:: max(1, count // 1500)]
        label = f"{name} ({100 * count / counts.total():.0f} %)"
        axes.scatter(rows["compute_intensity"][chosen], rows["memory_required"][chosen], s=3,
                     color=colour, marker=marker, alpha=0.5, linewidths=0, label=label,
                     rasterized=True)  # fmt: skip
    memory = rows["memory_required"]
    if len(memory) and memory.min() > 0:
        axes.set_ylim(memory.min() / 1.3, memory.max() * 3)
        log_axis(axes, "y")
    axes.set_xlabel("Compute intensity")
    axes.set_ylabel("Memory (MB, log scale)")
    axes.legend(loc="upper center", ncols=min(len(counts), 3), markerscale=3, facecolor=FAINT)


def _fastest(rows: Columns) -> NDArray[Any]:
    """The fastest device type of each task; tables of versions before 0.3 do not name it."""
    kind = np.where(rows["gpu_time"] < rows["cpu_time"], "gpu", "cpu")
    named = np.array([name or other for name, other in zip(rows["fastest"], kind, strict=True)])
    common = [name for name, _ in Counter(named.tolist()).most_common(len(_TYPES) - 1)]
    return np.where(np.isin(named, common), named, "others")
