"""Renders a document as one HTML file with style and figures inside."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from services.lab.reports.document import Document
from services.lab.reports.figures.draw import Picture

TEMPLATES = Path(__file__).parent / "templates"


def write_html(document: Document, file: Path) -> Path:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["drawing"] = _drawing
    environment.filters["anchor"] = _anchor
    style = Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))
    page = environment.get_template("report.html").render(document=document, style=style)
    file.write_text(page, encoding="utf-8")
    return file


def _drawing(picture: Picture) -> Markup:
    """Our own SVG, in which text is drawn as paths; the label is escaped."""
    described = Markup('<svg role="img" aria-label="{}"').format(picture.title)
    return described + Markup(picture.inline.removeprefix("<svg"))


def _anchor(title: str) -> str:
    return "-".join(title.lower().split())
