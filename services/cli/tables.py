"""Tables that cut no cell: on a narrow terminal whole columns are left out, in a pipe none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.box import HEAVY_HEAD, Box
from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

UNLIMITED = 100_000
# Prose is folded between words, down to this width; anything else stays on its line.
PROSE_WIDTH = 24


class OutputConsole(Console):
    """As wide as its terminal; a pipe or a file gets complete lines, whatever COLUMNS says."""

    @property  # type: ignore[misc]  # nothing sets it
    def size(self) -> ConsoleDimensions:
        if self.file.isatty():
            return super().size
        return ConsoleDimensions(UNLIMITED, super().size.height)


@dataclass(frozen=True, slots=True)
class Heading:
    name: str
    number: bool = False
    prose: bool = False


def right(*names: str) -> list[str | Heading]:
    return [Heading(name, number=True) for name in names]


def prose(name: str) -> Heading:
    return Heading(name, prose=True)


@dataclass(frozen=True, slots=True)
class FittedTable:
    """If it is too wide, columns are left out: those in `left_out_first`, then from the right. The
    first column always stays."""

    headings: Sequence[Heading]
    rows: Sequence[Sequence[str]]
    title: str | None = None
    caption: str | None = None
    left_out_first: Sequence[str] = ()
    box: Box | None = HEAVY_HEAD

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = list(range(len(self.headings)))
        left_out = []
        for column in self._columns_by_importance():
            if self._width(console, options, shown) <= options.max_width:
                break
            shown.remove(column)
            left_out.append(column)
        if self.title:
            yield Text.from_markup(self.title, style="table.title")
        yield self._table(console, shown, fold_all=len(shown) == 1)
        if self.caption:
            yield Text.from_markup(self.caption, style="table.caption")
        if left_out:
            names = ", ".join(self.headings[column].name for column in sorted(left_out))
            yield Text(f"too narrow for: {names}", style="dim")

    def _columns_by_importance(self) -> list[int]:
        """All but the first, the least important first."""
        positions = {heading.name: at for at, heading in enumerate(self.headings)}
        named = [positions[name] for name in self.left_out_first if name in positions]
        others = reversed(range(1, len(self.headings)))
        return named + [at for at in others if at not in named]

    def _width(self, console: Console, options: ConsoleOptions, shown: Sequence[int]) -> int:
        table = self._table(console, shown, prose_width=PROSE_WIDTH)
        return table.__rich_measure__(console, options.update(width=UNLIMITED)).maximum

    def _table(
        self,
        console: Console,
        shown: Sequence[int],
        *,
        prose_width: int | None = None,
        fold_all: bool = False,
    ) -> Table:
        """Without lines in a pipe, so that each row begins with its first value."""
        box = self.box if console.is_terminal else None
        columns = (
            Column(
                heading.name,
                justify="right" if heading.number else "left",
                overflow="fold",
                no_wrap=not heading.prose and not fold_all,
                max_width=prose_width if heading.prose else None,
            )
            for heading in (self.headings[at] for at in shown)
        )
        table = Table(
            *columns,
            box=box,
            pad_edge=box is not None,
            show_header=any(self.headings[at].name for at in shown),
            header_style="table.header" if box else "dim",
        )
        for row in self.rows:
            table.add_row(*(row[at] for at in shown))
        return table


def table(
    headings: Iterable[str | Heading],
    rows: Iterable[Iterable[str]],
    *,
    title: str | None = None,
    caption: str | None = None,
    left_out_first: Sequence[str] = (),
    box: Box | None = HEAVY_HEAD,
) -> FittedTable:
    columns = [each if isinstance(each, Heading) else Heading(each) for each in headings]
    cells = [tuple(row) for row in rows]
    return FittedTable(columns, cells, title, caption, left_out_first, box)
