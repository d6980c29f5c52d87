"""`hybrid trace inspect`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from services.cli.main import app
from services.lab.traces.summary import SAMPLE, Distribution
from tests.unit.lab.traces.reading import SAMPLES, written
from tests.unit.lab.traces.test_formats import SWF


def inspect(*arguments: str | Path) -> Any:
    done = CliRunner().invoke(app, ["trace", "inspect", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_figures_of_a_small_trace(tmp_path: Path) -> None:
    result = inspect(written(tmp_path, "t.swf", SWF))
    assert (result["format"], result["tasks"]) == ("swf", 3)
    # Run times 8, 27 and 18: the median is 18, and 95 % lies at 18 + 0.9 * (27 - 18).
    assert result["distributions"]["cpu_seconds"] == pytest.approx(
        {"min": 8, "median": 18, "p95": 26.1, "max": 27}
    )
    assert result["distributions"]["gap"] == {"min": 3, "median": 5, "p95": 6.8, "max": 7}
    assert result["arrivals"] == {"span_s": 10, "per_s": 0.3}
    assert result["dependencies"] == {"waiting_tasks": 2, "edges": 2, "most_parents": 1}
    assert result["skipped"] == {
        "empty line": 1,
        "job was cancelled (keep_status)": 1,
        "job has status 3 (keep_status)": 1,
        "missing value: run_time": 1,
        "ran for no time": 1,
    }
    assert result["adjusted"] == {}
    by_task = {row["task"]: row for row in result["columns"]}
    assert by_task["size"]["from"] == "run_time (inverted physics)"
    assert by_task["compute_intensity"]["proxy"]
    assert by_task["compute_intensity"]["not_given"] == 1
    assert not by_task["arrival_time"]["proxy"]


@pytest.mark.parametrize(
    "name", ["tasks.csv", "cluster.swf", "pods.csv", "pipeline.json", "broken.csv"]
)
def test_the_table_shows_which_column_became_what(name: str) -> None:
    done = CliRunner().invoke(app, ["trace", "inspect", str(SAMPLES / name)])
    assert done.exit_code == 0, done.output
    assert ("proxy" in done.stdout) == (name in ("cluster.swf", "pods.csv", "pipeline.json"))
    assert "median" in done.stdout
    assert "dependencies:" in done.stdout
    assert ("skipped" in done.stderr) == (name in ("cluster.swf", "pods.csv", "broken.csv"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nothing.swf"], "nothing.swf: cannot be read: No such file"),
        (["nothing.swf", "--format", "swf"], "error: nothing.swf: cannot be read: No such file"),
        ([SAMPLES, "--format", "csv"], f"error: {SAMPLES}: cannot be read: Is a directory"),
        ([SAMPLES / "tasks.csv", "--format", "xls"], "no format 'xls'; there are csv, parquet"),
        ([SAMPLES / "tasks.csv", "--mapping", "none.yaml"], "none.yaml: cannot be read"),
        ([SAMPLES / "tasks.csv", "--format", "alibaba"], "no column creation_time"),
        ([SAMPLES / "tasks.csv", "--errors", "no/such/folder"], "cannot be written"),
    ],
)
@pytest.mark.parametrize(
    "command", ["inspect", "convert --out out.csv", "replay --url http://[::1]:1"]
)
def test_mistakes_are_one_line(
    command: str, options: list[Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["trace", *command.split(), *map(str, options)])
    assert done.exit_code == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_distribution_is_exact_while_it_is_small_and_a_fair_sample_when_it_is_large() -> None:
    small = Distribution()
    for start in range(0, 1000, 7):
        small.add(np.arange(start, min(start + 7, 1000), dtype=float))
    assert small.described() == {"min": 0, "median": 499.5, "p95": 949.05, "max": 999}
    large = Distribution()
    for start in range(10):
        large.add(np.arange(start * SAMPLE, (start + 1) * SAMPLE, dtype=float))
    result = large.described()
    assert result is not None
    assert (result["min"], result["max"]) == (0, 10 * SAMPLE - 1)
    # The quantile of a sample of 100,000 lies within 0.5 % of the range, five deviations away.
    assert result["median"] == pytest.approx(5 * SAMPLE, abs=0.05 * SAMPLE)
    assert result["p95"] == pytest.approx(9.5 * SAMPLE, abs=0.05 * SAMPLE)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("", "it has no lines to read"),
        ("0,-1,0.5,1,0\n1,1,2,1,0\n2,-1,0.5,1,0\n",
         "3 lines skipped, 2 of them for: size is not above 0"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["inspect", "convert --out out.csv"])
def test_a_trace_without_tasks_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, lines: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    header = "task_id,size,compute_intensity,memory_required,arrival_time\n"
    trace = written(tmp_path, "t.csv", header + lines)
    done = CliRunner().invoke(app, ["trace", *command.split(), str(trace)])
    assert done.exit_code == 1
    assert f"error: {trace}: no tasks in this trace: {reason}" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]
