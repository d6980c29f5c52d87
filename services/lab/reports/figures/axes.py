"""Shared by all figures: panels, linear and logarithmic axes, labels that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from services.lab.reports.figures.style import INK, MUTED, WIDTH, Palette
from services.lab.reports.formatting import labelled, number
from services.lab.reports.results import Results, VariantResults
from services.lab.reports.statistics import Estimate
from services.lab.reports.study import Study

Floats = NDArray[np.float64]

# Above this ratio of largest to least value, a linear axis hides the small ones.
WIDE = 30.0
# More panels than this are unreadable; the tables show all variants.
MOST_PANELS = 12


@dataclass(frozen=True)
class Drawing:
    figure: Figure
    title: str
    caption: str  # how to read it


@dataclass(frozen=True)
class Context:
    study: Study
    results: Results
    palette: Palette

    @property
    def variants(self) -> list[str]:
        """The variants that get a panel: all, or evenly spaced ones of many."""
        known = self.study.variants
        if len(known) <= MOST_PANELS:
            return known
        steps = np.linspace(0, len(known) - 1, MOST_PANELS).round().astype(int)
        return [known[i] for i in steps]

    @property
    def shown(self) -> list[VariantResults]:
        return [each for each in self.results.variants if each.variant in self.variants]

    @property
    def left_out(self) -> str:
        hidden = len(self.study.variants) - len(self.variants)
        return f" {hidden} variants in between are not drawn." if hidden else ""

    @property
    def interval_note(self) -> str:
        n = len(self.study.seeds)
        if n == 1:
            return "One seed, so no intervals."
        return f"Whiskers: 95 % confidence interval of the mean over {n} seeds."


def panels(
    count: int, height: float, columns: int | None = None, share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """A grid of `count` axes as wide as the page."""
    across = min(count, columns or (count if count < 4 else 3 if count != 4 else 2))
    down = math.ceil(count / across)
    figure = Figure(figsize=(WIDTH, height * down), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False, sharey=share_y)
    axes = list(grid.flat)
    for spare in axes[count:]:
        figure.delaxes(spare)
    return figure, axes[:count]


def wide(values: Iterable[float]) -> bool:
    """Whether these need a logarithmic axis."""
    known = [value for value in values if math.isfinite(value)]
    return bool(known) and min(known) > 0 and max(known) / min(known) > WIDE


def log_axis(axes: Axes, which: str) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    decades = math.log10(high / low) if low > 0 else 9
    if decades < 0.75:
        axis.set_major_locator(MaxNLocator(5))
    elif decades < 2.5:
        # With so few powers of ten, more ticks get a label.
        subs = (1.0, 2.0, 5.0) if decades < 1.6 else (1.0, 3.0)
        axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axis.set_minor_formatter(NullFormatter())


def tick(value: float) -> str:
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        exponent = math.floor(math.log10(abs(value)) + 1e-9)
        mantissa = value / 10.0**exponent
        return f"{mantissa:g}e{exponent}"
    return f"{value:,.6g}" if abs(value) >= 1000 else f"{value:.4g}"


def fitting_axis(axes: Axes, which: str, values: Iterable[float]) -> None:
    (log_axis if wide(values) else plain_axis)(axes, which)


def plain_axis(axes: Axes, which: str) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))


def whiskers(estimate: Estimate) -> tuple[float, float]:
    """How far the interval reaches below and above the mean."""
    if estimate.low is None or estimate.high is None:
        return 0.0, 0.0
    return estimate.mean - estimate.low, estimate.high - estimate.mean


def rows_axis(axes: Axes, names: Sequence[str]) -> None:
    """A row for each name, the first on top."""
    axes.set_yticks(range(len(names)), [labelled(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")


def label_right(axes: Axes, x: float, y: float, text: str) -> None:
    axes.annotate(text, (x, y), xytext=(5, 0), textcoords="offset points", va="center",
                  fontsize=6.5, color=INK)  # fmt: skip


def ratio_rows(
    axes: Axes,
    palette: Palette,
    names: Sequence[str],
    points: Iterable[tuple[int, str, Estimate]],
) -> None:
    """Ratios (row, scheduler, value) with their intervals, on a logarithmic axis around 1."""
    ends = [1.0]
    for y, scheduler, value in points:
        below, above = whiskers(value)
        colour = palette.colour(scheduler)
        if above:
            axes.errorbar(value.mean, y, xerr=[[below], [above]], color=colour, capsize=2)
        axes.plot(value.mean, y, palette.marker(scheduler), color=colour, markersize=5)
        label_right(axes, value.mean + above, y, f"{number(value.mean)} ×")
        ends += [max(value.mean - below, value.mean / 2), value.mean + above]
    axes.axvline(1.0, color=MUTED, linewidth=0.8)
    least, most = min(ends), max(ends)
    axes.set_xlim(least / 1.15, most * max(most / least, 1.3) ** 0.28)
    log_axis(axes, "x")
    axes.xaxis.set_major_formatter(lambda value, _: f"{tick(value)} ×")
    rows_axis(axes, names)


def scheduler_legend(figure: Figure, palette: Palette, names: Sequence[str]) -> None:
    handles = [
        Line2D(
            [], [], color=palette.colour(name), marker=palette.marker(name), label=labelled(name)
        )
        for name in names
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(names), 5))


def mark(axes: Axes, x: float, text: str) -> None:
    """A vertical line with its name along it."""
    axes.axvline(x, color=MUTED, linewidth=0.8, linestyle=(0, (4, 2)))
    axes.annotate(
        text, (x, 1.0), xycoords=("data", "axes fraction"), xytext=(2, -2),
        textcoords="offset points", fontsize=6.5, color=INK, va="top",
    )  # fmt: skip


def label_ends(axes: Axes, ends: Sequence[tuple[str, float, str]]) -> None:
    """Names beside the right ends of lines (name, y, colour), moved apart where they overlap.

    Set limits and scale of the axes before.
    """
    low, high = axes.get_ylim()
    log = axes.get_yscale() == "log"

    def place(y: float) -> float:
        if not log:
            return (y - low) / ((high - low) or 1.0)
        return math.log(max(y, low) / low) / (math.log(high / low) or 1.0)

    size = axes.get_window_extent().height / axes.figure.dpi * 72  # points; before layout, about
    gap = 8.5 / max(size, 60.0)
    known = sorted((place(y), name, colour) for name, y, colour in ends if math.isfinite(y))
    spots = spread([spot for spot, _, _ in known], gap)
    for (_, name, colour), spot in zip(known, spots, strict=True):
        axes.annotate(
            name, (1.0, spot), xycoords="axes fraction", xytext=(3, 0),
            textcoords="offset points", fontsize=6.5, color=colour, va="center",
            annotation_clip=False,
        )  # fmt: skip


def spread(spots: Sequence[float], gap: float) -> list[float]:
    """Increasing positions, moved apart until each is `gap` from the next."""
    moved = list(spots)
    for _ in range(60):
        for i in range(len(moved) - 1):
            lack = gap - (moved[i + 1] - moved[i])
            if lack > 1e-6:
                moved[i] -= lack / 2
                moved[i + 1] += lack / 2
    lowest = min(moved, default=0.0)
    return [spot - min(lowest, 0.0) for spot in moved]
