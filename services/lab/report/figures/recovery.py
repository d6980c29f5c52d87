"""How soon a scheduler is close to the Oracle again after the tasks have changed."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.lib.stride_tricks import sliding_window_view

from services.lab.recovery import NEAR, NEAR_OVER, NEAR_PERCENT
from services.lab.report.data import ORACLE
from services.lab.report.figures.canvas import (
    Context,
    Drawing,
    Floats,
    label_ends,
    log_axis,
    panels,
)
from services.lab.report.figures.course import Course, course_of
from services.lab.report.style import INK, MUTED


def recovery(context: Context) -> Drawing | None:
    start = context.study.experiment.judge_from
    rows = []
    for variant in context.variants[:4]:
        curves = {}
        for name in context.study.schedulers(variant):
            course = course_of(context, variant, name) if name != ORACLE else None
            curve = _ratios(course, start) if course is not None else None
            if curve is not None:
                curves[name] = curve
        if curves:
            rows.append((variant, curves))
    if not rows:
        return None
    canvas, axes = panels(2 * len(rows), 2.6, columns=2)
    for i, (variant, curves) in enumerate(rows):
        _draw_ratios(axes[2 * i], context, curves)
        _draw_recovered(axes[2 * i + 1], context, variant)
        if len(rows) > 1:
            axes[2 * i].set_title(context.study.label(variant))
    note = (
        f"Left: execution time over the Oracle's in the {NEAR_OVER} tasks or so from there on, "
        "geometric mean over seeds, counted from the first judged task; the shaded strip is within "
        f"{NEAR_PERCENT} of the Oracle. Right: judged tasks until a scheduler is within it over "
        "the tasks "
        "that follow, a point for each seed; a cross in the strip on the right is a seed in which "
        "it never was."
    )
    if len(context.study.variants) > len(rows):
        note += f" The first {len(rows)} variants that have it are drawn."
    return Drawing(canvas, "Recovery", note)


def _ratios(course: Course, start: int) -> tuple[Floats, Floats] | None:
    """Tasks since the first judged one, and the ratio over the window that begins there."""
    after = course.first >= start
    if not after.any():
        return None
    time, oracle = course.time[:, after], course.oracle[:, after]
    length = float(np.median(course.end - course.first))
    window = min(max(1, round(NEAR_OVER / max(length, 1.0))), time.shape[1])
    sums = [sliding_window_view(part, window, axis=1).sum(axis=2) for part in (time, oracle)]
    if not (sums[0] > 0).all() or not (sums[1] > 0).all():
        return None
    ratio = np.exp(np.log(sums[0] / sums[1]).mean(axis=0))
    return course.first[after][: len(ratio)] - start, ratio


def _draw_ratios(axes: Axes, context: Context, curves: dict[str, tuple[Floats, Floats]]) -> None:
    everything = np.concatenate([ratio for _, ratio in curves.values()])
    everything = everything[np.isfinite(everything) & (everything > 0)]
    top = float(everything.max()) if len(everything) else 2.0
    axes.set_ylim(0.95, max(top, 1.2) * 1.1)
    log_axis(axes, "y")
    axes.axhspan(0.95, NEAR, color=MUTED, alpha=0.15, linewidth=0)
    ends = []
    for name, (tasks, ratio) in curves.items():
        axes.plot(tasks, ratio, color=context.palette.colour(name))
        ends.append((name, float(ratio[-1]), context.palette.colour(name)))
    axes.set_xlim(0, max(1.0, *(float(tasks[-1]) for tasks, _ in curves.values())))
    label_ends(axes, ends)
    axes.set_xlabel("Judged tasks")
    axes.set_ylabel("Execution time over the Oracle's")


def _draw_recovered(axes: Axes, context: Context, variant: str) -> None:
    contest = next(c for c in context.findings.contests if c.variant == variant)
    names = contest.rivals
    known = [after for name in names for after in contest.results[name].recovered]
    most = max([10, *(after for after in known if after is not None)])
    never = most * 1.15
    for y, name in enumerate(names):
        colour = context.palette.colour(name)
        recovered = contest.results[name].recovered
        shift = np.linspace(-0.18, 0.18, len(recovered)) if len(recovered) > 1 else [0.0]
        for after, off in zip(recovered, shift, strict=True):
            place, look = (never, "x") if after is None else (after, context.palette.marker(name))
            axes.plot(place, y + off, look, color=colour, markersize=3.5)
    axes.axvspan(most * 1.07, most * 1.23, color=MUTED, alpha=0.15, linewidth=0)
    axes.annotate("never", (never, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 2),
                  textcoords="offset points", ha="center", fontsize=6.5, color=INK)  # fmt: skip
    axes.set_xlim(-0.03 * most, most * 1.23)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"Judged tasks until within {NEAR_PERCENT} of the Oracle")
