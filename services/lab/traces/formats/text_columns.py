"""Parses blocks of text lines into columns: at once where all lines are valid, else line by line,
so that every broken line is reported."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from services.lab.traces.formats.dates import seconds_of
from services.lab.traces.formats.text_blocks import Block
from services.lab.traces.problem_report import Report
from shared.domain.tasks import Floats, Integers

# An invalid block is halved until it is this small, then parsed line by line.
FEW_LINES = 64

NOT_FINITE = "not a finite number"


@dataclass(slots=True)
class Rows:
    """Lines of a trace as columns; a missing number is NaN. `names` is None in a trace without
    parents. Lines that are not `kept` were skipped; only their names matter."""

    line: Integers
    numbers: dict[str, Floats]
    texts: dict[str, list[str]] = field(default_factory=dict)
    names: list[str] | None = None
    parents: list[list[str]] | None = None
    kept: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.line)

    def only(self, kept: NDArray[np.bool_]) -> Rows:
        if kept.all():
            return self
        places = np.flatnonzero(kept).tolist()
        return Rows(
            self.line[kept],
            {name: values[kept] for name, values in self.numbers.items()},
            {name: [cells[place] for place in places] for name, cells in self.texts.items()},
            None if self.names is None else [self.names[place] for place in places],
            None if self.parents is None else [self.parents[place] for place in places],
            None if self.kept is None else self.kept[kept],
        )


class Malformed(Exception):
    """A line that cannot be parsed: the reason and the offending text."""

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.text = text


class Parser(ABC):
    """Parses the wanted columns; `dates` has the format of those numbers that are dates."""

    def __init__(
        self,
        header: Sequence[str],
        numbers: Sequence[str],
        texts: Sequence[str],
        report: Report,
        dates: Mapping[str, str] | None = None,
    ) -> None:
        self._header = list(header)
        self._numbers = list(numbers)
        self._texts = list(texts)
        self._report = report
        self._dates = dates or {}

    def parse(self, block: Block) -> Iterator[Rows]:
        try:
            rows = self._at_once(block)
        except ValueError:  # raised by numpy and Arrow for invalid text
            rows = None
        if rows is not None:
            yield self._finite(rows)
        elif block.count > FEW_LINES:
            for half in block.halves():
                yield from self.parse(half)
        else:
            yield self._finite(self._by_line(block))

    @abstractmethod
    def _at_once(self, block: Block) -> Rows | None:
        """All lines of the block; None or a ValueError when any of them is invalid."""

    @abstractmethod
    def _cells(self, line: str) -> list[str]:
        """The cells of one line, as many as the header has; empty for a comment."""

    def _by_line(self, block: Block) -> Rows:
        lines: list[int] = []
        numbers: list[list[float]] = []
        texts: list[list[str]] = []
        places = [self._header.index(name) for name in self._numbers]
        text_places = [self._header.index(name) for name in self._texts]
        for number, raw in enumerate(block.lines(), block.first_line):
            try:
                cells = self._cells(_text(raw))
                if not cells:
                    continue
                numbers.append([self._value(cells[p], self._header[p]) for p in places])
            except Malformed as error:
                self._report.skip(number, error.reason, error.text)
                continue
            lines.append(number)
            texts.append([cells[place] for place in text_places])
        table = np.array(numbers, np.float64).reshape(len(lines), len(places))
        return Rows(
            np.array(lines, np.int64),
            {name: table[:, k] for k, name in enumerate(self._numbers)},
            {name: [row[k] for row in texts] for k, name in enumerate(self._texts)},
        )

    def _value(self, cell: str, name: str) -> float:
        if name not in self._dates:
            return _number(cell, name)
        try:
            return seconds_of(cell, self._dates[name])
        except (ValueError, OverflowError):
            raise Malformed("not a date", f"{name} {cell!r}") from None

    def _finite(self, rows: Rows) -> Rows:
        """Without the lines that contain infinity; NaN is a missing number."""
        kept = np.ones(len(rows), np.bool_)
        for name, values in rows.numbers.items():
            bad = kept & np.isinf(values)
            if bad.any():
                self._report.skip_all(
                    rows.line[bad], NOT_FINITE, (f"{name} {value}" for value in values[bad])
                )
                kept &= ~bad
        return rows.only(kept)


def _text(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise Malformed("not UTF-8", raw[:80].decode(errors="replace")) from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text.strip():
        raise Malformed("empty line")
    return text


def _number(cell: str, name: str) -> float:
    cell = cell.strip()
    if not cell:
        return np.nan
    # Python also accepts 1_000 and digits of other scripts.
    if not cell.isascii() or "_" in cell:
        raise Malformed("not a number", f"{name} {cell!r}")
    try:
        value = float(cell)
    except ValueError:
        raise Malformed("not a number", f"{name} {cell!r}") from None
    if np.isnan(value):
        raise Malformed(NOT_FINITE, f"{name} {cell}")
    return value


def check_count(cells: list[str], header: Sequence[str]) -> list[str]:
    if len(cells) < len(header):
        raise Malformed("too few columns", f"{len(cells)} of {len(header)}")
    if len(cells) > len(header):
        raise Malformed("too many columns", f"{len(cells)} instead of {len(header)}")
    return cells
