"""Figures over the tasks of a run: regret, shipped models, recovery after a workload shift."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.lib.stride_tricks import sliding_window_view
from scipy import stats

from services.lab.experiments.tables import RECOVERY_RATIO, RECOVERY_WINDOW
from services.lab.reports.figures.axes import (
    Context,
    Drawing,
    Floats,
    label_ends,
    log_axis,
    mark,
    panels,
    plain_axis,
    rows_axis,
    wide,
)
from services.lab.reports.figures.style import INK, MUTED
from services.lab.reports.formatting import NEAR_ORACLE
from services.lab.reports.statistics import CONFIDENCE
from shared.domain.schedulers import ORACLE


@dataclass(frozen=True)
class Course:
    """One scheduler over the tasks: rows are seeds, columns the intervals that all seeds have."""

    first: Floats
    end: Floats
    time: Floats
    oracle: Floats


def course_of(context: Context, variant: str, scheduler: str) -> Course | None:
    rows = context.study.select("course", variant, scheduler=scheduler)
    usable = np.isfinite(rows["oracle_time"]) & np.isfinite(rows["time"])
    seeds = np.unique(rows["seed"][usable])
    if len(seeds) == 0:
        return None
    by_seed = []
    for seed in seeds:
        keep = usable & (rows["seed"] == seed)
        by_seed.append({int(f): i for f, i in zip(rows["first_task"][keep], np.flatnonzero(keep),
                                                  strict=True)})  # fmt: skip
    shared = sorted(set.intersection(*(set(rows_of) for rows_of in by_seed)))
    if not shared:
        return None
    index = np.array([[rows_of[first] for first in shared] for rows_of in by_seed])
    first = np.array(shared, dtype=float)
    return Course(
        first,
        first + rows["tasks"][index[0]],
        rows["time"][index],
        rows["oracle_time"][index],
    )


def regret(context: Context) -> Drawing | None:
    drawn = {
        variant: {
            name: course
            for name in context.study.schedulers(variant)
            if name != ORACLE and (course := course_of(context, variant, name)) is not None
        }
        for variant in context.variants
    }
    drawn = {variant: courses for variant, courses in drawn.items() if courses}
    if not drawn:
        return None
    single = len(drawn) == 1
    columns = 1 if single else 2
    plot, axes = panels(len(drawn), 3.0 if single else 2.1, columns=columns)
    for panel, (variant, courses) in zip(axes, drawn.items(), strict=True):
        excess = {
            name: np.cumsum(course.time - course.oracle, axis=1) for name, course in courses.items()
        }
        finals = [float(lines[:, -1].mean()) for lines in excess.values()]
        logarithmic = wide([final for final in finals if final > 0])
        for name, lines in excess.items():
            _band(panel, courses[name].end, lines, context.palette.colour(name), logarithmic)
        if logarithmic:
            positive = [final for final in finals if final > 0]
            panel.set_ylim(min(positive) / 50, max(positive) * 1.8)
            log_axis(panel, "y")
        else:
            plain_axis(panel, "y")
        panel.set_xlim(0, max(course.end[-1] for course in courses.values()))
        plain_axis(panel, "x")
        _shipments(panel, context, variant)
        if context.study.experiment.judge_from:
            mark(panel, context.study.experiment.judge_from, "judged from here")
        ends = [(name, float(lines[:, -1].mean()), context.palette.colour(name))
                for name, lines in excess.items()]  # fmt: skip
        label_ends(panel, ends)
        panel.set_xlabel("Tasks")
        panel.set_ylabel("Regret (s)")
        if not single:
            panel.set_title(context.study.label(variant))
    spread = (
        "Lines are means over seeds, bands their 95 % confidence intervals."
        if len(context.study.seeds) > 1
        else "One seed, so no intervals."
    )
    note = (
        "Execution time spent beyond the Oracle's, summed from the first task on; where a line is "
        f"flat, nothing is lost. {spread} Ticks below: models shipped to a learner (first "
        f"seed), in its colour.{context.left_out}"
    )
    return Drawing(plot, "Regret to the Oracle over time", note)


def _band(axes: Axes, x: Floats, lines: Floats, colour: str, logarithmic: bool) -> None:
    mean, n = lines.mean(axis=0), len(lines)
    axes.plot(x, np.where(mean > 0, mean, np.nan) if logarithmic else mean, color=colour)
    if n > 1:
        half = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * lines.std(axis=0, ddof=1) / np.sqrt(n)
        low = np.maximum(mean - half, np.abs(mean) * 0.01) if logarithmic else mean - half
        axes.fill_between(x, low, mean + half, color=colour, alpha=0.18, linewidth=0)


def _shipments(axes: Axes, context: Context, variant: str) -> None:
    """A tick for every shipped model, a row for each learner."""
    models = context.study.select("models", variant)
    if len(models["seed"]) == 0:
        return
    first = models["seed"].min()
    known = set(context.study.schedulers())
    names = sorted({str(name) for name in models["name"]} & known)
    for i, name in enumerate(names):
        keep = (models["seed"] == first) & (models["name"] == name)
        keep &= np.array([bool(shipped) for shipped in models["shipped"]])
        at = np.nan_to_num(np.asarray(models["last_task"][keep], dtype=float))
        axes.plot(
            np.maximum(at, 0), np.full(len(at), 0.02 + 0.035 * i), "|", markersize=4.5,
            markeredgewidth=0.7, color=context.palette.colour(name),
            transform=axes.get_xaxis_transform(),
        )  # fmt: skip


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
    plot, axes = panels(2 * len(rows), 2.6, columns=2)
    for i, (variant, curves) in enumerate(rows):
        _draw_ratios(axes[2 * i], context, curves)
        _draw_recovered(axes[2 * i + 1], context, variant)
        if len(rows) > 1:
            axes[2 * i].set_title(context.study.label(variant))
    note = (
        f"Left: execution time over the Oracle's in the {RECOVERY_WINDOW} tasks or so that follow, "
        "geometric mean over seeds, counted from the first judged task; the shaded strip is "
        f"{NEAR_ORACLE}. Right: judged tasks until a scheduler is within it over "
        "the tasks "
        "that follow, a point for each seed; a cross in the strip on the right is a seed in which "
        "it never was."
    )
    if len(context.study.variants) > len(rows):
        note += f" The first {len(rows)} variants that have it are drawn."
    return Drawing(plot, "Recovery", note)


def _ratios(course: Course, start: int) -> tuple[Floats, Floats] | None:
    """Tasks since the first judged one, and the ratio over the window from there."""
    after = course.first >= start
    if not after.any():
        return None
    time, oracle = course.time[:, after], course.oracle[:, after]
    length = float(np.median(course.end - course.first))
    window = min(max(1, round(RECOVERY_WINDOW / max(length, 1.0))), time.shape[1])
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
    axes.axhspan(0.95, RECOVERY_RATIO, color=MUTED, alpha=0.15, linewidth=0)
    ends = []
    for name, (tasks, ratio) in curves.items():
        axes.plot(tasks, ratio, color=context.palette.colour(name))
        ends.append((name, float(ratio[-1]), context.palette.colour(name)))
    axes.set_xlim(0, max(1.0, *(float(tasks[-1]) for tasks, _ in curves.values())))
    label_ends(axes, ends)
    axes.set_xlabel("Judged tasks")
    axes.set_ylabel("Execution time over the Oracle's")


def _draw_recovered(axes: Axes, context: Context, variant: str) -> None:
    each = next(c for c in context.results.variants if c.variant == variant)
    names = each.ranked("total_time")
    known = [after for name in names for after in each.schedulers[name].recovered_after]
    most = max([10, *(after for after in known if after is not None)])
    never = most * 1.15
    for y, name in enumerate(names):
        colour = context.palette.colour(name)
        recovered = each.schedulers[name].recovered_after
        shift = np.linspace(-0.18, 0.18, len(recovered)) if len(recovered) > 1 else [0.0]
        for after, off in zip(recovered, shift, strict=True):
            place, marker = (never, "x") if after is None else (after, context.palette.marker(name))
            axes.plot(place, y + off, marker, color=colour, markersize=3.5)
    axes.axvspan(most * 1.07, most * 1.23, color=MUTED, alpha=0.15, linewidth=0)
    axes.annotate("never", (never, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 2),
                  textcoords="offset points", ha="center", fontsize=6.5, color=INK)  # fmt: skip
    axes.set_xlim(-0.03 * most, most * 1.23)
    rows_axis(axes, names)
    axes.set_xlabel(f"Judged tasks until {NEAR_ORACLE}")
