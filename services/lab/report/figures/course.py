"""What happens along the stream: regret, recovery after a change, models shipped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from scipy import stats

from services.lab.report.data import ORACLE
from services.lab.report.figures.canvas import (
    Context,
    Drawing,
    Floats,
    label_ends,
    log_axis,
    mark,
    panels,
    plain_axis,
    wide,
)
from services.lab.statistics import CONFIDENCE


@dataclass(frozen=True)
class Course:
    """One scheduler's stretches: rows are seeds, columns the stretches that all seeds have."""

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
    shared = sorted(set.intersection(*(set(found) for found in by_seed)))
    if not shared:
        return None
    index = np.array([[found[first] for first in shared] for found in by_seed])
    first = np.array(shared, dtype=float)
    return Course(
        first,
        first + rows["tasks"][index[0]],
        rows["time"][index],
        rows["oracle_time"][index],
    )


def regret(context: Context) -> Drawing | None:
    found = {
        variant: {
            name: course
            for name in context.study.schedulers(variant)
            if name != ORACLE and (course := course_of(context, variant, name)) is not None
        }
        for variant in context.variants
    }
    found = {variant: courses for variant, courses in found.items() if courses}
    if not found:
        return None
    single = len(found) == 1
    columns = 1 if single else 2
    canvas, axes = panels(len(found), 3.0 if single else 2.1, columns=columns)
    for panel, (variant, courses) in zip(axes, found.items(), strict=True):
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
        "Execution time spent beyond the Oracle's, summed from the first task on; a flat line "
        f"loses nothing any more. {spread} Ticks below: models shipped to a learner (first "
        f"seed), in its colour.{context.left_out}"
    )
    return Drawing(canvas, "Regret to the Oracle over time", note)


def _band(axes: Axes, x: Floats, lines: Floats, colour: str, logarithmic: bool) -> None:
    mean, n = lines.mean(axis=0), len(lines)
    axes.plot(x, np.where(mean > 0, mean, np.nan) if logarithmic else mean, color=colour)
    if n > 1:
        half = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * lines.std(axis=0, ddof=1) / np.sqrt(n)
        low = np.maximum(mean - half, np.abs(mean) * 0.01) if logarithmic else mean - half
        axes.fill_between(x, low, mean + half, color=colour, alpha=0.18, linewidth=0)


def _shipments(axes: Axes, context: Context, variant: str) -> None:
    """A tick for every model that went into service, a row for each learner."""
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
