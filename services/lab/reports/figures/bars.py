"""Bars by scheduler: turnaround, time, makespan, cost, energy; and the speed-up."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.axes import Axes

from services.lab.reports.columns import COLUMNS
from services.lab.reports.figures.axes import (
    Context,
    Drawing,
    label_right,
    log_axis,
    panels,
    plain_axis,
    ratio_rows,
    rows_axis,
    whiskers,
    wide,
)
from services.lab.reports.figures.style import INK
from services.lab.reports.formatting import number
from services.lab.reports.results import SchedulerResult, VariantResults
from shared.domain.schedulers import REFERENCES


def _bars(context: Context, column: str, title: str, caption: str) -> Drawing | None:
    order, variants = context.study.schedulers(), context.shown
    if not any(result[column] for each in variants for result in each.schedulers.values()):
        return None
    plot, axes = panels(len(variants), 0.55 + 0.19 * len(order), share_y=True)
    for panel, each in zip(axes, variants, strict=True):
        _rows(panel, context, order, each, column)
        panel.set_xlabel(COLUMNS[column].header)
        if len(variants) > 1:
            panel.set_title(each.label)
        if column == "makespan":
            _draw_bound(panel, each)
    if column == "makespan":
        handles, labels = axes[0].get_legend_handles_labels()
        plot.legend(handles, labels, loc="outside lower center", ncols=2)
    return Drawing(plot, title, f"{caption} {context.interval_note}{context.left_out}")


turnaround = partial(
    _bars, column="avg_turnaround", title="Mean turnaround",
    caption="From a task's arrival to its finish, waiting included; shorter is better.",
)  # fmt: skip
total_time = partial(
    _bars, column="total_time", title="Total execution time",
    caption="Sum of the execution times of the judged tasks, waiting not included; shorter is "
    "better. The Oracle is the lower bound: no scheduler can be faster on any task.",
)  # fmt: skip
average_time = partial(
    _bars, column="avg_time", title="Average time",
    caption="Mean execution time of a judged task, waiting not included; shorter is better.",
)  # fmt: skip
cost = partial(
    _bars, column="total_cost", title="Cost",
    caption="Money for the judged tasks by the cost model of the run; shorter is cheaper.",
)  # fmt: skip
energy = partial(
    _bars, column="total_energy", title="Energy",
    caption="Energy of the devices while they work on the judged tasks; shorter is better.",
)  # fmt: skip
makespan = partial(
    _bars, column="makespan", title="Makespan and the arrival bound",
    caption="From the first judged arrival to the last finish; labels give it as a multiple of the "
    "arrival bound (the line), which no schedule can beat even if tasks could be divided "
    "freely over all devices.",
)  # fmt: skip


def _rows(
    axes: Axes, context: Context, order: list[str], each: VariantResults, column: str
) -> None:
    """Bars from 0; points on a logarithmic axis where bars would hide the short ones."""
    shown = {name: value for name, result in each.schedulers.items() if (value := result[column])}
    logarithmic = wide(value.mean for value in shown.values())
    most = 0.0
    for name, value in shown.items():
        y, colour = order.index(name), context.palette.colour(name)
        below, above = whiskers(value)
        if logarithmic:
            below = min(below, value.mean * 0.9)
            axes.plot(value.mean, y, context.palette.marker(name), color=colour, markersize=5,
                      markerfacecolor="none" if name in REFERENCES else colour)  # fmt: skip
        else:
            fill = "none" if name in REFERENCES else colour
            axes.barh(y, value.mean, height=0.66, facecolor=fill, edgecolor=colour)
        if above:
            axes.errorbar(
                value.mean, y, xerr=[[below], [above]], color=INK, linewidth=0.9, capsize=2
            )
        most = max(most, value.mean + above)
        label_right(axes, value.mean + above, y, _label(each.schedulers[name], column))
    rows_axis(axes, order)
    if logarithmic:
        least = min(value.mean for value in shown.values())
        axes.set_xlim(least / 1.6, most * (most / least) ** 0.3)
        log_axis(axes, "x")
    elif most > 0:
        axes.set_xlim(0, most * 1.25)
        plain_axis(axes, "x")
        axes.locator_params(axis="x", nbins=5)


def _label(result: SchedulerResult, column: str) -> str:
    if column == "makespan":
        return f"{number(result.mean('over_bound'))} ×{result.failures}"
    return number(result.mean(column)) + result.failures


def _draw_bound(axes: Axes, each: VariantResults) -> None:
    known = [
        value.mean for result in each.schedulers.values() if (value := result["arrival_bound"])
    ]
    if known:
        axes.axvline(float(np.mean(known)), color=INK, linewidth=1.1, label="Arrival bound")
        low, high = axes.get_xlim()
        axes.set_xlim(min(known) / 1.3 if min(known) < low else low, high)


def speedup(context: Context) -> Drawing | None:
    baseline, order = context.study.experiment.baseline, context.study.schedulers()
    ratios = [
        (
            each.label,
            {n: ratio for n, result in each.schedulers.items() if (ratio := result["speedup"])},
        )
        for each in context.shown
    ]
    # A baseline that took no time at all (every task failed) gives no ratio.
    ratios = [(label, values) for label, values in ratios if len(values) > 1]
    if not ratios:
        return None
    plot, axes = panels(len(ratios), 0.6 + 0.19 * len(order), share_y=True)
    for panel, (label, values) in zip(axes, ratios, strict=True):
        points = [(order.index(name), name, value) for name, value in values.items()]
        ratio_rows(panel, context.palette, order, points)
        panel.set_xlabel(f"Speed-up over {baseline} (log scale)")
        if len(ratios) > 1:
            panel.set_title(label)
    note = (
        f"Total time of {baseline} over that of each scheduler, paired by seed (geometric mean): "
        f"right of 1 is faster than {baseline}. {context.interval_note}{context.left_out}"
    )
    return Drawing(plot, f"Speed-up over {baseline}", note)
