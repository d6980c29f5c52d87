"""`hybrid platform` and `--platform`, without an arena."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.cli.runs.spec import spec_from
from services.lab.profiling import measure
from services.lab.profiling.hardware_profile import parse
from shared.domain.spec import RunSpec
from shared.errors import SpecError
from tests.unit.cli.test_commands import failed, hybrid, plain
from tests.unit.lab.profiling.profiles import profile

TIMES = "kind,type,size,mean_seconds\ngemm,cpu,1,1\ngemm,cpu,10,20\ngemm,cpu,100,100\n"
IMPORT = ("platform", "import", "csv", "times.csv", "-o", "mine.yaml")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def data(*arguments: str) -> Any:
    result = hybrid(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_list_shows_what_is_shipped() -> None:
    result = hybrid("platform", "list")
    assert result.exit_code == 0
    assert "4 h100, 4 a100, 2 cpu" in plain(result.stdout)
    names = [each["name"] for each in data("platform", "list")]
    assert names == ["dgx", "rack", "seeds", "workstation"]


def test_show_has_the_types_and_what_is_assumed() -> None:
    shown = data("platform", "show", "workstation")
    gpu = shown["types"][0]
    assert (gpu["type"], gpu["count"], gpu["memory_mb"]) == ("rtx4090", 1, 24_000)
    assert (gpu["watts"], gpu["assumed"]) == (450, ["idle_watts"])
    assert gpu["speed"] == pytest.approx([12.12, 12.12 * 2.959])
    assert shown["types"][-1]["memory_mb"] is None
    assert shown["measured"] is None
    assert RunSpec.parse(shown["spec"]).platform.types[0].name == "rtx4090"
    text = plain(hybrid("platform", "show", "workstation").stdout)
    assert "rtx4090" in text
    assert "launch prices" in text
    assert "idle power is in no data sheet" in text


def test_import_says_what_it_took_left_and_assumed() -> None:
    Path("times.csv").write_text(TIMES)
    result = hybrid("platform", "import", "csv", "times.csv", "--output", "mine.yaml")
    assert result.exit_code == 0, result.output
    assert result.stdout == "mine.yaml\n"
    notes = plain(result.stderr)
    assert "took 3 times of 1 kinds on cpu" in notes
    assert "left out noise: not every time has a deviation" in notes
    assert "assumed count of cpu: 1" in notes
    assert data("platform", "show", "mine.yaml")["measured"] == {
        "kinds": 1,
        "curves": 1,
        "points": 3,
    }


def test_import_takes_name_and_counts() -> None:
    Path("times.csv").write_text(TIMES)
    imported = data(*IMPORT, "--name", "lab", "--count", "cpu=8")
    assert imported["name"] == "lab"
    assert data("platform", "show", "mine.yaml")["types"][0]["count"] == 8


def test_check_prints_the_error_of_predictions() -> None:
    Path("times.csv").write_text(TIMES)
    assert hybrid(*IMPORT).exit_code == 0
    checked = data("platform", "check", "mine.yaml")
    assert checked["reproduction_error"] < 1e-14
    assert checked["kinds"][0]["errors"] == pytest.approx([0.5, 0.5, 3.0, 3.0])
    assert "50.0%" in hybrid("platform", "check", "mine.yaml").stdout
    assert "no measured times" in plain(hybrid("platform", "check", "dgx").stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("show dgxx", "no platform 'dgxx'; shipped: dgx, rack, seeds, workstation"),
        ("show missing.yaml", "missing.yaml: cannot be read"),
        ("check bad.yaml", "bad.yaml, line 2: cluster.cpus: Input should be greater than or equal"),
        ("import csv times.csv -o mine.json", "--output mine.json: a platform file ends in .yaml"),
        ("import csv times.csv -o no/mine.yaml", "--output no/mine.yaml: cannot be written there"),
        ("import csv missing.csv -o mine.yaml", "missing.csv: there is no such file"),
        ("import csv times.csv -o mine.yaml --count cpu", "expected TYPE=NUMBER, such as v100=4"),
        ("import csv times.csv -o mine.yaml --count tpu=1", "--count tpu: no such type"),
        ("import csv times.csv -o mine.yaml --host a", "--host is for StarPU, not for csv"),
        ("import gavel times.csv -o mine.yaml", "times.csv: not JSON"),
        ("import starpu . -o mine.yaml", "give StarPU's `sampling` folder"),
        ("import profile times.csv -o mine.yaml", "not a hardware profile"),
    ],
)
def test_mistakes_are_errors_that_say_what_to_do(arguments: str, message: str) -> None:
    Path("times.csv").write_text(TIMES)
    Path("bad.yaml").write_text("name: bad\ncluster: {cpus: 0}\n")
    assert message in failed("platform", *arguments.split())
    assert not Path("mine.yaml").exists()


def test_the_platform_is_under_the_spec_and_that_under_the_options(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("tasks: 5\ncluster: {network: {latency_s: 1}}\nphysics: {noise: 0.1}\n")
    made = spec_from(file, 7, None, None, None, platform="rack")
    assert made["tasks"] == 7
    assert made["cluster"]["network"] == {"bandwidth_mb_s": 12_500, "latency_s": 1}
    assert made["physics"]["noise"] == 0.1
    assert len(RunSpec.parse(made).platform) == 44


def test_a_spec_with_devices_of_its_own_contradicts_a_platform(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("cluster: {gpus: 2}\n")
    with pytest.raises(SpecError, match=r"cluster.gpus: platform dgx has its own; remove it"):
        spec_from(file, None, None, None, None, platform="dgx")
    file.write_text("cluster: {gpus: 4}\n")  # the default, as in a spec with all fields
    assert spec_from(file, None, None, None, None, platform="dgx")["cluster"]["devices"]


@pytest.mark.parametrize("command", ["run start", "up", "experiment run queues"])
def test_wherever_a_run_starts_a_platform_can_be_given(command: str) -> None:
    assert "no platform 'dgxx'" in failed(*command.split(), "--platform", "dgxx")
    both = failed(*command.split(), "--platform", "dgx", "--cluster", "machine.json")
    assert "--cluster and --platform both describe the machines: give one of them" in both


def test_a_hardware_profile_is_a_platform_too() -> None:
    Path("machine.json").write_text(json.dumps(profile(gpu=True)))
    made = RunSpec.parse(spec_from(None, None, None, None, None, platform="machine.json"))
    assert made.physics.size_unit == 64
    assert [(each.name, each.count) for each in made.platform.types] == [("gpu", 2), ("cpu", 1)]
    written = hybrid("platform", "import", "profile", "machine.json", "-o", "machine.yaml")
    assert written.exit_code == 0
    again = RunSpec.parse(spec_from(None, None, None, None, None, platform="machine.yaml"))
    assert again.model_dump() == made.model_dump()


def test_a_profile_can_be_written_as_a_platform_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "measure", lambda *arguments: parse(profile(gpu=True), "it"))
    assert hybrid("profile", "--out", "laptop.yaml").exit_code == 0
    shown = data("platform", "show", "laptop.yaml")
    assert shown["name"] == "laptop"
    assert [each["type"] for each in shown["types"]] == ["gpu", "cpu"]
    assert shown["spec"]["physics"] == {"size_unit": 64}
