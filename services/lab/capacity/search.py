"""Finds where a target begins to be met, with far fewer tries than values.

Assumed: from one end of the range to the other the answer changes once, from "met" to "not met" or
the other way round. That mostly holds for queues, but not always for schedulers: one more device
may mislead one. So the neighbours of the answer are tried too, and values that contradict the
assumption are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """`value`: counted from the end that meets the target, the last value that meets it; None: no
    value does. `contradicting`: tried values that contradict the assumption."""

    value: int | None
    tried: dict[int, bool]  # whether each meets the target
    contradicting: tuple[int, ...]

    @property
    def monotone(self) -> bool:
        """Whether no tried value contradicts the assumption."""
        return not self.contradicting


def search(values: Sequence[int], meets: Callable[[int], bool]) -> Answer:
    """`values` in rising order. About log2 of their number, and four, are tried.

    >>> search(range(1, 65), lambda count: count >= 11).value
    11
    """
    tried: dict[int, bool] = {}

    def at(place: int) -> bool:
        value = values[place]
        if value not in tried:
            tried[value] = meets(value)
        return tried[value]

    last = len(values) - 1
    met_below, met_above = at(0), at(last)
    if met_below == met_above:
        # Both ends meet the target, or neither does: if both, the smallest value is enough.
        return _answer(values[0] if met_below else None, tried, met_above=True)
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if at(middle) == met_above:
            high = middle
        else:
            low = middle
    for neighbour in (low - 1, high + 1):
        if 0 <= neighbour <= last:
            at(neighbour)
    return _answer(values[high if met_above else low], tried, met_above)


def _answer(value: int | None, tried: dict[int, bool], met_above: bool) -> Answer:
    def expected(other: int) -> bool:
        if value is None:
            return False
        return other >= value if met_above else other <= value

    contradicting = tuple(sorted(each for each, met in tried.items() if met != expected(each)))
    return Answer(value, dict(sorted(tried.items())), contradicting)
