"""What a check has found: counts for the machine, the first few of each kind for people."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

TOLD = 5  # of each kind and place


@dataclass(slots=True)
class Findings:
    run: str
    tasks: int = 0  # looked at
    results: int = 0  # looked at
    copies: int = 0  # rows stored twice, bit for bit the same, that no merge has removed yet
    lost: int = 0
    doubled: int = 0
    different: int = 0
    problems: list[str] = field(default_factory=list)
    _told: Counter[str] = field(default_factory=Counter, repr=False)

    @property
    def ok(self) -> bool:
        return not (self.lost or self.doubled or self.different)

    def miss(self, place: str, what: str, count: int = 1) -> None:
        self.lost += count
        self._tell(f"lost: {place}", what)

    def double(self, place: str, what: str, count: int = 1) -> None:
        self.doubled += count
        self._tell(f"doubled: {place}", what)

    def differ(self, place: str, what: str, count: int = 1) -> None:
        self.different += count
        self._tell(f"different: {place}", what)

    def _tell(self, place: str, what: str) -> None:
        self._told[place] += 1
        if self._told[place] <= TOLD:
            self.problems.append(f"{place}: {what}")


def few(numbers: object) -> str:
    """The first of many, for a message."""
    listed = list(numbers)  # type: ignore[call-overload]
    shown = ", ".join(str(number) for number in listed[:TOLD])
    return shown + (f" and {len(listed) - TOLD} more" if len(listed) > TOLD else "")
