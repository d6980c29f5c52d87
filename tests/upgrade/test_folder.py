"""The folder of an embedded arena that another version has used."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from deploy.local.arena import LOCK, Arena, Ports, StartError
from deploy.local.stack import Plan, Stack
from deploy.local.version_file import NAME, format_versions


def claim(folder: Path) -> Arena:
    stack = Stack(Plan(folder, Ports.free(), ("greedy",)))
    asyncio.run(stack.stop())
    return stack.arena


def test_a_folder_is_marked_and_used_again(tmp_path: Path) -> None:
    claim(tmp_path)
    assert json.loads((tmp_path / NAME).read_text()) == format_versions()
    claim(tmp_path)


def test_a_folder_without_a_mark_is_of_the_first_version(tmp_path: Path) -> None:
    secrets = {"nats": "n", "clickhouse": "c", "analyst": "a"}
    (tmp_path / "secrets.json").write_text(json.dumps(secrets))
    arena = claim(tmp_path)
    assert arena.secrets.clickhouse == "c"
    assert arena.secrets.analyst == "a"
    assert (tmp_path / NAME).exists()


@pytest.mark.parametrize("what", format_versions())
def test_the_folder_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path, what: str) -> None:
    mark = format_versions() | {what: format_versions()[what] + 1}
    (tmp_path / NAME).write_text(json.dumps(mark))
    with pytest.raises(StartError) as caught:
        claim(tmp_path)
    reason = (
        f"({what} {mark[what]}, this program knows {format_versions()[what]}): upgrade the program"
    )
    assert reason in str(caught.value)
    assert {path.name for path in tmp_path.iterdir()} == {NAME, LOCK}
    assert json.loads((tmp_path / NAME).read_text()) == mark


def test_unknown_entries_of_the_mark_are_ignored(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(json.dumps({"tables": 0, "something else": 7}))
    claim(tmp_path)


def test_a_mark_that_cannot_be_read_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("garbage")
    with pytest.raises(StartError, match=r"version.json cannot be read: .*; remove it"):
        claim(tmp_path)
