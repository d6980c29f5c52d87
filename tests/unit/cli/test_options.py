"""What the commands make of their options, before any arena is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.local.arena import StartError
from deploy.local.stack import parse_scale
from services.cli.runs import spec_from
from services.cli.up import BUILT_IN
from shared.errors import SpecError

KNOWN = {"greedy", "oracle", "simulator"}


def test_every_policy_that_lies_in_its_folder_is_built_in() -> None:
    assert BUILT_IN == (
        "cpu_only", "gpu_only", "greedy", "hybrid_ml", "oracle", "random", "rl_agent", "round_robin"
    )  # fmt: skip


def test_scale_is_a_number_per_name() -> None:
    assert parse_scale([], KNOWN) == {}
    assert parse_scale(["greedy=3", "simulator=1"], KNOWN) == {"greedy": 3, "simulator": 1}


def test_the_last_of_two_scales_counts() -> None:
    assert parse_scale(["greedy=3", "greedy=2"], KNOWN) == {"greedy": 2}


@pytest.mark.parametrize("entry", ["greedy", "greedy=", "greedy=x", "=3", "", "Greedy=2", "a b=1"])
def test_a_scale_that_is_not_one_says_what_is_expected(entry: str) -> None:
    with pytest.raises(StartError, match="expected NAME=NUMBER, such as greedy=3"):
        parse_scale([entry], KNOWN)


def test_a_scale_of_an_unknown_name_says_which_are_known() -> None:
    with pytest.raises(StartError, match="no gready; known: greedy, oracle, simulator"):
        parse_scale(["gready=2"], KNOWN)


@pytest.mark.parametrize("count", [0, -1, 65, 10**9])
def test_a_scale_out_of_range_says_the_range(count: int) -> None:
    with pytest.raises(StartError, match="between 1 and 64 processes"):
        parse_scale([f"greedy={count}"], KNOWN)


def test_without_options_the_spec_is_empty() -> None:
    assert spec_from(None, None, None, None, None) == {}


def test_options_become_fields() -> None:
    made = spec_from(None, 10, "max", 7, "readme")
    assert {key: made[key] for key in ("tasks", "pace", "seed")} == {
        "tasks": 10,
        "pace": "max",
        "seed": 7,
    }
    assert made["workload"]["preset"] == "readme"
    assert spec_from(None, None, "12.5", None, None) == {"pace": 12.5}


def test_options_lie_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("tasks: 5\nseed: 1\nworkload: {arrival_rate: 9, preset: hpc}\n")
    made = spec_from(file, None, None, 2, "documented")
    assert (made["tasks"], made["seed"]) == (5, 2)
    assert made["workload"]["arrival_rate"] == 9
    assert made["workload"]["preset"] == "documented"
    assert made["workload"]["mix"]["size"] == {"kind": "uniform", "low": 100, "high": 5000}


def test_a_json_file_is_read_as_well(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text('{"tasks": 5, "schedulers": ["greedy"]}')
    assert spec_from(file, None, None, None, None) == {"tasks": 5, "schedulers": ["greedy"]}


def test_an_empty_file_is_the_default(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("")
    assert spec_from(file, 3, None, None, None) == {"tasks": 3}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- 1", "a mapping of fields, not list"),
        ("tasks: [", "not valid YAML"),
        ("taks: 3", "did you mean tasks"),
    ],
)
def test_a_bad_file_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    with pytest.raises(SpecError, match=said):
        spec_from(file, None, None, None, None)


def test_bad_options_name_the_field() -> None:
    with pytest.raises(SpecError) as caught:
        spec_from(None, 0, "fast", -1, "hpcc")
    fields = [problem.partition(":")[0] for problem in caught.value.problems]
    assert sorted(fields) == ["pace", "seed", "tasks", "workload.preset"]
