"""Specs and scales from command-line options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deploy.local.arena import StartError
from deploy.local.stack import parse_scale
from services.cli.runs.spec import spec_from
from services.scheduler import policies
from shared.domain.schedulers import BUILT_IN
from shared.errors import SpecError

KNOWN = {"greedy", "oracle", "simulator"}


def test_every_policy_file_is_listed_as_built_in() -> None:
    assert set(BUILT_IN) == {path.stem for path in Path(policies.__file__).parent.glob("[!_]*.py")}


def test_scale_is_a_number_per_name_and_the_last_counts() -> None:
    assert parse_scale([], KNOWN) == {}
    assert parse_scale(["greedy=3", "simulator=1"], KNOWN) == {"greedy": 3, "simulator": 1}
    assert parse_scale(["greedy=3", "greedy=2"], KNOWN) == {"greedy": 2}


@pytest.mark.parametrize(
    ("message", "entries"),
    [
        ("expected NAME=NUMBER, such as greedy=3", "greedy|greedy=|greedy=x|=3||Greedy=2|a b=1"),
        ("no gready; known: greedy, oracle, simulator", "gready=2"),
        ("between 1 and 64 processes", "greedy=0|greedy=-1|greedy=65|greedy=1000000000"),
    ],
)
def test_an_invalid_scale_says_what_is_expected(message: str, entries: str) -> None:
    for entry in entries.split("|"):
        with pytest.raises(StartError, match=message):
            parse_scale([entry], KNOWN)


def test_without_options_the_spec_is_empty() -> None:
    assert spec_from(None, None, None, None, None) == {}


def test_options_become_fields() -> None:
    made = spec_from(None, 10, "max", 7, "readme")
    assert (made["tasks"], made["pace"], made["seed"]) == (10, "max", 7)
    assert made["workload"]["preset"] == "readme"
    assert spec_from(None, None, "12.5", None, None) == {"pace": 12.5}


def test_options_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("tasks: 5\nseed: 1\nworkload: {arrival_rate: 9, preset: hpc}\n")
    made = spec_from(file, None, None, 2, "documented")
    assert (made["tasks"], made["seed"]) == (5, 2)
    assert made["workload"]["arrival_rate"] == 9
    assert made["workload"]["preset"] == "documented"
    assert made["workload"]["mix"]["size"] == {"kind": "uniform", "low": 100, "high": 5000}


@pytest.mark.parametrize(
    ("name", "text", "fields"),
    [
        (
            "run.json",
            '{"seed": 5, "schedulers": ["greedy"]}',
            {"seed": 5, "schedulers": ["greedy"]},
        ),
        ("run.yaml", "", {}),
    ],
)
def test_a_file_may_be_json_or_empty(
    tmp_path: Path, name: str, text: str, fields: dict[str, Any]
) -> None:
    (tmp_path / name).write_text(text)
    assert spec_from(tmp_path / name, 3, None, None, None) == {"tasks": 3, **fields}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1", "a mapping of fields, not list"),
        ("tasks: [", "not valid YAML"),
        ("taks: 3", "did you mean tasks"),
    ],
)
def test_a_bad_file_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    with pytest.raises(SpecError, match=message):
        spec_from(file, None, None, None, None)


def test_bad_options_name_the_field() -> None:
    with pytest.raises(SpecError) as caught:
        spec_from(None, 0, "fast", -1, "hpcc")
    fields = [problem.partition(":")[0] for problem in caught.value.problems]
    assert sorted(fields) == ["pace", "seed", "tasks", "workload.preset"]
