"""A sweep: the main figures against the setting that the variants change."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from services.lab.report.figures.canvas import (
    Context,
    Drawing,
    log_axis,
    panels,
    plain_axis,
    whiskers,
    wide,
)
from services.lab.report.findings import Contest

_PANELS = {
    "total_time": "Total execution time (s)",
    "total_energy": "Energy (J)",
    "avg_wait": "Mean wait (s)",
    "p95_turnaround": "p95 turnaround (s)",
    "total_cost": "Cost ($)",
    "gpu_share": "Mean share on a GPU",
}


def sweep(context: Context) -> Drawing | None:
    contests = [c for c in context.findings.contests if c.value is not None]
    if not context.study.is_sweep or len(contests) < 2:
        return None
    names = context.study.schedulers()
    canvas, axes = panels(len(_PANELS), 1.95, columns=2)
    values = [contest.value or 0.0 for contest in contests]
    for panel, (figure, unit) in zip(axes, _PANELS.items(), strict=True):
        _lines(panel, context, contests, names, figure)
        panel.set_ylabel(unit)
        panel.set_xlabel(context.study.experiment.axis or "value")
        if min(values) > 0 and max(values) / min(values) >= 8:
            log_axis(panel, "x")
            panel.set_xticks(values, [f"{value:g}" for value in values], minor=False)
            panel.minorticks_off()
        else:
            plain_axis(panel, "x")
    handles = [
        Line2D([], [], color=context.palette.colour(n), marker=context.palette.marker(n), label=n)
        for n in names
    ]
    canvas.legend(handles=handles, loc="outside lower center", ncols=min(len(names), 5))
    axis = context.study.experiment.axis or "the value"
    note = (
        f"Each figure against {axis}, a line for each scheduler; where values span more than a "
        f"factor of 30 the vertical axis is logarithmic. {context.interval_note}"
    )
    return Drawing(canvas, f"Against {axis}", note)


def _lines(
    axes: Axes, context: Context, contests: list[Contest], names: list[str], figure: str
) -> None:
    points = []
    for name in names:
        known = [
            (contest.value or 0.0, found)
            for contest in contests
            if name in contest.results and (found := contest.results[name][figure])
        ]
        points += [found.mean for _, found in known]
    # A wait of exactly 0 has no place on a logarithmic axis; it is drawn at its lower edge.
    positive = [point for point in points if point > 0]
    logarithmic = wide(positive)
    floor = max(min(positive, default=1.0), max(positive, default=1.0) * 1e-6) / 2
    for name in names:
        known = [
            (contest.value or 0.0, found)
            for contest in contests
            if name in contest.results and (found := contest.results[name][figure])
        ]
        if not known:
            continue
        x = [value for value, _ in known]
        y = [max(found.mean, floor) if logarithmic else found.mean for _, found in known]
        spans = [whiskers(found) for _, found in known]
        below = [
            min(low, at - floor / 2) if logarithmic else low
            for (low, _), at in zip(spans, y, strict=True)
        ]
        look = context.palette
        axes.errorbar(
            x, y, yerr=[below, [high for _, high in spans]], color=look.colour(name),
            marker=look.marker(name), markersize=3.5, capsize=1.5, elinewidth=0.7, linewidth=1.1,
        )  # fmt: skip
    if logarithmic:
        axes.set_ylim(floor / 1.3, max(positive) * 2)
        log_axis(axes, "y")
    else:
        top = max([*points, 1e-12])
        axes.set_ylim(0, 1.02 if figure == "gpu_share" else top * 1.12)
        plain_axis(axes, "y")
