"""The journal and the folder of an experiment."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.lab.experiments.declaration import ExperimentError, parse
from services.lab.experiments.journal import Entry, Folder, Journal
from services.lab.experiments.run_completion import why_stalled
from services.lab.experiments.tables import TABLES

EXPERIMENT = parse(
    {
        "name": "mine",
        "title": "Mine",
        "question": "?",
        "tasks": 10,
        "seeds": [2, 1],
        "variants": {"a/b": {}, "c": {}},
        "figures": ["total_time"],
    },
    "mine.yaml",
)


def created(path: Path) -> Folder:
    journal = Journal(command="hybrid ...", arena="embedded", started_at="2026-01-01")
    return Folder.create(path, EXPERIMENT, journal)


def tables_of(variant: str, seed: int) -> dict[str, pa.Table]:
    result = {}
    for name, schema in TABLES.items():
        known = {"variant": [variant], "seed": [seed]}
        result[name] = pa.table(
            [pa.array(known.get(field.name, [None]), field.type) for field in schema], schema
        )
    return result


def test_what_is_done_is_known_after_a_restart(tmp_path: Path) -> None:
    folder = created(tmp_path / "x")
    entry = Entry(variant="c", seed=2, run="r1")
    folder.journal.entries.append(entry)
    folder.save()
    folder.store(entry, tables_of("c", 2))
    again = Folder.open(tmp_path / "x")
    assert again.experiment == EXPERIMENT
    result = again.journal.entry("c", 2)
    assert result is not None
    assert (result.run, result.done) == ("r1", True)
    assert again.journal.entry("c", 1) is None
    assert not again.complete


def test_parts_are_merged_in_the_order_of_the_experiment(tmp_path: Path) -> None:
    folder = created(tmp_path / "x")
    # Done in another order than the experiment's.
    for variant, seed in reversed(list(EXPERIMENT.runs())):
        entry = Entry(variant=variant, seed=seed, run=f"{variant}{seed}")
        folder.journal.entries.append(entry)
        folder.store(entry, tables_of(variant, seed))
    assert folder.complete
    folder.merge()
    for name, schema in TABLES.items():
        rows = pq.read_table(tmp_path / "x" / "data" / f"{name}.parquet")
        assert rows.schema.equals(schema)
        places = zip(rows["variant"].to_pylist(), rows["seed"].to_pylist(), strict=True)
        assert list(places) == [("a/b", 2), ("c", 2), ("a/b", 1), ("c", 1)]


def test_a_folder_in_use_is_not_overwritten(tmp_path: Path) -> None:
    created(tmp_path / "x")
    with pytest.raises(ExperimentError, match="--resume"):
        created(tmp_path / "x")


def test_a_folder_without_an_experiment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="no experiment in"):
        Folder.open(tmp_path)


def test_a_broken_journal_is_reported(tmp_path: Path) -> None:
    created(tmp_path / "x")
    (tmp_path / "x" / "journal.json").write_text('{"command": 1')
    with pytest.raises(ExperimentError, match="cannot be read"):
        Folder.open(tmp_path / "x")


def test_peak_memory_survives_an_interruption(tmp_path: Path) -> None:
    folder = created(tmp_path / "x")
    folder.journal.note_peaks({"nats": 30.0, "trainer": 500.0})
    folder.save()
    again = Folder.open(tmp_path / "x")
    again.journal.note_peaks({"nats": 40.0, "trainer": 400.0})
    assert again.journal.peaks == {"nats": 40.0, "trainer": 500.0}


def test_what_holds_a_run_up_is_named() -> None:
    lag = {"tasks/scheduler-greedy": 3, "results/recorder": 1200}
    assert why_stalled({"state": "running", "lag": lag}) == (
        "no progress for a while: the run is running; results/recorder is 1,200 messages behind"
    )
    assert why_stalled({"state": "paused", "lag": {}}).endswith("the run is paused")
