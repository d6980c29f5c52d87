"""One bar a scheduler: total time, makespan, cost, energy; and the speed-up over the baseline."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from services.lab.report.data import ORACLE
from services.lab.report.figures.canvas import (
    Context,
    Drawing,
    log_axis,
    panels,
    plain_axis,
    tick,
    whiskers,
    wide,
)
from services.lab.report.findings import Contest, Result
from services.lab.report.style import INK, MUTED
from services.lab.report.wording import number
from services.lab.statistics import Estimate


def total_time(context: Context) -> Drawing | None:
    return _bars(
        context, "total_time", "Total execution time",
        "Total execution time (s)",
        "Sum of the execution times of the judged tasks, waiting not included; shorter is better. "
        "The Oracle is the floor: no scheduler can be faster on any task.",
    )  # fmt: skip


def average_time(context: Context) -> Drawing | None:
    return _bars(
        context, "avg_time", "Average time", "Execution time per task (s)",
        "Mean execution time of a judged task, waiting not included; shorter is better.",
    )  # fmt: skip


def cost(context: Context) -> Drawing | None:
    return _bars(
        context, "total_cost", "Cost", "Cost of the judged tasks ($)",
        "Money for the judged tasks by the cost model of the run; shorter is cheaper.",
    )  # fmt: skip


def energy(context: Context) -> Drawing | None:
    return _bars(
        context, "total_energy", "Energy", "Energy of the judged tasks (J)",
        "Energy for the judged tasks, GPU and CPU parts together; shorter is thriftier.",
    )  # fmt: skip


def makespan(context: Context) -> Drawing | None:
    drawing = _bars(
        context, "makespan", "Makespan and the cluster bound", "Makespan (s)",
        "From the first judged arrival to the last finish; labels give it as a multiple of the "
        "cluster bound (solid line), which no schedule can beat even if tasks could be cut freely "
        "over all devices. The dotted line is the tighter bound that also knows when tasks arrive.",
        bound=True,
    )  # fmt: skip
    if drawing is not None:
        handles = [
            Line2D([], [], color=INK, linewidth=1.1, label="cluster bound"),
            Line2D([], [], color=INK, linewidth=1.1, linestyle=":", label="knowing arrivals"),
        ]
        drawing.figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return drawing


def _bars(
    context: Context, figure: str, title: str, unit: str, caption: str, bound: bool = False
) -> Drawing | None:
    order = context.study.schedulers()
    contests = [c for c in context.findings.contests if c.variant in context.variants]
    if not any(result[figure] for contest in contests for result in contest.results.values()):
        return None
    canvas, axes = panels(len(contests), 0.55 + 0.19 * len(order), share_y=True)
    for panel, contest in zip(axes, contests, strict=True):
        shown = {name: found for name in order if (found := _of(contest, name, figure))}
        labels = {
            name: _multiple(contest.results[name]) if bound else number(found.mean)
            for name, found in shown.items()
        }
        _rows(panel, context, order, shown, labels)
        panel.set_xlabel(unit)
        if len(contests) > 1:
            panel.set_title(contest.label)
        if bound:
            _draw_bounds(panel, contest)
    note = f"{caption} {context.interval_note}{context.left_out}"
    return Drawing(canvas, title, note)


def _of(contest: Contest, name: str, figure: str) -> Estimate | None:
    return contest.results[name][figure] if name in contest.results else None


def _multiple(result: Result) -> str:
    return f"{number(result.over_bound.mean)} ×" if result.over_bound else ""


def _rows(
    axes: Axes,
    context: Context,
    order: list[str],
    shown: dict[str, Estimate],
    labels: dict[str, str],
) -> None:
    """Bars from 0; points on a logarithmic axis where bars would hide the short ones."""
    logarithmic = wide(found.mean for found in shown.values())
    most = 0.0
    for name, found in shown.items():
        y, colour = order.index(name), context.palette.colour(name)
        below, above = whiskers(found)
        if logarithmic:
            below = min(below, found.mean * 0.9)
            axes.plot(found.mean, y, context.palette.marker(name), color=colour, markersize=5)
        else:
            axes.barh(y, found.mean, height=0.66, color=colour)
        if above:
            axes.errorbar(
                found.mean, y, xerr=[[below], [above]], color=INK, linewidth=0.9, capsize=2
            )
        end = found.mean + above
        most = max(most, end)
        axes.annotate(
            labels[name], (end, y), xytext=(4, 0), textcoords="offset points",
            va="center", fontsize=6.5, color=INK,
        )  # fmt: skip
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    if logarithmic:
        least = min(found.mean for found in shown.values())
        axes.set_xlim(least / 1.6, most * (most / least) ** 0.3)
        log_axis(axes, "x")
    elif most > 0:
        axes.set_xlim(0, most * 1.25)
        plain_axis(axes, "x")
        axes.locator_params(axis="x", nbins=5)


def _draw_bounds(axes: Axes, contest: Contest) -> None:
    results = list(contest.results.values())
    for figure, style in (("bound", "-"), ("arrival_bound", ":")):
        known = [found.mean for result in results if (found := result[figure])]
        if known:
            axes.axvline(sum(known) / len(known), color=INK, linewidth=1.1, linestyle=style)
            low, high = axes.get_xlim()
            if min(known) < low:
                axes.set_xlim(min(known) / 1.3, high)


def speedup(context: Context) -> Drawing | None:
    baseline = context.study.experiment.baseline
    contests = [c for c in context.findings.contests if c.variant in context.variants]
    # A baseline that took no time at all (every task failed) gives no ratio.
    contests = [
        c for c in contests if sum(result.speedup is not None for result in c.results.values()) > 1
    ]
    if not contests:
        return None
    order = context.study.schedulers()
    canvas, axes = panels(len(contests), 0.6 + 0.19 * len(order), share_y=True)
    for panel, contest in zip(axes, contests, strict=True):
        shown = {
            name: found
            for name in order
            if name in contest.results and (found := contest.results[name].speedup)
        }
        for name, found in shown.items():
            y, colour = order.index(name), context.palette.colour(name)
            below, above = whiskers(found)
            marker = context.palette.marker(name)
            size = 8 if name == ORACLE else 5
            if above:
                panel.errorbar(found.mean, y, xerr=[[below], [above]], color=colour, capsize=2)
            panel.plot(found.mean, y, marker, color=colour, markersize=size)
            panel.annotate(
                f"{number(found.mean)} ×", (found.mean + above, y), xytext=(6, 0),
                textcoords="offset points", va="center", fontsize=6.5, color=INK,
            )  # fmt: skip
        panel.axvline(1.0, color=MUTED, linewidth=0.8)
        ends = [found.mean + whiskers(found)[1] for found in shown.values()]
        least = min([1.0, *(found.mean - whiskers(found)[0] for found in shown.values())])
        least = max(least, min(found.mean for found in shown.values()) / 2)
        most = max([1.0, *ends])
        panel.set_xlim(least / 1.15, most * max(most / least, 1.3) ** 0.28)
        log_axis(panel, "x")
        panel.xaxis.set_major_formatter(lambda value, _: f"{tick(value)} ×")
        panel.set_yticks(range(len(order)), order)
        panel.set_ylim(len(order) - 0.4, -0.6)
        panel.grid(visible=False, axis="y")
        panel.set_xlabel(f"Speed-up over {baseline} (log scale)")
        if len(contests) > 1:
            panel.set_title(contest.label)
    note = (
        f"Total time of {baseline} over that of each scheduler, paired by seed (geometric mean): "
        f"right of 1 is faster than {baseline}. {context.interval_note}{context.left_out}"
    )
    return Drawing(canvas, f"Speed-up over {baseline}", note)
