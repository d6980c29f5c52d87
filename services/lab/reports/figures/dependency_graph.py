"""The dependency graph of the first judged tasks, drawn in layers."""

from __future__ import annotations

from collections import Counter

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from services.lab.reports.figures.axes import Context, Drawing, panels
from services.lab.reports.figures.style import INK, MUTED
from services.lab.reports.formatting import counted

# More tasks above one another are unreadable.
MAX_PER_COLUMN = 16

Parents = dict[int, list[int]]


def dependency_graph(context: Context) -> Drawing | None:
    drawn = []
    for variant in context.variants:
        seeds = context.study.seeds_of("graph", variant)
        if not seeds:
            continue
        rows = context.study.select("graph", variant, seed=seeds[0])
        known = {int(task) for task in rows["task_id"]}
        parents = {
            int(task): sorted({int(p) for p in (ids if ids is not None else [])} & known)
            for task, ids in zip(rows["task_id"], rows["parents"], strict=True)
        }
        if any(parents.values()):
            drawn.append((variant, parents))
    drawn = drawn[:4]
    if not drawn:
        return None
    plot, axes = panels(len(drawn), 3.4, columns=min(len(drawn), 2))
    notes = []
    for panel, (variant, parents) in zip(axes, drawn, strict=True):
        shown = connected(parents)
        places = layered(shown)
        _draw(panel, shown, places)
        label = context.study.label(variant)
        if len(drawn) > 1:
            panel.set_title(label)
        alone = len(parents) - len(_linked(parents))
        depth = max(_layers(parents).values()) + 1
        lead = f"{label}: " if len(drawn) > 1 else ""
        notes.append(
            f"{lead}Of the first {counted(len(parents), 'judged task')} {alone} have no parents or "
            f"children among them; the longest chain has {depth} tasks; {len(shown)} are drawn."
        )
    note = (
        "Each node is a task with its id, each line leads from a parent to its child; a task "
        "stands one column right of the last of its parents. " + " ".join(notes)
    )
    return Drawing(plot, "Dependency graph", note)


def _linked(parents: Parents) -> set[int]:
    return {task for task, ids in parents.items() if ids} | {
        i for ids in parents.values() for i in ids
    }


def connected(parents: Parents) -> Parents:
    """The earliest tasks with parents or children, as many as fit."""
    linked = sorted(_linked(parents))
    for count in range(len(linked), 1, -1):
        kept = set(linked[:count])
        kept = _linked({task: [i for i in parents[task] if i in kept] for task in kept})
        shown = {task: [i for i in parents[task] if i in kept] for task in sorted(kept)}
        if shown and max(Counter(_layers(shown).values()).values()) <= MAX_PER_COLUMN:
            return shown
    # No part fits: the first task that has parents, with them.
    task = min(task for task, ids in parents.items() if ids)
    return {**{i: [] for i in parents[task]}, task: parents[task]}


def _layers(parents: Parents) -> dict[int, int]:
    """The longest chain of parents before each task. Parents have lower ids."""
    layer: dict[int, int] = {}
    for task in sorted(parents):
        layer[task] = 1 + max((layer[i] for i in parents[task] if i in layer), default=-1)
    return layer


def layered(parents: Parents) -> dict[int, tuple[int, float]]:
    """Layer (longest chain of parents) and height of each task.

    A few sweeps move each task near the mean height of its neighbours: few lines cross.
    """
    layer = _layers(parents)
    columns: dict[int, list[int]] = {}
    for task in sorted(parents):
        columns.setdefault(layer[task], []).append(task)
    neighbours: dict[int, list[int]] = {task: list(ids) for task, ids in parents.items()}
    for task, ids in parents.items():
        for i in ids:
            neighbours[i].append(task)
    height = {t: i - len(c) / 2 + 0.5 for c in columns.values() for i, t in enumerate(c)}
    for sweep in range(12):
        for column in sorted(columns, reverse=bool(sweep % 2)):
            mean_height = {
                task: float(np.mean([height[i] for i in neighbours[task]] or [height[task]]))
                for task in columns[column]
            }
            columns[column].sort(key=lambda task: (mean_height[task], task))
            for i, task in enumerate(columns[column]):
                height[task] = i - len(columns[column]) / 2 + 0.5
    return {task: (layer[task], height[task]) for task in parents}


def _draw(axes: Axes, parents: Parents, places: dict[int, tuple[int, float]]) -> None:
    tallest = max((abs(y) for _, y in places.values()), default=1.0) + 0.5
    counts: dict[int, int] = {}
    for x, _ in places.values():
        counts[x] = counts.get(x, 0) + 1
    # Each column is stretched over the full height.
    at = {t: (x, y * 2 * tallest / (counts[x] + 1)) for t, (x, y) in places.items()}
    for task, ids in parents.items():
        for i in ids:
            (x0, y0), (x1, y1) = at[i], at[task]
            bend = (x1 - x0) * 0.45
            path = Path(
                [(x0, y0), (x0 + bend, y0), (x1 - bend, y1), (x1, y1)],
                [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
            )
            axes.add_patch(PathPatch(path, facecolor="none", edgecolor=MUTED, linewidth=0.7))
    xs, ys = zip(*at.values(), strict=True)
    axes.scatter(xs, ys, s=110, color="#ffffff", edgecolors="#0072b2", linewidths=0.9, zorder=3)
    for task, (x, y) in at.items():
        axes.text(x, y, str(task), fontsize=4.6, ha="center", va="center", zorder=4,
                  color="#1a1a1a")  # fmt: skip
    axes.set_xlim(-0.4, max(xs) + 0.4)
    axes.set_ylim(-tallest, tallest)
    axes.set_xticks(range(max(xs) + 1))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)
    axes.tick_params(axis="x", colors=INK)
    axes.set_xlabel("Longest chain of parents before the task")
