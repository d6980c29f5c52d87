"""A dictionary of limited size drops the entries that were set first."""

from __future__ import annotations

from shared.runtime.bounded_dict import BoundedDict


def filled() -> BoundedDict[str, int]:
    entries: BoundedDict[str, int] = BoundedDict(2)
    entries["a"] = 1
    entries["b"] = 2
    return entries


def test_the_entry_that_was_set_first_is_dropped() -> None:
    entries = filled()
    entries["c"] = 3
    assert list(entries.items()) == [("b", 2), ("c", 3)]


def test_an_entry_that_is_set_again_stays() -> None:
    entries = filled()
    entries["a"] = 10
    entries["c"] = 3
    assert list(entries.items()) == [("a", 10), ("c", 3)]


def test_default_entries_count() -> None:
    entries = filled()
    assert entries.setdefault("c", 3) == 3
    assert list(entries) == ["b", "c"]
