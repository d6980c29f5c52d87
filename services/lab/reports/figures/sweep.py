"""A sweep: the main figures against the setting that the variants change."""

from __future__ import annotations

from matplotlib.axes import Axes

from services.lab.reports.columns import COLUMNS
from services.lab.reports.figures.axes import (
    Context,
    Drawing,
    log_axis,
    panels,
    plain_axis,
    scheduler_legend,
    whiskers,
    wide,
)
from services.lab.reports.results import VariantResults

# After the figure that the experiment is ranked by.
_PANELS = (
    "avg_turnaround", "p99_turnaround", "avg_slowdown", "total_time", "total_energy", "gpu_share",
)  # fmt: skip


def sweep(context: Context) -> Drawing | None:
    variants = [c for c in context.results.variants if c.value is not None]
    if not context.study.is_sweep or len(variants) < 2:
        return None
    names = context.study.schedulers()
    columns = list(dict.fromkeys((context.results.ranked_by, *_PANELS)))[: len(_PANELS)]
    plot, axes = panels(len(columns), 1.95, columns=2)
    values = [each.value or 0.0 for each in variants]
    for panel, column in zip(axes, columns, strict=True):
        _lines(panel, context, variants, names, column)
        panel.set_ylabel(COLUMNS[column].header)
        panel.set_xlabel(context.study.experiment.axis or "value")
        if min(values) > 0 and max(values) / min(values) >= 16:
            log_axis(panel, "x")
            panel.set_xticks(values, [f"{value:g}" for value in values], minor=False)
            panel.minorticks_off()
        else:
            plain_axis(panel, "x")
    scheduler_legend(plot, context.palette, names)
    axis = context.study.experiment.axis or "the value"
    note = (
        f"Each figure against {axis}, a line for each scheduler; where values span more than a "
        f"factor of 30 the vertical axis is logarithmic. {context.interval_note}"
    )
    return Drawing(plot, f"Against {axis}", note)


def _lines(
    axes: Axes, context: Context, variants: list[VariantResults], names: list[str], figure: str
) -> None:
    by_name = {
        name: [
            (each.value or 0.0, estimate)
            for each in variants
            if name in each.schedulers and (estimate := each.schedulers[name][figure])
        ]
        for name in names
    }
    points = [estimate.mean for known in by_name.values() for _, estimate in known]
    # A wait of exactly 0 has no place on a logarithmic axis; it is drawn at its lower edge.
    positive = [point for point in points if point > 0]
    logarithmic = wide(positive)
    floor = max(min(positive, default=1.0), max(positive, default=1.0) * 1e-6) / 2
    for name, known in by_name.items():
        if not known:
            continue
        x = [value for value, _ in known]
        y = [max(estimate.mean, floor) if logarithmic else estimate.mean for _, estimate in known]
        spans = [whiskers(estimate) for _, estimate in known]
        below = [
            min(low, at - floor / 2) if logarithmic else low
            for (low, _), at in zip(spans, y, strict=True)
        ]
        axes.errorbar(
            x, y, yerr=[below, [high for _, high in spans]], color=context.palette.colour(name),
            marker=context.palette.marker(name), markersize=3.5, capsize=1.5,
            elinewidth=0.7, linewidth=1.1,
        )  # fmt: skip
    if logarithmic:
        axes.set_ylim(floor / 1.3, max(positive) * 2)
        log_axis(axes, "y")
    else:
        top = max([*points, 1e-12])
        axes.set_ylim(0, 1.02 if figure == "gpu_share" else top * 1.12)
        plain_axis(axes, "y")
