"""A report as sections of a few kinds of blocks; html.py and pdf.py render the same document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from services.lab.reports.figures.draw import Picture


@dataclass(frozen=True)
class Text:
    text: str
    kind: Literal["text", "heading", "code"] = "text"


@dataclass(frozen=True)
class Table:
    """The first column is text, the others are numbers unless `text_columns` says otherwise."""

    headers: list[str]
    rows: list[list[str]]
    text_columns: tuple[int, ...] = (0,)
    kind: str = "table"


@dataclass(frozen=True)
class Figure:
    picture: Picture
    number: int
    kind: str = "figure"


Block = Text | Table | Figure


@dataclass(frozen=True)
class Section:
    title: str
    blocks: list[Block]


@dataclass(frozen=True)
class Document:
    """Sections without blocks are not rendered."""

    title: str
    question: str
    byline: str
    summary: list[str]
    sections: list[Section]
