"""Declarations of experiments: what they mean, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from services.lab.experiments import declaration as experiments
from services.lab.experiments.declaration import Experiment, ExperimentError, merged, parse

PLAIN: dict[str, Any] = {
    "name": "mine",
    "title": "Mine",
    "question": "Which one?",
    "tasks": 100,
    "figures": ["total_time"],
}


def declared(**more: Any) -> Experiment:
    return parse({**PLAIN, **more}, "mine.yaml")


def test_the_shift_comes_where_the_judged_tasks_begin() -> None:
    shift = experiments.built_in()["shift"]
    spec = shift.run_spec("", 1)
    assert [(step.after, step.preset) for step in spec.workload.drift] == [
        (shift.judge_from, "cpu_friendly")
    ]


def test_a_run_has_the_variants_changes_over_the_experiments_spec() -> None:
    mine = declared(
        spec={"pace": 50, "workload": {"preset": "readme", "arrival_rate": 2}},
        variants={"fast": {"spec": {"workload": {"arrival_rate": 9}}}},
    )
    spec = mine.run_spec("fast", 7)
    assert (spec.pace, spec.seed, spec.tasks, spec.name) == (50, 7, 100, "mine/fast/7")
    assert (spec.workload.preset, spec.workload.arrival_rate) == ("readme", 9)


def test_every_variant_runs_with_a_seed_before_the_next_seed() -> None:
    mine = declared(seeds=[3, 1], variants={"a": {}, "b": {}})
    assert list(mine.runs()) == [("a", 3), ("b", 3), ("a", 1), ("b", 1)]


def test_merging_does_not_change_its_arguments() -> None:
    base = {"a": {"b": 1, "c": [1]}}
    assert merged(base, {"a": {"b": 2}, "d": 3}) == {"a": {"b": 2, "c": [1]}, "d": 3}
    assert base == {"a": {"b": 1, "c": [1]}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": 0}, "mine.yaml: tasks: "),
        ({"judge_from": 100}, "judge_from (100) leaves none of 100 tasks"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [1, 1]}, "duplicate seed"),
        ({"figures": ["pie"]}, "figures.0"),
        ({"colour": "red"}, "mine.yaml: colour: unknown key; allowed: axis, baseline, claims"),
        (
            {"variants": {"uniform": {"valeu": 1}}},
            "mine.yaml: variants.uniform.valeu: unknown key (did you mean value?); allowed: label,",
        ),
        ({"claims": [{"at_least": 6}]}, "set exactly one of ratio, recovered and order"),
        ({"claims": [{"ratio": ["a", "b"]}]}, "set at_least or at_most with a ratio"),
        ({"claims": [{"recovered": "a"}]}, "set recovered and within_tasks together"),
        (
            {"claims": [{"ratio": ["a", "b"], "at_most": 1, "variants": ["x"]}]},
            "claims: no variant x",
        ),
        ({"seeds": [-1]}, "a seed is at least 0 and below 2**63"),
        ({"spec": {"schedulers": ["oracle"]}}, "baseline: greedy not among the schedulers"),
        (
            {"spec": {"schedulers": ["greedy"]}, "claims": [{"order": ["greedy", "b"]}]},
            "claims: b not among the schedulers",
        ),
        (
            {"spec": {"schedulers": ["greedy", "oracle"]}, "plugins": ["mine.py"]},
            "plugins: a run has only the schedulers that its spec lists",
        ),
        ({"name": "Not A Name"}, "name"),
        ({"spec": {"pace": -1}}, "pace"),
        ({"variants": {"a": {"spec": {"workload": {"preset": "nope"}}}}}, "unknown preset"),
    ],
)
def test_an_invalid_declaration_is_refused_with_the_reason(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ExperimentError, match=re.escape(message)):
        declared(**change)


def test_an_experiment_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("{name: mine, title: Mine, question: '?', tasks: 5, figures: [regret]}")
    assert experiments.load(str(file)).tasks == 5


def test_an_unknown_name_is_refused_with_the_known_names() -> None:
    with pytest.raises(ExperimentError, match="no experiment 'shfit'; built in: dag, energy"):
        experiments.load("shfit")
