"""The physics derived from a hardware profile, calculated by hand, and invalid files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from services.cli.main import app
from services.cli.runs.spec import spec_from
from services.lab.profiling.hardware_profile import ProfileError, calibrated, load, parse, size_of
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.times import seconds
from tests.unit.lab.profiling.profiles import TIMES, profile, timing


def task(size: float, intensity: float, memory: float) -> Tasks:
    columns = (np.array([float(value)]) for value in (size, intensity, memory, 0))
    return Tasks(np.array([0]), *columns)


def test_without_a_gpu_only_the_base_speed_is_calibrated() -> None:
    assert calibrated(parse(profile(), "it")) == {"physics": {"size_unit": 64}}


def test_a_gpu_gives_speed_up_bandwidth_memory_and_number() -> None:
    assert calibrated(parse(profile(gpu=True), "it")) == {
        "physics": {"size_unit": 64, "speedup_slope": 9, "bandwidth_mb_s": 12800},
        "cluster": {"gpus": 2, "gpu_memory_mb": 24000},
    }


def test_the_calibrated_physics_gives_back_what_was_measured() -> None:
    spec = RunSpec.parse(calibrated(parse(profile(gpu=True), "it")))
    on_gpu, on_cpu = seconds(task(64, 1, 1280), spec)[0]
    assert on_cpu == pytest.approx(2 / 3)
    # 2/3 / 10 and 1280 MB at 12,800 MB/s
    assert on_gpu == pytest.approx(1 / 15 + 0.1)
    # Half as intense: T = 1 / (0.5 + 0.5), S = 1 + 9 / 2
    assert seconds(task(64, 0.5, 0), spec)[0, 0] == pytest.approx(1 / 5.5)


def test_one_odd_size_does_not_move_the_base_speed() -> None:
    data = profile()
    data["cpu"]["products"][0] = timing(5, edge=512)
    assert calibrated(parse(data, "it")) == {"physics": {"size_unit": 64}}


def test_small_products_are_shown_but_not_judged() -> None:
    data = profile()
    data["cpu"]["products"].insert(0, timing(5, edge=128))
    assert calibrated(parse(data, "it")) == {"physics": {"size_unit": 64}}


def test_the_exponent_is_fitted_as_a_check() -> None:
    assert parse(profile(), "it").fitted_exponent == 1.5
    linear = [timing(size_of(edge), edge=edge) for edge in TIMES]
    outcome = parse(profile(cpu={**profile()["cpu"], "products": linear}), "it")
    assert outcome.fitted_exponent == 1
    assert outcome.warnings == ("times grow with size^1.00, the physics uses 1.5",)


def test_a_gpu_slower_than_the_cpu_has_no_speed_up_and_says_so() -> None:
    data = profile(gpu=True)
    data["gpu"]["products"] = [timing(2 * s, edge=edge) for edge, s in TIMES.items()]
    outcome = parse(data, "it")
    assert calibrated(outcome)["physics"]["speedup_slope"] == 0
    assert outcome.warnings == (
        "the GPU is slower than the CPU; the physics allows no speed-up below 1",
    )


def test_a_busy_machine_is_reported() -> None:
    data = profile()
    data["machine"]["busy_before"] = 0.4
    data["cpu"]["products"][1]["spread"] = 0.31
    assert parse(data, "it").warnings == (
        "other processes used 40% of the CPU beforehand",
        "repetitions differ, the machine was busy: CPU product of edge 1024 ±31%",
    )


def test_arrays_that_fit_the_cache_are_reported() -> None:
    data = profile()
    data["machine"]["cache_mb"] = 300
    assert "cache" in parse(data, "it").warnings[0]


def test_what_is_derived_is_in_the_file_and_worked_out_anew() -> None:
    outcome = parse(profile(gpu=True), "it")
    written = json.loads(outcome.model_dump_json(by_alias=True))
    assert written["cpu"]["products"][1]["gflop_s"] == 3.221  # 2 * 1024^3 / (2/3 s) / 1e9
    assert written["cpu"]["copy"]["mb_s"] == 25600
    assert written["calibration"][0] == {
        "field": "physics.size_unit", "value": 64, "measured": True, "why": "CPU, 3.221 GFLOP/s",
    }  # fmt: skip
    written["calibration"][0]["value"] = 5
    assert parse(written, "it") == outcome


def broken(path: str, value: Any) -> dict[str, Any]:
    data = profile(gpu=True)
    *above, last = path.split(".")
    place: Any = data
    for step in above:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[last] = value
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "something else, not a hardware profile; measure one with `hybrid profile`"),
        ({}, "something else, not a hardware profile"),
        ({"tasks": 5, "physics": {"split": "serial"}}, "a run spec, not a hardware profile"),
        (profile(version=2), "version 2 of the hardware profile, but only 1 can be read"),
        (profile(version="1.0"), "version '1.0' of"),
        (broken("cpu.products.0.median_s", -1), "cpu.products.0.median_s: .* greater than 0"),
        (broken("cpu.products.0.median_s", float("inf")), "median_s: .* finite"),
        (broken("cpu.products.0.median_s", 0), "median_s: .* greater than 0"),
        (broken("cpu.products", []), "cpu.products: .* at least 1 item"),
        (broken("cpu.products", [timing(1, edge=128)]), "no edge of 512 or more"),
        (broken("gpu.products", [timing(1, edge=64)]), "no edge of 512 or more"),
        (broken("gpu.count", 0), "gpu.count: .* greater than or equal to 1"),
        (broken("gpu.memory_mb", -8000), "gpu.memory_mb: .* greater than 0"),
        (broken("gpu.to_device.1.mb", "many"), "gpu.to_device.1.mb: .* valid number"),
        (
            broken("gpu.to_device.1.median_s", 1e-308),
            "calibrates to physics.bandwidth_mb_s: .* finite",
        ),
        (broken("cpu.products.0.edge", 10**400), "cpu.products.0.edge: .* less than or equal"),
        (broken("machine.speed", 3), "machine.speed: unknown key; allowed: blas, busy_before,"),
        (profile(machine={}), r"machine.system: Field required \(and 9 more\)"),
    ],
)
def test_a_bad_profile_says_in_one_line_what_is_wrong(
    tmp_path: Path, data: Any, message: str
) -> None:
    file = tmp_path / "hardware_profile.json"
    file.write_text(json.dumps(data))
    with pytest.raises(ProfileError, match=message) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "tasks: 5", "{", "[" * 100_000, "\ufeff"])
def test_what_is_not_json_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError, match="not JSON, so not a hardware profile"):
        load(file)


def test_bytes_and_missing_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "it.json"
    with pytest.raises(ProfileError, match="cannot be read: No such file"):
        load(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProfileError, match="not JSON"):
        load(file)


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    file = tmp_path / "hardware_profile.json"
    file.write_text(json.dumps(profile(gpu=True)))
    return file


def test_the_spec_file_lies_over_the_profile_and_options_over_both(
    tmp_path: Path, measured: Path
) -> None:
    spec = tmp_path / "run.yaml"
    spec.write_text("physics: {bandwidth_mb_s: 5, split: overlapped}\nseed: 3\n")
    made = spec_from(spec, 10, None, 4, None, measured)
    assert made["physics"] == {
        "size_unit": 64, "speedup_slope": 9, "bandwidth_mb_s": 5, "split": "overlapped",
    }  # fmt: skip
    assert made["cluster"] == {"gpus": 2, "gpu_memory_mb": 24000}
    assert (made["seed"], made["tasks"]) == (4, 10)


def test_the_command_lists_measured_assumed_and_given_values(
    tmp_path: Path, measured: Path
) -> None:
    spec = tmp_path / "run.yaml"
    spec.write_text("physics: {bandwidth_mb_s: 5, gpu_watts: 300}\n")
    message = CliRunner().invoke(
        app,
        ["run", "start", "--cluster", str(measured), "--spec", str(spec),
         "--url", "http://127.0.0.1:1"],
    ).stderr  # fmt: skip
    measured_line, assumed_line, given_line = message.splitlines()[:3]
    assert measured_line.startswith("measured: size_unit 64 (")
    assert "gpu_memory_mb 24000" in measured_line
    assert "cpu_watts 30" in assumed_line
    assert given_line == "from the spec: bandwidth_mb_s, gpu_watts"


@pytest.mark.parametrize("command", [("up", "--exit", "--tasks", "5"), ("run", "start")])
def test_a_bad_profile_ends_the_command_before_anything_starts(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = tmp_path / "spec.json"
    file.write_text('{"tasks": 5}')
    result = CliRunner().invoke(app, [*command, "--cluster", str(file)])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "a run spec, not a hardware profile" in result.stderr
