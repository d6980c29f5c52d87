"""A converted trace has the same tasks; an incomplete file is never left behind."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from services.cli.main import app
from services.lab.traces import convert as converting
from services.lab.traces.problem_report import TraceError
from tests.unit.lab.traces.reading import SAMPLES, Read, read, written

COLUMNS = ("task_id", "size", "compute_intensity", "memory_required", "arrival_time")


def hybrid(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["trace", *map(str, arguments)])


def assert_same(one: Read, other: Read) -> None:
    for name in COLUMNS:
        assert getattr(one.tasks, name).tobytes() == getattr(other.tasks, name).tobytes()
    for name in ("width", "divisible", "last_child"):
        mine, its = getattr(one.tasks, name), getattr(other.tasks, name)
        assert (mine is None) == (its is None)
        assert mine is None or mine.tolist() == its.tolist()
    assert list(one.tasks.kind) == list(other.tasks.kind)
    assert one.tasks.parents == other.tasks.parents


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    "name",
    [
        "tasks.csv",
        "cluster.swf",
        "pods.csv",
        "pipeline.json",
        "broken.csv",
        "training.tsv",
        "jobs.json",
        "slurm.csv",
    ],
)
def test_a_converted_trace_has_the_same_tasks_bit_by_bit(
    tmp_path: Path, name: str, suffix: str
) -> None:
    target = tmp_path / ("out" + suffix)
    done = hybrid("convert", SAMPLES / name, "--out", target)
    assert done.exit_code == 0, done.output
    again = read(target)
    assert again.trace.format == suffix[1:]
    assert again.messages == []
    assert_same(again, read(SAMPLES / name))
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_an_interrupted_conversion_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = written(tmp_path, "out.csv", "what was there before")

    def interrupted(rows: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(converting, "task_rows", interrupted)
    done = hybrid("convert", SAMPLES / "tasks.csv", "--out", target)
    assert done.exit_code == 130
    assert "was not written" in done.stderr
    assert target.read_text() == "what was there before"
    assert list(tmp_path.iterdir()) == [target]


def test_a_strict_conversion_that_fails_leaves_nothing(tmp_path: Path) -> None:
    done = hybrid("convert", SAMPLES / "broken.csv", "--out", tmp_path / "o.csv", "--strict")
    assert done.exit_code == 1
    assert "line 4: too few columns" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_invalid_targets_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", (SAMPLES / "tasks.csv").read_bytes())
    for target, messages in (
        (tmp_path / "out.txt", "written as .csv or .parquet"),
        (path, "is the trace itself"),
        (tmp_path / "no" / "out.csv", "cannot be written"),
    ):
        done = hybrid("convert", path, "--out", target)
        assert done.exit_code == 1
        assert messages in done.stderr
    assert "is the trace itself" in hybrid("inspect", path, "--errors", path).stderr


@pytest.mark.parametrize(
    ("column", "values", "messages"),
    [
        ("size", [1.0, float("nan"), None], ["row 1: skipped: not a finite number: size nan",
                                             "row 2: skipped: missing value: size"]),
        ("arrival_time", [1.0, 0.5, 2.0], ["row 1: adjusted: arrival moved to that of the task "
                                           "before it: 0.5 to 1"]),
        ("dependencies", [[], [0, 7], [1]], ["row 1: adjusted: parent dropped: no such task "
                                             "before it: 7"]),
    ],
)  # fmt: skip
def test_broken_rows_of_parquet_are_named(
    tmp_path: Path, column: str, values: list[object], messages: list[str]
) -> None:
    table = pyarrow.table(
        {name: [0.5, 0.5, 0.5] for name in COLUMNS[1:]} | {"dependencies": [[], [0], [1]]}
    )
    place = table.column_names.index(column)
    pyarrow.parquet.write_table(table.set_column(place, column, [values]), tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet").messages == messages


def test_invalid_parquet_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="not a readable Parquet file"):
        read(written(tmp_path, "t.parquet", b"PAR1 and then nothing"))
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "t.parquet")
    with pytest.raises(TraceError, match="no column arrival_time, compute_intensity"):
        read(tmp_path / "t.parquet")
