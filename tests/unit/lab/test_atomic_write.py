"""Atomic file writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.lab.atomic_write import replace_file, replace_text


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_the_new_text_replaces_the_old(tmp_path: Path) -> None:
    target = tmp_path / "it.json"
    for text in ("old, and longer", "né"):
        replace_text(target, text)
        assert target.read_text(encoding="utf-8") == text
    assert names(tmp_path) == ["it.json"]


def test_the_old_file_stays_until_the_new_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "it.json"
    target.write_text("old")
    with replace_file(target) as part:
        part.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"


def test_a_failed_write_changes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "it.json"
    target.write_text("old")

    def write_half() -> None:
        with replace_file(target) as part:
            part.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["it.json"]
