"""Distributions of execution time and turnaround, from their quantiles."""

from __future__ import annotations

import numpy as np

from services.lab.reports.figures.axes import (
    Context,
    Drawing,
    Floats,
    fitting_axis,
    log_axis,
    panels,
    plain_axis,
    rows_axis,
    scheduler_legend,
)
from services.lab.reports.figures.style import INK
from services.lab.reports.formatting import counted

_BOX = (0.05, 0.25, 0.5, 0.75, 0.95)


def latency(context: Context) -> Drawing | None:
    """The CDF of the turnaround."""
    curves = {v: drawn for v in context.variants if (drawn := _quantiles(context, v, "turnaround"))}
    if not curves:
        return None
    plot, axes = panels(len(curves), 2.6 if len(curves) == 1 else 2.0, share_y=True)
    for panel, (variant, drawn) in zip(axes, curves.items(), strict=True):
        for name, (levels, values) in drawn.items():
            panel.plot(values, levels, color=context.palette.colour(name))
            # Markers at two percentiles distinguish lines without colour.
            spots = np.interp([0.5, 0.95], levels, values)
            panel.plot(
                spots, [0.5, 0.95], context.palette.marker(name),
                color=context.palette.colour(name), markersize=4,
            )  # fmt: skip
        low = min(float(np.interp(0.02, *curve)) for curve in drawn.values())
        high = max(float(curve[1][-1]) for curve in drawn.values())
        if low > 0 and high / low > 20:
            panel.set_xlim(low, high * 1.1)
            log_axis(panel, "x")
        else:
            plain_axis(panel, "x")
        panel.axhline(0.95, color=INK, linewidth=0.5, linestyle=":")
        panel.set_ylim(0, 1.01)
        panel.set_xlabel("Turnaround (s)")
        if len(curves) > 1:
            panel.set_title(context.study.label(variant))
    axes[0].set_ylabel("Share of tasks done within")
    names = [name for name in context.study.schedulers() if any(name in c for c in curves.values())]
    scheduler_legend(plot, context.palette, names)
    note = (
        "The share of judged tasks whose turnaround (wait and execution) is at most x: a curve "
        "further left is better; markers stand at the median and the 95th percentile. Quantiles "
        f"are averaged over {counted(len(context.study.seeds), 'seed')}.{context.left_out}"
    )
    return Drawing(plot, "Latency", note)


def boxes(context: Context) -> Drawing | None:
    """Five quantiles of execution time and turnaround."""
    order = context.study.schedulers()
    units = {"time": "Execution time (s)", "turnaround": "Turnaround (s)"}
    rows = [
        (variant, by_figure)
        for variant in context.variants
        if any((by_figure := {f: _quantiles(context, variant, f) for f in units}).values())
    ]
    if not rows:
        return None
    # Many rows must fit a page.
    height = 0.55 + 0.19 * len(order) if len(rows) < 4 else 0.42 + 0.12 * len(order)
    plot, axes = panels(2 * len(rows), height, columns=2, share_y=True)
    for i, (variant, by_figure) in enumerate(rows):
        for panel, (figure, unit) in zip(axes[2 * i :], units.items(), strict=False):
            boxes = {n: np.interp(_BOX, *curve).tolist() for n, curve in by_figure[figure].items()}
            for name, box in boxes.items():
                panel.bxp(
                    [dict(zip(("whislo", "q1", "med", "q3", "whishi"), box, strict=True))],
                    positions=[order.index(name)], widths=0.6, orientation="horizontal",
                    showfliers=False, patch_artist=True,
                    boxprops={"facecolor": context.palette.colour(name), "edgecolor": INK},
                    medianprops={"color": INK, "linewidth": 1.2},
                    whiskerprops={"color": INK, "linewidth": 0.7},
                    capprops={"color": INK, "linewidth": 0.7},
                )  # fmt: skip
            fitting_axis(panel, "x", (value for box in boxes.values() for value in box))
            rows_axis(panel, order)
            panel.set_xlabel(unit)
        if len(rows) > 1:
            axes[2 * i].set_title(context.study.label(variant))
    note = (
        "Box: the middle half of the judged tasks with the median; whiskers: 5th to 95th "
        f"percentile. Quantiles are averaged over {counted(len(context.study.seeds), 'seed')}."
        f"{context.left_out}"
    )
    return Drawing(plot, "Execution time and turnaround of a task", note)


def _quantiles(context: Context, variant: str, figure: str) -> dict[str, tuple[Floats, Floats]]:
    """By scheduler: levels, and the mean over seeds of the value at each level."""
    curves: dict[str, tuple[Floats, Floats]] = {}
    for name in context.study.schedulers(variant):
        rows = context.study.select("quantiles", variant, scheduler=name, figure=figure)
        usable = np.isfinite(rows["value"]) & np.isfinite(rows["level"])
        levels: Floats
        levels, where = np.unique(np.round(rows["level"][usable], 9), return_inverse=True)
        if len(levels) > 1:
            sums = np.bincount(where, weights=rows["value"][usable])
            curves[name] = levels, np.maximum.accumulate(sums / np.bincount(where))
    return curves
