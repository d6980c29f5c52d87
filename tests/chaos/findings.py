"""What a check has found: counts of everything, and the first few of each kind as text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

MOST_LISTED = 5  # of each kind and place


@dataclass(slots=True)
class Findings:
    run: str
    tasks: int = 0  # checked
    results: int = 0  # checked
    copies: int = 0  # rows stored twice, bit for bit the same, that no merge has removed yet
    lost: int = 0
    doubled: int = 0
    different: int = 0
    problems: list[str] = field(default_factory=list)
    _listed: Counter[str] = field(default_factory=Counter, repr=False)

    @property
    def ok(self) -> bool:
        return not (self.lost or self.doubled or self.different)

    def add_lost(self, place: str, what: str, count: int = 1) -> None:
        self.lost += count
        self._list(f"lost: {place}", what)

    def add_doubled(self, place: str, what: str, count: int = 1) -> None:
        self.doubled += count
        self._list(f"doubled: {place}", what)

    def add_different(self, place: str, what: str, count: int = 1) -> None:
        self.different += count
        self._list(f"different: {place}", what)

    def _list(self, place: str, what: str) -> None:
        self._listed[place] += 1
        if self._listed[place] <= MOST_LISTED:
            self.problems.append(f"{place}: {what}")


def few(numbers: object) -> str:
    """The first of many, for a message."""
    listed = list(numbers)  # type: ignore[call-overload]
    shown = ", ".join(str(number) for number in listed[:MOST_LISTED])
    return shown + (f" and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else "")
