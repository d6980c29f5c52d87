"""How execution time and turnaround are spread over the tasks, from their quantiles."""

from __future__ import annotations

import numpy as np
from matplotlib.lines import Line2D

from services.lab.report.figures.canvas import (
    Context,
    Drawing,
    Floats,
    log_axis,
    panels,
    plain_axis,
    wide,
)
from services.lab.report.style import INK
from services.lab.report.wording import counted

_BOX = (0.05, 0.25, 0.5, 0.75, 0.95)


def latency(context: Context) -> Drawing | None:
    """The CDF of the turnaround."""
    curves = {
        variant: {
            name: found
            for name in context.study.schedulers(variant)
            if (found := _quantiles(context, variant, name, "turnaround")) is not None
        }
        for variant in context.variants
    }
    curves = {variant: found for variant, found in curves.items() if found}
    if not curves:
        return None
    canvas, axes = panels(len(curves), 2.6 if len(curves) == 1 else 2.0, share_y=True)
    for panel, (variant, drawn) in zip(axes, curves.items(), strict=True):
        for name, (levels, values) in drawn.items():
            panel.plot(values, levels, color=context.palette.colour(name))
            # A marker at the median and the 95th percentile tells lines apart without colour.
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
    handles = [
        Line2D([], [], color=context.palette.colour(n), marker=context.palette.marker(n), label=n)
        for n in names
    ]
    canvas.legend(handles=handles, loc="outside lower center", ncols=min(len(names), 5))
    note = (
        "The share of judged tasks whose turnaround (wait and execution) is at most x: a curve "
        "further left is better; markers stand at the median and the 95th percentile. Quantiles "
        f"are averaged over {counted(len(context.study.seeds), 'seed')}.{context.left_out}"
    )
    return Drawing(canvas, "Latency", note)


def boxes(context: Context) -> Drawing | None:
    """Five quantiles of execution time and turnaround."""
    order = context.study.schedulers()
    rows = [
        (variant, found)
        for variant in context.variants
        if (
            found := {figure: _boxes(context, variant, figure) for figure in ("time", "turnaround")}
        )
        and any(found.values())
    ]
    if not rows:
        return None
    # Many rows share a page, so they are lower.
    height = 0.55 + 0.19 * len(order) if len(rows) < 4 else 0.42 + 0.12 * len(order)
    canvas, axes = panels(2 * len(rows), height, columns=2, share_y=True)
    names = {"time": "Execution time (s)", "turnaround": "Turnaround (s)"}
    for i, (variant, found) in enumerate(rows):
        for j, (figure, unit) in enumerate(names.items()):
            panel = axes[2 * i + j]
            for name, box in found[figure].items():
                panel.bxp(
                    [dict(zip(("whislo", "q1", "med", "q3", "whishi"), box, strict=True))],
                    positions=[order.index(name)], widths=0.6, orientation="horizontal",
                    showfliers=False, patch_artist=True,
                    boxprops={"facecolor": context.palette.colour(name), "edgecolor": INK},
                    medianprops={"color": INK, "linewidth": 1.2},
                    whiskerprops={"color": INK, "linewidth": 0.7},
                    capprops={"color": INK, "linewidth": 0.7},
                )  # fmt: skip
            if wide(value for box in found[figure].values() for value in box):
                log_axis(panel, "x")
            else:
                plain_axis(panel, "x")
            panel.set_yticks(range(len(order)), order)
            panel.set_ylim(len(order) - 0.4, -0.6)
            panel.grid(visible=False, axis="y")
            panel.set_xlabel(unit)
            if len(rows) > 1 and j == 0:
                panel.set_title(context.study.label(variant))
    note = (
        "Box: the middle half of the judged tasks with the median; whiskers: 5th to 95th "
        f"percentile. Quantiles are averaged over {counted(len(context.study.seeds), 'seed')}."
        f"{context.left_out}"
    )
    return Drawing(canvas, "Execution time and turnaround of a task", note)


def _boxes(context: Context, variant: str, figure: str) -> dict[str, list[float]]:
    found = {}
    for name in context.study.schedulers(variant):
        curve = _quantiles(context, variant, name, figure)
        if curve is not None:
            found[name] = [float(np.interp(level, *curve)) for level in _BOX]
    return found


def _quantiles(
    context: Context, variant: str, scheduler: str, figure: str
) -> tuple[Floats, Floats] | None:
    """Levels and the mean over seeds of the value at each level."""
    rows = context.study.select("quantiles", variant, scheduler=scheduler, figure=figure)
    usable = np.isfinite(rows["value"]) & np.isfinite(rows["level"])
    levels: Floats
    levels, where = np.unique(np.round(rows["level"][usable], 9), return_inverse=True)
    if len(levels) < 2:
        return None
    sums = np.bincount(where, weights=rows["value"][usable])
    return levels, np.maximum.accumulate(sums / np.bincount(where))
