"""The run spec: its defaults, its files, and errors that say what to write instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.domain.spec import RunSpec
from shared.errors import SpecError

NAN, INF = float("nan"), float("inf")

FULL: dict[str, Any] = {
    "name": "everything given",
    "seed": 7,
    "tasks": 10_000,
    "pace": "max",
    "schedulers": ["greedy", "oracle"],
    "cluster": {"cpus": 2, "gpus": 8, "gpu_memory_mb": 24_000},
    "physics": {"split": "overlapped", "cost_model": "electricity", "memory_policy": "page"},
    "oracle": {"step": 0.1},
    "workload": {
        "preset": "readme",
        "arrival_rate": 10.5,
        "mix": {"size": {"kind": "pareto", "low": 100, "alpha": 1.5, "high": 9000}},
        "dependencies": {"probability": 0.25, "max_parents": 2, "window": 32},
        "drift": [{"after": 100, "preset": "cpu_friendly"}, {"after": 200, "preset": "hpc"}],
    },
}


def problems(data: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        RunSpec.parse(data)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


def problem(data: Any) -> str:
    (only,) = problems(data)
    return only


def nested(path: str, value: Any) -> dict[str, Any]:
    """{'a': {'b': value}} for the path 'a.b'."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def test_an_empty_spec_is_the_default() -> None:
    assert RunSpec.parse({}) == RunSpec() == RunSpec.parse(None)


def test_a_run_has_the_arrival_rate_of_its_preset_unless_it_gives_one() -> None:
    for workload, rate in (
        ({}, 12),
        ({"preset": "readme"}, 4),
        ({"preset": "readme", "arrival_rate": 9}, 9),
    ):
        assert RunSpec.parse({"workload": workload}).workload.arrival_rate == rate
    assert RunSpec().workload.arrival_rate == 12


def test_a_stored_spec_keeps_its_arrival_rate() -> None:
    """Four tasks per second were the default of every preset in version 0.1."""
    stored = RunSpec.parse({}).model_dump(mode="json")
    stored["workload"]["arrival_rate"] = 4
    assert RunSpec.parse(stored).workload.arrival_rate == 4


def test_a_spec_does_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        RunSpec().seed = 3  # type: ignore[misc]


@pytest.mark.parametrize("data", [{}, FULL, {"workload": {"preset": "gpu_friendly"}}])
def test_a_spec_survives_json(data: dict[str, Any]) -> None:
    spec = RunSpec.parse(data)
    assert RunSpec.parse(json.loads(json.dumps(spec.model_dump(mode="json")))) == spec


@pytest.mark.parametrize("name", ["spec.yaml", "spec.yml", "spec.json"])
def test_a_spec_is_read_from_yaml_or_json(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(FULL) if name.endswith("json") else yaml.safe_dump(FULL))
    assert RunSpec.load(path) == RunSpec.parse(FULL)


def test_an_empty_file_is_the_default_spec(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("# nothing\n")
    assert RunSpec.load(path) == RunSpec()


def test_a_preset_fills_what_the_mix_leaves_out() -> None:
    mix = {"memory": {"values": {"kind": "uniform", "low": 1, "high": 2}}}
    spec = RunSpec.parse({"workload": {"preset": "readme", "mix": mix}})
    expected = spec.workload.mix
    assert expected.size.model_dump() == {"kind": "uniform", "low": 500, "high": 1500}
    assert expected.intensity.model_dump() == {"kind": "uniform", "low": 0.1, "high": 0.9}
    assert expected.memory.values.model_dump() == {"kind": "uniform", "low": 1, "high": 2}


@pytest.mark.parametrize(
    ("data", "messages"),
    [
        ({"tsks": 5}, ["tsks: unknown key", "did you mean tasks?", "allowed:", "pace", "seed"]),
        (
            {"workload": {"drift": [{"after": 1, "preset": "hpc", "untl": 2}]}},
            ["workload.drift.0.untl: unknown key", "allowed: after, preset"],
        ),
        (
            {"workload": {"mix": {"sizes": {}}}},
            ["workload.mix.sizes: unknown key", "did you mean size?", "intensity, memory, size"],
        ),
        (
            {"workload": {"mix": {"size": {"kind": "pareto", "low": 1, "alpha": 2, "hgh": 3}}}},
            ["workload.mix.size.hgh: unknown key", "did you mean high?", "alpha, high, kind, low"],
        ),
        (
            {"workload": {"mix": {"intensity": {"kind": "bimodal", "width": 1}}}},
            ["workload.mix.intensity.width: unknown key", "high, high_share, kind, low, spread"],
        ),
        # The names of distributions are no keys; one that stands as a key is named all the same.
        ({"workload": {"uniform": {}}}, ["workload.uniform: unknown key", "mix"]),
    ],
)
def test_an_unknown_key_is_named_with_what_is_allowed(
    data: dict[str, Any], messages: list[str]
) -> None:
    message = problem(data)
    for part in messages:
        assert part in message


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("pace", [-1, 0, NAN, INF, "fast", None, [1]]),
        ("seed", [-1, 2**63, "x", 1.5]),
        ("tasks", [0, "many"]),
        ("name", ["x" * 101, 5]),
        ("cluster", [4, []]),
        ("cluster.gpus", [0, -4, 65, 4.5, None]),
        ("cluster.cpus", [0]),
        ("cluster.gpu_memory_mb", [0, INF]),
        ("physics.split", ["parallel"]),
        ("physics.cost_model", ["free"]),
        ("physics.memory_policy", ["swap"]),
        ("physics.bandwidth_mb_s", [0, NAN]),
        ("physics.size_unit", [0]),
        ("physics.size_exponent", [INF]),
        ("physics.intensity_offset", [0]),
        ("physics.gpu_watts", [-1]),
        ("physics.dollars_per_kwh", [NAN]),
        ("oracle.step", [0, 0.6, NAN]),
        (
            "schedulers",
            [
                "oracle",
                ["oracle", "greedy", "oracle"],
                ["Oracle"],
                ["a.b"],
                ["oracle\n"],
                [""],
                ["a" * 33],
            ],
        ),
        ("workload", ["hpc"]),
        ("workload.preset", ["nope", ["hpc"], None]),
        ("workload.arrival_rate", [0, INF]),
        ("workload.dependencies.probability", [1.1, NAN]),
        ("workload.dependencies.max_parents", [0, 17]),
        ("workload.dependencies.window", [1_000_001]),
        ("workload.mix", [["size"]]),
        (
            "workload.mix.size",
            [
                3,
                {"kind": "gauss"},
                {"low": 1},
                {"kind": "uniform", "low": 0, "high": 5},
                {"kind": "uniform", "low": 6, "high": 5},
            ],
        ),
        (
            "workload.mix.intensity",
            [{"kind": "uniform", "low": 0, "high": 1.01}, {"kind": "pareto", "low": 1, "alpha": 1}],
        ),
    ],
)
def test_an_impossible_value_is_refused_by_the_name_of_its_field(
    path: str, values: list[Any]
) -> None:
    for value in values:
        assert problem(nested(path, value)).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("workload.mix.intensity", {"kind": "bimodal", "high": 1.2}, "high"),
        ("workload.mix.intensity", {"kind": "bimodal", "spread": NAN}, "spread"),
        ("workload.mix.size", {"kind": "lognormal", "median": -1, "sigma": 1}, "median"),
        ("workload.mix.size", {"kind": "lognormal", "sigma": 1}, "median"),
        ("workload.mix.size", {"kind": "pareto", "low": 1, "alpha": 0}, "alpha"),
        ("workload.mix.memory", {"size_exponent": 1}, "values"),
    ],
)
def test_a_wrong_parameter_of_a_distribution_is_named(path: str, value: Any, field: str) -> None:
    assert problem(nested(path, value)).startswith(f"{path}.{field}: ")


def test_an_unknown_preset_is_answered_with_the_known_ones() -> None:
    message = problem({"workload": {"preset": "nope"}})
    assert "unknown preset 'nope'" in message
    assert "hpc, documented, readme, gpu_friendly, cpu_friendly" in message
    message = problem({"workload": {"drift": [{"after": 1, "preset": "nope"}]}})
    assert message.startswith("workload.drift.0.preset: unknown preset 'nope'")


@pytest.mark.parametrize("starts", [[5, 4], [5, 5], [1, 2, 0]])
def test_drift_steps_must_be_in_order(starts: list[int]) -> None:
    drift = [{"after": after, "preset": "hpc"} for after in starts]
    message = problem({"workload": {"drift": drift}})
    assert message.startswith("workload.drift: ")
    assert "rising order" in message


def test_a_wrong_value_is_shown() -> None:
    assert "(got 0)" in problem({"cluster": {"gpus": 0}})
    assert "(got 'parallel')" in problem({"physics": {"split": "parallel"}})


def test_all_problems_are_listed_at_once() -> None:
    messages = problems(
        {
            "pace": -1,
            "tsks": 3,
            "cluster": {"gpus": 0, "cpu": 1},
            "physics": {"split": "parallel"},
            "workload": {"preset": "nope", "arrival_rate": 0, "drift": [{"after": -1}]},
        }
    )
    assert sorted(line.split(":")[0] for line in messages) == [
        "cluster.cpu",
        "cluster.gpus",
        "pace",
        "physics.split",
        "tsks",
        "workload.arrival_rate",
        "workload.drift.0.after",
        "workload.drift.0.preset",
        "workload.preset",
    ]


@pytest.mark.parametrize(
    ("data", "kind"), [([], "list"), ("hpc", "str"), (3, "int"), (True, "bool")]
)
def test_a_spec_that_is_no_mapping_is_refused(data: Any, kind: str) -> None:
    assert problem(data) == f"a run spec is a mapping of fields, not {kind}"


def load_problem(path: Path) -> str:
    with pytest.raises(SpecError) as caught:
        RunSpec.load(path)
    (only,) = caught.value.problems
    return only


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    assert load_problem(missing).startswith(f"{missing}: cannot be read: ")
    assert load_problem(tmp_path).startswith(f"{tmp_path}: cannot be read: ")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x80")
    assert load_problem(binary).startswith(f"{binary}: cannot be read: ")


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("broken.yaml", "cluster: {gpus: 4", "YAML"),
        ("tag.yaml", "!!python/object/apply:os.system ['true']", "YAML"),
        ("day.yaml", "name: 2024-13-45", "YAML"),  # looks like a date, but is none
        ("broken.json", '{"cluster": ', "JSON"),
        ("deep.json", "[" * 100_000, "JSON"),
    ],
)
def test_a_broken_file_is_named_with_its_format(
    tmp_path: Path, name: str, text: str, kind: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert load_problem(path).startswith(f"{path}: not valid {kind}: ")
