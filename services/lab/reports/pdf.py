"""Renders a document as PDF on A4 with ReportLab."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from textwrap import TextWrapper, shorten
from typing import Any
from xml.sax.saxutils import escape

import matplotlib
from reportlab.lib.colors import HexColor
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import inch, mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    Image,
    ListFlowable,
    ListItem,
    Paragraph,
    SimpleDocTemplate,
    Spacer,
    XPreformatted,
)
from reportlab.platypus import Table as Grid

from services.lab.reports.document import Block, Document, Figure, Section, Table
from services.lab.reports.figures.style import FAINT, INK, MUTED

_MARGIN = 16 * mm
_WIDTH = A4[0] - 2 * _MARGIN - 12  # a frame pads its sides by 6 points
_HEIGHT = A4[1] - 2 * _MARGIN - 14 * mm
_INK, _MUTED, _FAINT = HexColor(INK), HexColor(MUTED), HexColor(FAINT)
_BOX, _ACCENT = HexColor("#f3f6fa"), HexColor("#0072b2")


@cache
def _fonts() -> None:
    """DejaVu comes with matplotlib and has the letters of most languages."""
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    for name in ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSansMono"):
        pdfmetrics.registerFont(TTFont(name, folder / f"{name}.ttf"))


def _style(name: str, size: float, **changes: Any) -> ParagraphStyle:
    fields = {"fontName": "DejaVuSans", "leading": size * 1.42, "textColor": _INK, **changes}
    return ParagraphStyle(name, fontSize=size, **fields)


_STYLES = {
    "title": _style("title", 18, fontName="DejaVuSans-Bold", leading=23, spaceAfter=5),
    "question": _style("question", 10, fontName="DejaVuSans-Oblique", spaceAfter=4),
    "byline": _style("byline", 7.5, textColor=_MUTED, spaceAfter=10),
    "h2": _style("h2", 13, fontName="DejaVuSans-Bold", spaceBefore=14, spaceAfter=6,
                 keepWithNext=1),
    "heading": _style("heading", 9, fontName="DejaVuSans-Bold", spaceBefore=8, spaceAfter=4,
                      keepWithNext=1),
    "text": _style("text", 8.5, spaceAfter=6),
    "caption": _style("caption", 7.5, textColor=_MUTED, spaceBefore=3, spaceAfter=10),
    "code": _style("code", 7, fontName="DejaVuSansMono", leading=9.4, backColor=_BOX,
                   borderPadding=5, spaceBefore=5, spaceAfter=10, leftIndent=5, rightIndent=5),
    "cell": _style("cell", 7.2, leading=9.4),
    "number": _style("number", 7.2, leading=9.4, alignment=TA_RIGHT),
    "head": _style("head", 7.2, leading=9.4, fontName="DejaVuSans-Bold"),
    "headnumber": _style("headnumber", 7.2, leading=9.4, fontName="DejaVuSans-Bold",
                         alignment=TA_RIGHT),
}  # fmt: skip


def write_pdf(document: Document, file: Path) -> Path:
    _fonts()
    paper = SimpleDocTemplate(
        str(file), pagesize=A4, leftMargin=_MARGIN, rightMargin=_MARGIN, topMargin=_MARGIN,
        bottomMargin=_MARGIN + 6 * mm, title=document.title, author="Hybrid ML Scheduler",
        subject=document.question, invariant=1,
    )  # fmt: skip
    story: list[Any] = [
        _text(document.title, "title"),
        _text(document.question, "question"),
        _text(document.byline, "byline"),
    ]
    if document.summary:
        story.append(_summary(document.summary))
    for section in (section for section in document.sections if section.blocks):
        story += _section(section)
    paper.build(story, onFirstPage=_footer, onLaterPages=_footer)
    return file


def _section(section: Section) -> list[Any]:
    """Text before a table or formulas stays with them, as titles stay with what follows."""
    story: list[Any] = [_text(section.title, "h2")]
    for block, following in zip(section.blocks, [*section.blocks[1:], None], strict=True):
        parts = _render(block)
        if following and block.kind == "text" and following.kind in ("table", "code"):
            parts = _kept_with_next(*parts)
        story += parts
    return story


def _footer(canvas: Canvas, paper: SimpleDocTemplate) -> None:
    canvas.setFont("DejaVuSans", 7)
    canvas.setFillColor(_MUTED)
    canvas.drawString(_MARGIN, 11 * mm, shorten(_clean(paper.title), 90, placeholder="…"))
    canvas.drawRightString(A4[0] - _MARGIN, 11 * mm, f"Page {canvas.getPageNumber()}")


def _clean(text: str) -> str:
    """Without control characters."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", " ", text)


def _text(text: str, style: str) -> Paragraph:
    return Paragraph(escape(_clean(text)), _STYLES[style])


def _summary(bullets: list[str]) -> Grid:
    items = ListFlowable(
        [ListItem(_text(bullet, "text"), leftIndent=12) for bullet in bullets],
        bulletType="bullet", start="•", bulletFontSize=8.5, bulletColor=_ACCENT, leftIndent=12,
    )  # fmt: skip
    box = Grid([[[_text("Summary", "heading"), items]]], colWidths=[_WIDTH])
    box.setStyle([
        ("BACKGROUND", (0, 0), (-1, -1), _BOX),
        ("LINEBEFORE", (0, 0), (0, -1), 2.5, _ACCENT),
        ("LEFTPADDING", (0, 0), (-1, -1), 10),
        ("RIGHTPADDING", (0, 0), (-1, -1), 10),
    ])  # fmt: skip
    return box


def _render(block: Block) -> list[Any]:
    if isinstance(block, Figure):
        return _figure(block)
    if isinstance(block, Table):
        return _table(block)
    if block.kind == "code":
        fold = TextWrapper(112, subsequent_indent="    ", drop_whitespace=False)
        lines = [piece for line in block.text.rstrip().split("\n") for piece in fold.wrap(line)]
        return [XPreformatted(escape(_clean("\n".join(lines))), _STYLES["code"])]
    return [_text(block.text, block.kind)]


def _figure(block: Figure) -> list[Any]:
    picture = block.picture
    width, height = picture.width * inch, picture.height * inch
    fit = min(_WIDTH / width, (_HEIGHT - 30 * mm) / height)
    image = Image(picture.png, width=width * fit, height=height * fit)
    image.hAlign = "LEFT"
    title = f"<b>Figure {block.number}. {escape(_clean(picture.title))}.</b>"
    caption = Paragraph(f"{title} {escape(_clean(picture.caption))}", _STYLES["caption"])
    return [*_kept_with_next(Spacer(1, 4), image), caption]


def _table(block: Table) -> list[Any]:
    def row(cells: list[str], styles: tuple[str, str]) -> list[Paragraph]:
        return [
            _text(cell, styles[0] if i in block.text_columns else styles[1])
            for i, cell in enumerate(cells)
        ]

    headed = any(block.headers)
    rows = [row(block.headers, ("head", "headnumber"))] if headed else []
    rows += [row(cells, ("cell", "number")) for cells in block.rows]
    widths = [_longest(column) for column in zip(block.headers, *block.rows, strict=True)]
    shares = [_WIDTH * width / sum(widths) for width in widths]
    grid = Grid(rows, colWidths=shares, repeatRows=1 if headed else 0)
    grid.setStyle([
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("VALIGN", (0, 0), (-1, 0), "BOTTOM"),
        ("LINEBELOW", (0, 0), (-1, -1), 0.4, _FAINT),
        *([("LINEBELOW", (0, 0), (-1, 0), 0.8, _INK)] if headed else []),
        ("LEFTPADDING", (0, 0), (-1, -1), 2),
        ("RIGHTPADDING", (0, 0), (-1, -1), 4),
        ("TOPPADDING", (0, 0), (-1, -1), 2.5),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 2.5),
    ])  # fmt: skip
    # Only a table that is as long as a page is divided.
    kept = _kept_with_next(Spacer(1, 0)) if len(rows) < 16 else []
    return [*kept, grid, Spacer(1, 6)]


def _kept_with_next(*parts: Any) -> list[Any]:
    for part in parts:
        part.keepWithNext = 1
    return list(parts)


def _longest(column: tuple[str, ...]) -> float:
    """Points of the longest cell, up to a third of the page; a header may break between words."""
    header, *cells = column
    words = [pdfmetrics.stringWidth(word, "DejaVuSans-Bold", 7.2) for word in header.split()]
    widths = [pdfmetrics.stringWidth(cell, "DejaVuSans", 7.2) for cell in cells]
    return 8.0 + min(float(max([*words, *widths, 0.0])), float(_WIDTH / 3))
