"""The models of the learners: shipped or kept back, and their scores."""

from __future__ import annotations

import numpy as np
from matplotlib.lines import Line2D

from services.lab.reports.figures.axes import Context, Drawing, panels, plain_axis
from services.lab.reports.figures.style import INK, MUTED


def models(context: Context) -> Drawing | None:
    by_variant = {v: context.study.select("models", v) for v in context.variants}
    names = sorted({str(name) for rows in by_variant.values() for name in rows["name"]})
    if not names:
        return None
    plot, axes = panels(2 * len(names), 1.75, columns=2)
    palette = context.palette if set(names) <= set(context.study.schedulers()) else None
    for i, name in enumerate(names):
        colour = palette.colour(name) if palette else INK
        scored = False
        for rows in by_variant.values():
            for seed in sorted(set(rows["seed"])):
                keep = (rows["name"] == name) & (rows["seed"] == seed)
                # A model made before the first task has no last_task: it is drawn at 0.
                at = np.nan_to_num(np.asarray(rows["last_task"][keep], dtype=float))
                order = np.argsort(at, kind="stable")
                at = np.maximum(at[order], 0)
                ships = np.array([bool(s) for s in rows["shipped"][keep]], dtype=bool)[order]
                score = np.asarray(rows["score"][keep], dtype=float)[order]
                axes[2 * i].step(at, np.cumsum(ships), where="post", color=colour, alpha=0.75)
                axes[2 * i].step(at, np.cumsum(~ships), where="post", color=MUTED, linestyle=":")
                usable = np.isfinite(score)
                scored |= bool(usable.any())
                axes[2 * i + 1].plot(at[usable & ships], score[usable & ships], "o",
                                     color=colour, markersize=2.5, alpha=0.8)  # fmt: skip
                axes[2 * i + 1].plot(at[usable & ~ships], score[usable & ~ships], "x",
                                     color=MUTED, markersize=3.5)  # fmt: skip
        axes[2 * i].set_title(name)
        axes[2 * i].set_ylabel("Models")
        axes[2 * i].set_ylim(bottom=0)
        axes[2 * i + 1].set_ylabel("Score (1 is the Oracle)")
        if not scored:
            axes[2 * i + 1].set_axis_off()
            axes[2 * i + 1].text(
                0.5, 0.5, "this learner's models are not scored", ha="center", va="center",
                color=MUTED, transform=axes[2 * i + 1].transAxes,
            )  # fmt: skip
        for panel in axes[2 * i : 2 * i + 2]:
            panel.set_xlabel("Newest task learned from")
            plain_axis(panel, "x")
    handles = [
        Line2D([], [], color=INK, marker="o", markersize=2.5, label="shipped"),
        Line2D([], [], color=MUTED, linestyle=":", marker="x", markersize=3.5, label="kept back"),
    ]
    plot.legend(handles=handles, loc="outside lower center", ncols=2)
    note = (
        "Left: how many models were shipped (solid) and kept back (dotted) by the newest task they "
        "had learned from, a line for each run. Right: their scores on results that they were not "
        "trained on; lower is better. A new forest is shipped only when it is not worse there than "
        "the current one; the agent's networks are shipped as they learn. Models still in training "
        "at the end of a run are not shown."
    )
    return Drawing(plot, "Models shipped and kept back", note)
