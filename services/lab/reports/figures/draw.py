"""Draws and saves the figures that an experiment declares, by name."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib

from services.lab.reports.figures import (
    bars,
    beside_reference,
    breakdown,
    dependency_graph,
    distributions,
    models,
    over_time,
    sweep,
    workload,
)
from services.lab.reports.figures.axes import Context, Drawing
from services.lab.reports.figures.style import FAINT, INK, MUTED, RC, Palette
from services.lab.reports.results import Results
from services.lab.reports.study import Study

FIGURES: dict[str, Callable[[Context], Drawing | None]] = {
    "turnaround": bars.turnaround,
    "total_time": bars.total_time,
    "average_time": bars.average_time,
    "makespan": bars.makespan,
    "cost": bars.cost,
    "energy": bars.energy,
    "latency": distributions.latency,
    "boxes": distributions.boxes,
    "speedup": bars.speedup,
    "regret": over_time.regret,
    "models": models.models,
    "workload": workload.workload,
    "graph": dependency_graph.dependency_graph,
    "sweep": sweep.sweep,
    "reference": beside_reference.beside_reference,
    "recovery": over_time.recovery,
    "breakdown": breakdown.breakdown,
}

# Pixels per inch on paper.
DPI = 220


@dataclass(frozen=True)
class Picture:
    """A figure on disk, and as SVG for the HTML page."""

    name: str
    title: str
    caption: str
    png: Path
    svg: Path
    width: float  # inches
    height: float
    inline: str


def draw_all(study: Study, results: Results, folder: Path, dpi: int = DPI) -> Iterator[Picture]:
    """Every figure that the experiment declares and for which there are data."""
    context = Context(study, results, Palette(study.schedulers()))
    for name in study.experiment.figures:
        with matplotlib.rc_context(RC), warnings.catch_warnings():
            # Names may have letters that the font lacks; they are drawn as boxes.
            warnings.filterwarnings("ignore", message=".*Glyph.*missing")
            drawing = FIGURES[name](context)
            if drawing is not None:
                yield save(name, drawing, folder, dpi)


def save(name: str, drawing: Drawing, folder: Path, dpi: int) -> Picture:
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    figure = drawing.figure
    # The layout is most of the work: compute it once for both formats.
    figure.draw_without_rendering()
    figure.set_layout_engine(None)
    figure.savefig(png, dpi=dpi, metadata={"Software": None})
    written = io.StringIO()
    figure.savefig(written, format="svg", dpi=dpi, metadata={"Date": None})
    svg.write_text(written.getvalue(), encoding="utf-8")
    width, height = figure.get_size_inches()
    return Picture(
        name, drawing.title, drawing.caption, png, svg, float(width), float(height),
        inline_svg(written.getvalue(), name),
    )  # fmt: skip


def inline_svg(text: str, name: str) -> str:
    """The SVG for a page: no header, unique ids, the colours of the page."""
    text = text[text.index("<svg") :]
    for unused in (r"<metadata>.*?</metadata>", r"<style[^>]*>.*?</style>", r"<!--.*?-->"):
        text = re.sub(unused, "", text, flags=re.DOTALL)
    text = re.sub(r'\s(xmlns(:xlink)?|version)="[^"]*"', "", text, count=3)
    text = text.replace("xlink:href=", "href=")
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    # Without a size in points, but with the viewBox: the page sets the width.
    text = re.sub(r'(<svg[^>]*?)\s(?:width|height)="[^"]*pt"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?)\s(?:width|height)="[^"]*pt"', r"\1", text, count=1)
    text = text.replace("fill: #ffffff", "fill: none", 1)  # the background
    for colour, variable in ((INK, "ink"), (MUTED, "muted"), (FAINT, "faint")):
        text = text.replace(colour, f"var(--{variable})")
    return text.strip()
