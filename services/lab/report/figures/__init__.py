"""The figures, by the names that an experiment asks for."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib

from services.lab.report.data import Study
from services.lab.report.figures import bars, course, distributions, graph, learning
from services.lab.report.figures import recovery as recovered
from services.lab.report.figures import reference as referred
from services.lab.report.figures import sweep as swept
from services.lab.report.figures import workload as given
from services.lab.report.figures.canvas import Context, Drawing
from services.lab.report.findings import Findings
from services.lab.report.style import FAINT, INK, MUTED, RC, Palette

FIGURES: dict[str, Callable[[Context], Drawing | None]] = {
    "total_time": bars.total_time,
    "average_time": bars.average_time,
    "makespan": bars.makespan,
    "cost": bars.cost,
    "energy": bars.energy,
    "latency": distributions.latency,
    "boxes": distributions.boxes,
    "speedup": bars.speedup,
    "regret": course.regret,
    "models": learning.models,
    "workload": given.workload,
    "graph": graph.graph,
    "sweep": swept.sweep,
    "reference": referred.reference,
    "recovery": recovered.recovery,
}

# Inches on paper times this are pixels: sharp in print.
DPI = 220


@dataclass(frozen=True)
class Picture:
    """A figure on disk, and as SVG to be put into a page."""

    name: str
    title: str
    caption: str
    png: Path
    svg: Path
    width: float  # inches
    height: float
    inline: str


def draw_all(study: Study, findings: Findings, folder: Path, dpi: int = DPI) -> Iterator[Picture]:
    """Every figure that the experiment asks for and the data allow."""
    folder.mkdir(parents=True, exist_ok=True)
    context = Context(study, findings, Palette(study.schedulers()))
    for name in study.experiment.figures:
        with matplotlib.rc_context(RC), warnings.catch_warnings():
            # A name may have letters that the font has not; a box in their place is no failure.
            warnings.filterwarnings("ignore", message=".*Glyph.*missing")
            drawing = FIGURES[name](context)
            if drawing is not None:
                yield save(name, drawing, folder, dpi)


def save(name: str, drawing: Drawing, folder: Path, dpi: int) -> Picture:
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    figure = drawing.figure
    # Laid out once: it is most of the work, and every format shall look the same.
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
    """The SVG as part of a page: no header, ids of its own, colours that follow the page's."""
    text = text[text.index("<svg") :]
    for needless in (r"<metadata>.*?</metadata>", r"<style[^>]*>.*?</style>", r"<!--.*?-->"):
        text = re.sub(needless, "", text, flags=re.DOTALL)
    text = re.sub(r'\s(xmlns(:xlink)?|version)="[^"]*"', "", text, count=3)
    text = text.replace("xlink:href=", "href=")
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    # The size in points goes, the viewBox stays: the page decides how wide it is.
    text = re.sub(r'(<svg[^>]*?)\s(?:width|height)="[^"]*pt"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?)\s(?:width|height)="[^"]*pt"', r"\1", text, count=1)
    text = text.replace("fill: #ffffff", "fill: none", 1)  # the paper
    for colour, variable in ((INK, "ink"), (MUTED, "muted"), (FAINT, "faint")):
        text = text.replace(colour, f"var(--{variable})")
    return text.strip()
