"""`hybrid experiment run --resume` of an experiment whose runs are all done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from services.cli import experiment
from services.cli.main import app
from services.lab.journal import Entry, Folder, Journal
from services.lab.runner import finish
from services.lab.tables import TABLES
from shared import logs
from shared.errors import Unavailable
from tests.unit.lab.synthetic import Synthetic, declare


@pytest.fixture(autouse=True)
def no_arena(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for one is refused."""

    def refused(*asked: Any, **more: Any) -> None:
        raise Unavailable("an arena was asked for")

    for name in ("embedded", "on_arena", "connect"):
        monkeypatch.setattr(experiment, name, refused)
    # Loggers keep the stderr they were made with, and the runner's is closed after the command.
    monkeypatch.setattr(logs, "set_up", lambda *args, **context: None)


def done(path: Path, *, arena: str = "embedded") -> Folder:
    """An experiment that was killed after its last run."""
    declared = declare(tasks=200, seeds=(1, 2), figures=("total_time",))
    made = Synthetic(declared, sample=20, stretches=10)
    journal = Journal(command="hybrid experiment run x", arena=arena, started_at="2026-01-01")
    folder = Folder.create(path, declared, journal)
    tables = made.tables()
    for variant, seed in declared.runs():
        entry = Entry(variant=variant, seed=seed, run=f"run-{seed}")
        entry.spec = declared.run_spec(variant, seed).model_dump(mode="json")
        journal.entries.append(entry)
        of_run = {
            name: [row for row in rows if (row["variant"], row["seed"]) == (variant, seed)]
            for name, rows in tables.items()
        }
        found = {
            name: pa.Table.from_pylist(rows, schema=TABLES[name]) for name, rows in of_run.items()
        }
        folder.keep(entry, found)
    return folder


def resume(folder: Folder, *more: str) -> Result:
    return CliRunner().invoke(app, ["experiment", "run", "--resume", str(folder.path), *more])


def test_a_finished_one_gets_its_report_again_and_keeps_what_was_measured(tmp_path: Path) -> None:
    folder = done(tmp_path / "x")
    folder.journal.note_peaks({"nats": 12.5})
    finish(folder)
    before = (folder.path / "provenance.json").read_bytes()
    result = resume(folder, "--json")
    assert result.exit_code == 0, result.output
    assert "every run is done" in result.stderr
    written = {Path(file).name for file in json.loads(result.stdout)["files"]}
    assert {"report.html", "report.pdf", "report.json"} <= written
    assert (folder.path / "report.pdf").stat().st_size > 0
    assert (folder.path / "provenance.json").read_bytes() == before


@pytest.mark.parametrize("arena", ["embedded", "http://127.0.0.1:1"])
def test_one_that_was_killed_after_its_last_run_is_finished(tmp_path: Path, arena: str) -> None:
    folder = done(tmp_path / "x", arena=arena)
    (folder.path / "arena").mkdir()
    result = resume(folder)
    assert result.exit_code == 0, result.output
    said = json.loads((folder.path / "provenance.json").read_text())
    assert [run["run"] for run in said["runs"]] == ["run-1", "run-2"]
    assert json.loads((folder.path / "report.json").read_text())["seeds"] == [1, 2]
    assert not (folder.path / "arena").exists()


def test_one_with_a_run_left_needs_an_arena(tmp_path: Path) -> None:
    folder = done(tmp_path / "x")
    folder.journal.entries[1].done = False
    folder.save()
    result = resume(folder)
    assert result.exit_code == 1
    assert "an arena was asked for" in result.stderr
    assert not (folder.path / "report.html").exists()


def test_one_of_another_arena_is_not_gone_on_with(tmp_path: Path) -> None:
    folder = done(tmp_path / "x", arena="http://127.0.0.1:1")
    folder.journal.entries[1].done = False
    folder.save()
    result = resume(folder)
    assert result.exit_code == 1
    assert "was started on this arena: http://127.0.0.1:1" in result.stderr


def test_a_comparison_names_its_files(tmp_path: Path) -> None:
    folders = [done(tmp_path / name) for name in ("a", "b")]
    for folder in folders:
        finish(folder)
    out = tmp_path / "out"
    asked = ["experiment", "compare", *(str(each.path) for each in folders), "--out", str(out)]
    assert CliRunner().invoke(app, asked).stdout.split() == [
        str(out / "comparison.html"),
        str(out / "comparison.pdf"),
    ]
