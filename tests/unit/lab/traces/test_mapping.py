"""Custom mappings over the default, and errors in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from services.cli.main import app
from services.lab.traces.mapping import Mapping, load_mapping, parse_mapping
from services.lab.traces.problem_report import TraceError
from tests.unit.lab.traces.reading import SAMPLES, read, written
from tests.unit.lab.traces.test_formats import SWF


def test_nothing_changes_nothing() -> None:
    assert parse_mapping(None) == parse_mapping({}) == Mapping()


def test_a_key_alone_changes_that_key(tmp_path: Path) -> None:
    mapping = parse_mapping({"swf": {"intensity": {"otherwise": 0.9}, "keep_status": [5, 1]}})
    assert mapping.swf.intensity.over == "run_time"
    assert mapping.swf.intensity.otherwise == 0.9
    assert mapping.swf.keep_status == (5, 1)
    assert mapping.alibaba == Mapping().alibaba


def test_a_rule_with_a_column_replaces_the_default(tmp_path: Path) -> None:
    changed = {"seconds": {"column": "run_time", "times": "processors"}}
    result = read(written(tmp_path, "t.swf", SWF), mapping=parse_mapping({"swf": changed}))
    # 8 s on 2 processors, 27 s on 4, 18 s on 1, at intensities 0.5, 0.5 and 1.
    expected = [1000 * work ** (2 / 3) for work in (16, 108, 27)]
    assert result.tasks.size.tolist() == pytest.approx(expected)
    fixed = {"intensity": {"column": [], "otherwise": 0.25}}
    result = read(written(tmp_path, "t.swf", SWF), mapping=parse_mapping({"swf": fixed}))
    assert result.tasks.compute_intensity.tolist() == [0.25] * 3
    assert result.trace.rules.intensity.formula() == "0.25, a constant"


def test_size_may_be_given_instead_of_seconds(tmp_path: Path) -> None:
    changed = {"size": {"column": "processors", "scale": 100, "offset": 5}}
    result = read(written(tmp_path, "t.swf", SWF), mapping=parse_mapping({"swf": changed}))
    assert result.tasks.size.tolist() == [205, 405, 105, 105, 105]  # run times no longer matter


def test_any_csv_can_be_mapped(tmp_path: Path) -> None:
    text = "job,secs,util,mb,t\nx,8,0.5,10,100\ny,27,0.5,,107\n"
    rules = {
        "seconds": {"column": "secs"},
        "intensity": {"column": "util"},
        "memory": {"column": "mb", "otherwise": 7},
        "arrival": {"column": "t"},
        "arrivals_from_first": True,
    }
    path = written(tmp_path, "jobs.csv", text)
    result = read(path, mapping=parse_mapping({"csv": rules}))
    assert result.tasks.size.tolist() == pytest.approx([4000, 9000])
    assert result.tasks.memory_required.tolist() == [10, 7]
    assert result.tasks.arrival_time.tolist() == [0, 7]


def test_limits_are_kept_and_counted(tmp_path: Path) -> None:
    mapping = parse_mapping({"swf": {"intensity": {"low": 0.6, "high": 0.9}}})
    result = read(written(tmp_path, "t.swf", SWF), mapping=mapping)
    assert result.tasks.compute_intensity.tolist() == [0.6, 0.6, 0.9]
    assert result.trace.substituted["intensity"].limited == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([1], "m.yaml: a mapping has the keys physics, csv, swf, alibaba, wfcommons, gavel"),
        (
            {"sfw": {}},
            r"m.yaml: sfw: unknown key \(did you mean swf\?\); "
            "allowed: alibaba, csv, gavel, helios, philly, physics, swf, wfcommons",
        ),
        ({"swf": 3}, "m.yaml: swf: Input should be .* SwfRules"),
        ({"swf": {"intensty": {}}}, r"swf.intensty: unknown key \(did you mean intensity\?\)"),
        ({"swf": {"memory": {"colum": "x"}}}, r"memory.colum: unknown key \(did you mean column"),
        ({"swf": {"memory": {"scale": "x"}}}, r"memory.scale: .* valid number.* \(got 'x'\)"),
        ({"swf": {"memory": {"scale": float("nan")}}}, "memory.scale: .* finite number"),
        ({"swf": {"memory": {"column": []}}}, "memory: name a column, or the value to take"),
        ({"swf": {"memory": {"low": 3, "high": 2}}}, r"low \(3\) is above high \(2\)"),
        (
            {"csv": {"size": {"column": "a"}, "seconds": {"column": "b"}}},
            "csv: give either size or seconds",
        ),
        ({"physics": {"size_unit": 0}}, "physics.size_unit: Input should be greater than 0"),
    ],
)
def test_a_wrong_mapping_names_the_key_and_what_is_allowed(data: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        parse_mapping(data, "m.yaml")


def test_a_file_that_is_not_a_mapping_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.yaml: cannot be read"):
        load_mapping(tmp_path / "none.yaml")
    with pytest.raises(TraceError, match="not valid YAML"):
        load_mapping(written(tmp_path, "m.yaml", "a: [b"))


def test_a_column_that_a_format_does_not_have_is_named(tmp_path: Path) -> None:
    changed = parse_mapping(
        {
            "swf": {"memory": {"column": "mem"}},
            "alibaba": {"memory": {"column": "gpu_mem"}},
            "wfcommons": {"memory": {"column": "rss"}},
        }
    )
    for name, message in (
        ("cluster.swf", "SWF has no column mem; it has job_number"),
        ("pods.csv", "no column gpu_mem in the header; it has 'name', 'cpu_milli'"),
        ("pipeline.json", "a workflow has no rss; it has runtimeInSeconds"),
    ):
        with pytest.raises(TraceError, match=message):
            read(SAMPLES / name, mapping=changed)


def test_the_printed_mapping_is_the_default() -> None:
    printed = CliRunner().invoke(app, ["trace", "mapping"])
    assert printed.exit_code == 0
    assert parse_mapping(yaml.safe_load(printed.stdout)) == Mapping()
