"""Files that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.lab.writing import replace_text, replacing


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_the_new_text_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "it.json"
    for text in ("old, and longer", "né"):
        replace_text(target, text)
        assert target.read_text(encoding="utf-8") == text
    assert names(tmp_path) == ["it.json"]


def test_the_old_one_stays_until_all_is_written(tmp_path: Path) -> None:
    target = tmp_path / "it.json"
    target.write_text("old")
    with replacing(target) as part:
        part.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"


def test_what_fails_half_way_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "it.json"
    target.write_text("old")

    def write_half() -> None:
        with replacing(target) as part:
            part.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["it.json"]


def test_a_folder_that_is_not_there_is_the_callers_to_report(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_text(tmp_path / "none" / "it.json", "text")
