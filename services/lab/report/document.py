"""A report as sections of a few kinds of blocks. HTML and PDF are two ways to set the same one."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.lab.report.figures import Picture


@dataclass(frozen=True)
class Text:
    text: str
    kind: str = "text"


@dataclass(frozen=True)
class Heading:
    text: str
    kind: str = "heading"


@dataclass(frozen=True)
class Bullets:
    items: list[str]
    kind: str = "bullets"


@dataclass(frozen=True)
class Code:
    text: str
    kind: str = "code"


@dataclass(frozen=True)
class Table:
    """The first column is text, the others are numbers unless `text_columns` says otherwise."""

    headers: list[str]
    rows: list[list[str]]
    caption: str = ""
    text_columns: tuple[int, ...] = (0,)
    widths: tuple[float, ...] = ()  # relative, for paper
    kind: str = "table"


@dataclass(frozen=True)
class Figure:
    picture: Picture
    number: int
    kind: str = "figure"


Block = Text | Heading | Bullets | Code | Table | Figure


@dataclass(frozen=True)
class Section:
    title: str
    blocks: list[Block]


@dataclass(frozen=True)
class Document:
    title: str
    question: str
    byline: str
    summary: list[str]
    sections: list[Section] = field(default_factory=list)
