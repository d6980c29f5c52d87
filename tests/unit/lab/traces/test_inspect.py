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
from tests.unit.lab.traces.test_job_logs import HELIOS


def inspect(*arguments: str | Path) -> Any:
    done = CliRunner().invoke(app, ["trace", "inspect", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_figures_of_a_small_trace(tmp_path: Path) -> None:
    spec = written(tmp_path, "spec.yaml", "cluster: {devices: [{type: cpu, count: 4}]}")
    result = inspect(written(tmp_path, "t.swf", SWF), "--spec", spec)
    assert (result["format"], result["tasks"]) == ("swf", 3)
    # Run times 8, 27 and 18: the median is 18, and 95 % lies at 18 + 0.9 * (27 - 18).
    assert result["seconds_on"]["cpu"] == pytest.approx(
        {"min": 8, "median": 18, "p95": 26.1, "max": 27}
    )
    assert result["distributions"]["gap"] == {"min": 3, "median": 5, "p95": 6.8, "max": 7}
    assert result["arrivals"] == {"span_s": 10, "per_s": 0.3}
    assert result["dependencies"] == {
        "waiting_tasks": 2,
        "edges": 2,
        "most_parents": 1,
        "window": 1,
    }
    assert result["skipped"] == {
        "empty line": 1,
        "job was cancelled (keep_status)": 1,
        "job has status 3 (keep_status)": 1,
        "missing value: run_time": 1,
        "ran for no time": 1,
    }
    assert result["adjusted"] == {}
    by_task = {row["task"]: row for row in result["columns"]}
    assert by_task["size"]["from"] == "run_time (seconds on cpu)"
    assert by_task["compute_intensity"]["proxy"]
    assert by_task["compute_intensity"]["not_given"] == 1
    assert not by_task["arrival_time"]["proxy"]
    # 8 s on 2 CPUs, 27 s on 4 and 18 s on one, within 10 s.
    assert result["load"]["cluster"] == pytest.approx((16 + 108 + 18) / 4 / 10)
    assert result["load"]["by_type"] == {
        "cpu": {"tasks": 3, "load": pytest.approx(result["load"]["cluster"])}
    }
    (overload,) = (text for text in result["warnings"] if "offered load" in text)
    assert overload.startswith("the offered load is 3.55: more arrives than the platform can do")


HEADER = "size,compute_intensity,memory_required,arrival_time\n"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["4000,0.2,5,0", "5000,0.2,5,9"],
            ["all tasks have the same intensity and memory: an accel"],
        ),
        (["4000,0.2,5,0", "5000,0.2,6,9"], ["all tasks have the same intensity: an accelerator"]),
        (
            ["4000,0.1,5,0", "5000,0.2,5,9"],
            ["all tasks have the same memory: nothing can be conclu"],
        ),
        (
            ["4000,0.1,5,0", "4000,0.2,6,9"],
            ["all tasks have the same size: nothing can be conclude"],
        ),
        (["4000,0.1,5,9", "5000,0.2,6,9"], ["all tasks arrive at once: makespan, energy and cost"]),
        (["4000,0.1,5,9"], ["one task: nothing can be concluded about schedulers"]),
        (["1,0.1,5,0", "2,0.2,6,9"], ["the offered load is "]),
        (["4000,0.1,5,0", "5000,0.2,6,9"], []),
    ],
)
def test_constant_columns_say_what_cannot_be_concluded(
    tmp_path: Path, lines: list[str], expected: list[str]
) -> None:
    found = inspect(written(tmp_path, "t.csv", HEADER + "\n".join(lines) + "\n"))["warnings"]
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


def test_it_says_for_how_many_tasks_a_time_is_only_assumed(tmp_path: Path) -> None:
    jobs = written(tmp_path, "cluster_log.csv", HELIOS)
    result = inspect(jobs)
    assert result["recorded_on_cpu"] == 1
    assert [text[:54] for text in result["warnings"] if "assumption" in text] == [
        "1 of 2 tasks were recorded on a CPU only: what they wo",
        "1 of 2 tasks were recorded on an accelerator only: wha",
    ]
    # Without a device of the other sort nothing is assumed.
    spec = written(tmp_path, "spec.yaml", "cluster: {devices: [{type: cpu, count: 4}]}")
    swf = inspect(written(tmp_path, "t.swf", SWF), "--spec", spec)
    assert swf["recorded_on_cpu"] == 3
    assert not any("assumption" in text for text in swf["warnings"])
    assert any(text.startswith("the platform has no accelerator: ") for text in swf["warnings"])


def test_missing_columns_point_to_a_mapping(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "size,when\n1,2\n")
    done = CliRunner().invoke(app, ["trace", "inspect", str(path)])
    assert done.exit_code == 1
    assert "no column arrival_time, compute_intensity, memory_required" in done.stderr
    assert "--mapping FILE says which column is which" in done.stderr


def test_steps_without_measured_times_have_no_load() -> None:
    result = inspect(SAMPLES / "training.tsv")
    assert (result["load"], result["seconds_on"]) == (None, {})
    assert "the sizes are steps, not time" in result["warnings"][-1]


@pytest.mark.parametrize(
    "name",
    ["tasks.csv", "cluster.swf", "pods.csv", "pipeline.json", "broken.csv", "training.tsv",
     "jobs.json", "slurm.csv"],
)  # fmt: skip
def test_the_table_shows_which_column_became_what(name: str) -> None:
    done = CliRunner().invoke(app, ["trace", "inspect", str(SAMPLES / name)])
    assert done.exit_code == 0, done.output
    assert ("proxy" in done.stdout) == (name not in ("tasks.csv", "broken.csv"))
    assert "median" in done.stdout
    assert "dependencies:" in done.stdout
    assert ("skipped" in done.stderr) == (
        name not in ("tasks.csv", "pipeline.json", "training.tsv")
    )


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
