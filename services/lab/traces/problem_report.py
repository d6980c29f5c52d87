"""The problems of a trace: counted by reason, the first few shown, all written to a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TextIO

from shared.errors import ArenaError

SHOWN = 20


class TraceError(ArenaError):
    """A file that cannot be read as a trace."""


class Report:
    """Counts the problems of a trace; with `strict` the first one is an error."""

    def __init__(
        self,
        *,
        strict: bool = False,
        show: Callable[[str], None] | None = None,
        shown: int = SHOWN,
        sink: TextIO | None = None,
    ) -> None:
        self.unit = "line"  # or task (JSON), row (Parquet)
        self.skipped: Counter[str] = Counter()
        self.adjusted: Counter[str] = Counter()
        self.notes: list[str] = []
        self._strict = strict
        self._show = show
        self._left = shown if show else 0
        self._sink = sink
        self._pending: list[tuple[int, str, str]] = []

    def skip(self, number: int, reason: str, detail: str = "") -> None:
        """A line that did not become a task."""
        self.skipped[reason] += 1
        self._add(number, "skipped", reason, detail)

    def skip_all(self, numbers: Iterable[int], reason: str, details: Iterable[object]) -> None:
        for number, detail in zip(numbers, details, strict=True):
            self.skip(int(number), reason, str(detail))

    def adjust(self, number: int, reason: str, detail: str = "") -> None:
        """A line that became a task with a value changed."""
        self.adjusted[reason] += 1
        self._add(number, "adjusted", reason, detail)

    def note(self, text: str) -> None:
        """A remark about the complete file; repeated remarks are kept once."""
        if text not in self.notes:
            self.notes.append(text)

    def _add(self, number: int, verb: str, reason: str, detail: str) -> None:
        if self._strict or self._left or self._sink:
            self._pending.append(
                (number, verb, f"{reason}: {_short(detail)}" if detail else reason)
            )

    def flush(self) -> None:
        """Report new problems sorted by line: a block is checked column by column."""
        pending, self._pending = sorted(self._pending, key=lambda entry: entry[0]), []
        for number, verb, problem in pending:
            if self._strict:
                raise TraceError(f"{self.unit} {number}: {problem} (--strict)")
            text = f"{self.unit} {number}: {verb}: {problem}"
            if self._sink is not None:
                self._sink.write(text + "\n")
            if self._left and self._show:
                self._left -= 1
                self._show(text)
                if self._left == 0:
                    self._show(
                        "further problems are only counted; --errors FILE writes all of them"
                    )


def _short(text: str) -> str:
    """A cell of a broken file may contain anything, at any length."""
    shown = "".join(char if char.isprintable() else "?" for char in text[:80])
    return shown + ("…" if len(text) > 80 else "")
