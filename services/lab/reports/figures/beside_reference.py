"""Our total times beside those of the reference: as measured, over the Oracle, by rank."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from services.lab.reports.figures.axes import (
    Context,
    Drawing,
    label_right,
    log_axis,
    panels,
    rows_axis,
    whiskers,
)
from services.lab.reports.figures.style import INK, MUTED
from services.lab.reports.reference import ReferenceRow


def beside_reference(context: Context) -> Drawing | None:
    compared = [each for each in context.results.variants if each.reference]
    if not compared:
        return None
    rows = compared[0].reference
    over = [row for row in rows.values() if row.ours_over_oracle and row.theirs_over_oracle]
    plot, axes = panels(3 if over else 2, 0.7 + 0.24 * len(rows), columns=3)
    _dots(axes[0], context, rows, as_multiple=False)
    axes[0].set_xlabel("Total time (s, log scale)")
    if over:
        _dots(axes[1], context, rows, as_multiple=True)
        axes[1].set_xlabel("× the Oracle (log scale)")
        axes[1].tick_params(axis="y", labelleft=False)
    _ranks(axes[-1], context, rows)
    handles = [
        Line2D([], [], color=INK, marker="o", linestyle="", label="ours"),
        Line2D([], [], color=INK, marker="o", markerfacecolor="none", linestyle="",
               label="reference"),
    ]  # fmt: skip
    plot.legend(handles=handles, loc="outside lower center", ncols=2)
    which = f" Shown: {compared[0].label}." if len(context.study.variants) > 1 else ""
    note = (
        "Filled: ours; hollow: the reference. Seconds depend on the tasks' sizes and on the "
        "physics, so compare the multiples of the Oracle. Right: ranks, fastest "
        f"on top; lines that cross are pairs whose order differs. {context.interval_note}{which}"
    )
    return Drawing(plot, "Beside the reference", note)


def _dots(axes: Axes, context: Context, rows: dict[str, ReferenceRow], as_multiple: bool) -> None:
    spots = []
    for y, (name, row) in enumerate(rows.items()):
        ours = row.ours_over_oracle if as_multiple else row.ours
        theirs = row.theirs_over_oracle if as_multiple else row.theirs
        colour = context.palette.colour(name)
        spots += [*([ours.mean] if ours else []), *([theirs] if theirs else [])]
        if ours is not None and theirs is not None:
            axes.plot([ours.mean, theirs], [y, y], color=colour, linewidth=0.8, alpha=0.6)
        if theirs is not None:
            axes.plot(theirs, y, "o", color=colour, markerfacecolor="none", markersize=5)
        if ours is not None:
            below, above = whiskers(ours)
            below = min(below, ours.mean * 0.9)
            axes.errorbar(ours.mean, y, xerr=[[below], [above]], fmt="o", color=colour,
                          markersize=5, capsize=2)  # fmt: skip
    axes.set_xlim(min(spots) / 1.4, max(spots) * 1.4)
    log_axis(axes, "x")
    rows_axis(axes, list(rows))


def _ranks(axes: Axes, context: Context, rows: dict[str, ReferenceRow]) -> None:
    for name, row in rows.items():
        colour = context.palette.colour(name)
        axes.plot([0, 1], [row.their_rank, row.our_rank], marker="o", color=colour, markersize=4)
        label_right(axes, 1, row.our_rank, f"{row.our_rank} {name}")
        axes.annotate(f"{row.their_rank}", (0, row.their_rank), xytext=(-6, 0), ha="right",
                      textcoords="offset points", va="center", fontsize=6.5, color=INK)  # fmt: skip
    axes.set_xlim(-0.25, 2.1)
    axes.set_ylim(len(rows) + 0.6, 0.4)
    axes.set_xticks([0, 1], ["reference", "ours"])
    axes.set_yticks([])
    axes.set_ylabel("Rank")
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    axes.grid(visible=False)
