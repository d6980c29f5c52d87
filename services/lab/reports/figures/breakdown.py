"""Up to which value of a sweep, such as the load, each scheduler keeps up."""

from __future__ import annotations

from services.lab.reports.figures.axes import (
    Context,
    Drawing,
    panels,
    plain_axis,
    rows_axis,
)
from services.lab.reports.results import MOST_MAKESPAN, MOST_TURNAROUND


def breakdown(context: Context) -> Drawing | None:
    at = context.results.breakdown
    if not at:
        return None
    names, colour = list(at), context.palette.colour
    plot, (panel,) = panels(1, 0.55 + 0.19 * len(names))
    for y, (name, broken) in enumerate(at.items()):
        kept_up = [
            each.value or 0.0
            for each in context.results.variants
            if name in each.schedulers and (broken is None or (each.value or 0.0) < broken)
        ]
        panel.plot([0.0, *kept_up], [y] * (1 + len(kept_up)), color=colour(name))
        panel.plot(kept_up, [y] * len(kept_up), "o", color=colour(name))
        if broken is not None:
            panel.plot([broken], [y], "x", color=colour(name), markersize=6)
    rows_axis(panel, names)
    panel.set_xlim(left=0)
    plain_axis(panel, "x")
    axis = context.study.experiment.axis or "value"
    panel.set_xlabel(axis[:1].upper() + axis[1:])
    least = context.results.variants[0].value
    note = (
        "Points: where a scheduler keeps up. Cross: where it breaks down, which is the least "
        f"{axis} at which its mean turnaround is more than {MOST_TURNAROUND:g} times that at "
        f"{least:g}, or its makespan more than {MOST_MAKESPAN:g} times the arrival bound, so that "
        "work is left over when arrivals end (means over seeds)."
    )
    return Drawing(plot, "Where each scheduler breaks down", note)
