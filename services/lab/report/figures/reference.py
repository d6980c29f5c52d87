"""Our total times beside those of the reference: as measured, over the Oracle, by rank."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from services.lab.report.figures.canvas import Context, Drawing, log_axis, panels, whiskers
from services.lab.report.reference import ReferenceRow
from services.lab.report.style import INK, MUTED


def reference(context: Context) -> Drawing | None:
    if not context.findings.references:
        return None
    variant, compared = context.findings.references[0]
    rows = compared.rows
    over = [row for row in rows if row.ours_over_oracle and row.theirs_over_oracle]
    canvas, axes = panels(3 if over else 2, 0.7 + 0.24 * len(rows), columns=3)
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
    canvas.legend(handles=handles, loc="outside lower center", ncols=2)
    which = f" Shown: {context.study.label(variant)}." if len(context.study.variants) > 1 else ""
    note = (
        "Filled: ours; hollow: the reference. Seconds depend on the tasks' sizes and on the "
        "physics, so the multiples of the Oracle are what can be compared. Right: ranks, fastest "
        f"on top; lines that cross are pairs whose order differs. {context.interval_note}{which}"
    )
    return Drawing(canvas, "Beside the reference", note)


def _dots(axes: Axes, context: Context, rows: list[ReferenceRow], as_multiple: bool) -> None:
    spots = []
    for y, row in enumerate(rows):
        ours = row.ours_over_oracle if as_multiple else row.ours
        theirs = row.theirs_over_oracle if as_multiple else row.theirs
        colour = context.palette.colour(row.scheduler)
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
    axes.set_yticks(range(len(rows)), [row.scheduler for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")


def _ranks(axes: Axes, context: Context, rows: list[ReferenceRow]) -> None:
    for row in rows:
        colour = context.palette.colour(row.scheduler)
        axes.plot([0, 1], [row.their_rank, row.our_rank], marker="o", color=colour, markersize=4)
        axes.annotate(f"{row.our_rank} {row.scheduler}", (1, row.our_rank), xytext=(6, 0),
                      textcoords="offset points", va="center", fontsize=6.5, color=INK)  # fmt: skip
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
