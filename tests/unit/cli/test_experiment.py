"""`hybrid experiment run --resume` of an experiment whose runs are all complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from services.cli.experiments import commands
from services.cli.main import app
from services.lab.experiments.journal import Entry, Folder, Journal
from services.lab.experiments.runner import finish
from services.lab.experiments.tables import TABLES
from shared.errors import Unavailable
from shared.runtime import logs
from tests.unit.cli.test_commands import NOWHERE
from tests.unit.lab.reports.synthetic import Synthetic, declare


@pytest.fixture(autouse=True)
def no_arena(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that connects to an arena fails."""

    def unavailable(*args: Any, **options: Any) -> None:
        raise Unavailable("no arena in this test")

    for name in ("run_on_own_arena", "run_on_arena", "connect"):
        monkeypatch.setattr(commands, name, unavailable)
    # Loggers keep the stderr they were made with, and the runner's is closed after the command.
    monkeypatch.setattr(logs, "set_up", lambda *args, **context: None)


def completed(path: Path, *, arena: str = "embedded") -> Folder:
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
        made_of = pa.Table.from_pylist
        folder.store(entry, {name: made_of(rows, TABLES[name]) for name, rows in of_run.items()})
    return folder


def resume(folder: Folder, *more: str) -> Result:
    return CliRunner().invoke(app, ["experiment", "run", "--resume", str(folder.path), *more])


def test_a_complete_experiment_is_reported_again_without_new_measurements(tmp_path: Path) -> None:
    folder = completed(tmp_path / "x")
    folder.journal.note_peaks({"nats": 12.5})
    finish(folder)
    before = (folder.path / "provenance.json").read_bytes()
    result = resume(folder, "--json")
    assert result.exit_code == 0, result.output
    assert "every run is complete" in result.stderr
    written = {Path(file).name for file in json.loads(result.stdout)["files"]}
    assert {"report.html", "report.pdf", "report.json"} <= written
    assert (folder.path / "report.pdf").stat().st_size > 0
    assert (folder.path / "provenance.json").read_bytes() == before


@pytest.mark.parametrize("arena", ["embedded", NOWHERE])
def test_an_experiment_killed_after_its_last_run_is_finished(tmp_path: Path, arena: str) -> None:
    folder = completed(tmp_path / "x", arena=arena)
    (folder.path / "arena").mkdir()
    result = resume(folder)
    assert result.exit_code == 0, result.output
    provenance = json.loads((folder.path / "provenance.json").read_text())
    assert [run["run"] for run in provenance["runs"]] == ["run-1", "run-2"]
    assert json.loads((folder.path / "report.json").read_text())["seeds"] == [1, 2]
    assert not (folder.path / "arena").exists()


@pytest.mark.parametrize(
    ("arena", "message"),
    [
        ("embedded", "no arena in this test"),
        (NOWHERE, f"was started on the arena {NOWHERE}; use the same one"),
    ],
)
def test_an_experiment_with_a_run_left_needs_the_arena_it_was_started_on(
    tmp_path: Path, arena: str, message: str
) -> None:
    folder = completed(tmp_path / "x", arena=arena)
    folder.journal.entries[1].done = False
    folder.save()
    result = resume(folder)
    assert result.exit_code == 1
    assert message in result.stderr
    assert not (folder.path / "report.html").exists()


def test_a_comparison_names_its_files(tmp_path: Path) -> None:
    folders = [completed(tmp_path / name) for name in ("a", "b")]
    for folder in folders:
        finish(folder)
    out = tmp_path / "out"
    arguments = ["experiment", "compare", *(str(each.path) for each in folders), "--out", str(out)]
    assert CliRunner().invoke(app, arguments).stdout.split() == [
        str(out / "comparison.html"),
        str(out / "comparison.pdf"),
    ]
