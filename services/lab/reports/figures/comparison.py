"""The measure of later folders over that of the first, a panel for each folder."""

from __future__ import annotations

from services.lab.reports.figures.axes import Drawing, panels, ratio_rows
from services.lab.reports.figures.style import Palette
from services.lab.reports.statistics import Estimate

# By folder: the name of the row, the scheduler, its measure over that in A.
Ratios = dict[str, list[tuple[str, str, Estimate]]]


def comparison(ratios: Ratios, measure: str, palette: Palette) -> Drawing:
    rows = list(dict.fromkeys(name for own in ratios.values() for name, _, _ in own))
    figure, axes = panels(len(ratios), 0.6 + 0.19 * len(rows), share_y=True)
    for panel, (letter, own) in zip(axes, ratios.items(), strict=True):
        points = [(rows.index(name), scheduler, ratio) for name, scheduler, ratio in own]
        ratio_rows(panel, palette, rows, points)
        panel.set_xlabel(f"{measure} in {letter} over A (log scale)")
    note = "Left of 1: less than in A. Whiskers: 95 % confidence interval over shared seeds."
    return Drawing(figure, f"{measure} over that of A", note)
