"""`hybrid trace inspect`: what it says of a trace."""

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
    found = inspect(written(tmp_path, "t.swf", SWF))
    assert (found["format"], found["tasks"]) == ("swf", 3)
    # Run times 8, 27 and 18: the median is 18, and 95 % lies at 18 + 0.9 * (27 - 18).
    assert found["distributions"]["cpu_seconds"] == pytest.approx(
        {"min": 8, "median": 18, "p95": 26.1, "max": 27}
    )
    assert found["distributions"]["gap"] == {"min": 3, "median": 5, "p95": 6.8, "max": 7}
    assert found["arrivals"] == {"span_s": 10, "per_s": 0.3}
    assert found["dependencies"] == {"waiting_tasks": 2, "edges": 2, "most_parents": 1}
    assert found["skipped"] == {
        "empty line": 1,
        "job was cancelled (keep_status)": 1,
        "job has status 3 (keep_status)": 1,
        "not given: run_time": 1,
        "ran for no time": 1,
    }
    assert found["mended"] == {}
    by_task = {row["task"]: row for row in found["columns"]}
    assert by_task["size"]["from"] == "run_time (physics turned round)"
    assert by_task["compute_intensity"]["proxy"]
    assert by_task["compute_intensity"]["not_given"] == 1
    assert not by_task["arrival_time"]["proxy"]


@pytest.mark.parametrize(
    "name", ["tasks.csv", "cluster.swf", "pods.csv", "pipeline.json", "broken.csv"]
)
def test_people_see_what_became_of_which_column(name: str) -> None:
    done = CliRunner().invoke(app, ["trace", "inspect", str(SAMPLES / name)])
    assert done.exit_code == 0, done.output
    assert ("proxy" in done.stdout) == (name in ("cluster.swf", "pods.csv", "pipeline.json"))
    assert "median" in done.stdout
    assert "dependencies:" in done.stdout
    assert ("skipped" in done.stderr) == (name in ("cluster.swf", "pods.csv", "broken.csv"))


@pytest.mark.parametrize(
    ("options", "said"),
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
    command: str, options: list[Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["trace", *command.split(), *map(str, options)])
    assert done.exit_code == 1
    assert said in done.stderr
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
    found = large.described()
    assert found is not None
    assert (found["min"], found["max"]) == (0, 10 * SAMPLE - 1)
    # The quantile of a sample of 100,000 lies within 0.5 % of the range, five deviations away.
    assert found["median"] == pytest.approx(5 * SAMPLE, abs=0.05 * SAMPLE)
    assert found["p95"] == pytest.approx(9.5 * SAMPLE, abs=0.05 * SAMPLE)
