"""Gavel's throughputs, our own CSV and hardware profiles as platforms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.lab.platforms.gavel import import_gavel
from services.lab.platforms.hardware_profile import import_profile
from services.lab.platforms.imported import MOST_INLINE_POINTS, Imported, ImportFailed
from services.lab.platforms.times_csv import import_csv
from services.lab.profiling.hardware_profile import calibrated, parse
from shared.domain.hardware.measured_times import Curve
from shared.domain.physics import price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.times import seconds
from shared.domain.workload import Cursor, generate
from shared.errors import SpecError
from shared.platforms.platform_file import load
from tests.unit.lab.profiling.profiles import profile

THROUGHPUTS = {
    "k80": {
        "('LM', 1)": {"null": 4.0, "('LM', 1)": [2.0, 2.0]},
        "('LM', 2)": {"null": 0.0},
        "('A3C', 1)": {"null": 0.5},
    },
    "v100": {"('LM', 1)": {"null": 20.0}, "('LM', 2)": {"null": 32.0}},
    "v100_unconsolidated": {"('LM', 2)": {"null": 16.0}},
}


def throughputs(folder: Path, data: Any) -> Path:
    file = folder / "throughputs.json"
    file.write_text(json.dumps(data))
    return file


def test_gavel_gives_seconds_per_step_of_a_job_alone(tmp_path: Path) -> None:
    imported = import_gavel(throughputs(tmp_path, THROUGHPUTS), "mine")
    times = {(curve.kind, curve.type): curve.seconds for curve in imported.curves}
    assert times == {
        ("LM x1", "k80"): (0.25,), ("A3C x1", "k80"): (2.0,),
        ("LM x1", "v100"): (0.05,), ("LM x2", "v100"): (0.03125,),
    }  # fmt: skip
    left_out = " | ".join(imported.left_out)
    assert left_out.startswith("1 throughputs of two jobs that share a device")
    assert "cannot run there: LM x2 on k80" in left_out
    assert "v100_unconsolidated" in left_out


def test_a_gavel_job_takes_its_steps_over_its_throughput(tmp_path: Path) -> None:
    made = import_gavel(throughputs(tmp_path, THROUGHPUTS), "mine").write(tmp_path / "mine.yaml")
    spec = RunSpec.parse(made.spec_fields())
    zero = np.zeros(3)
    size = np.array([1000.0, 1000.0, 64.0])
    tasks = Tasks(np.arange(3), size, zero, zero, zero, kind=["LM x1", "A3C x1", "LM x2"],
                  width=np.array([1, 1, 2]))  # fmt: skip
    assert seconds(tasks, spec) == pytest.approx(
        np.array([[250, 50], [2000, np.inf], [np.inf, 2]]), rel=1e-9
    )
    assert [each.accelerator for each in spec.platform.types] == [True, True]


def test_gavels_devices_are_as_many_as_the_widest_job_needs_unless_given(tmp_path: Path) -> None:
    imported = import_gavel(throughputs(tmp_path, THROUGHPUTS), "mine")
    counts = [device["count"] for device in imported.fields["cluster"]["devices"]]
    assert counts == [2, 2]
    given = imported.with_counts({"v100": 16})
    assert [device["count"] for device in given.fields["cluster"]["devices"]] == [2, 16]
    assert any(each.startswith("count of k80") for each in given.assumed)
    assert not any(each.startswith("count of v100") for each in given.assumed)
    with pytest.raises(ImportFailed, match="--count tpu: no such type; imported: k80, v100"):
        imported.with_counts({"tpu": 1})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "should be an object by device type"),
        ({"k80": [1]}, "should be an object by device type"),
        ({"k80": {"LM": {"null": 1.0}}}, r"'LM' is no job; expected such as"),
        ({"k80": {"('LM', 1)": {}}}, "no throughput of a job alone"),
    ],
)
def test_another_file_is_not_gavels(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(ImportFailed, match=message):
        import_gavel(throughputs(tmp_path, data), "mine")


def test_a_csv_gives_one_device_of_each_type(tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    file.write_text("kind,type,size,mean_seconds\na,cpu,1,2\na,tpu,1,0.5\na,v100,1,0.25\n")
    imported = import_csv(file, "mine")
    assert imported.fields["cluster"]["devices"] == [
        {"type": "cpu", "count": 1},
        {"type": "tpu", "count": 1},
        {"type": "v100", "count": 1, "memory_mb": 16_000, "watts": 300},
    ]
    assert imported.took == ["3 times of 1 kinds on cpu, tpu, v100"]
    assert "memory_mb of tpu: the arena's default" in imported.assumed
    assert "noise" not in imported.fields.get("physics", {})


def test_a_csv_with_deviations_gives_measured_noise(tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    file.write_text("kind,type,size,mean_seconds,deviation\na,cpu,1,2,0.1\n")
    made = import_csv(file, "mine").write(tmp_path / "mine.yaml")
    assert made.spec_fields()["physics"]["noise"] == "measured"
    assert made.times[0].deviations == (0.1,)


def test_a_csv_with_a_mistake_gives_its_line(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("kind,type,size,mean_seconds\na,cpu,1,fast\n")
    with pytest.raises(SpecError, match=r"times.csv, line 2: mean_seconds: should be a number"):
        import_csv(tmp_path / "times.csv", "mine")


def test_many_times_are_written_beside_the_file(tmp_path: Path) -> None:
    sizes = tuple(float(size) for size in range(1, MOST_INLINE_POINTS + 2))
    curve = Curve(kind="a", type="cpu", sizes=sizes, seconds=sizes)
    fields = {"name": "mine", "cluster": {"devices": [{"type": "cpu"}]}}
    Imported(fields, (curve,)).write(tmp_path / "mine.yaml")
    assert "times: mine.parquet" in (tmp_path / "mine.yaml").read_text()
    assert load(tmp_path / "mine.yaml").times == (curve,)


@pytest.mark.parametrize("gpu", [True, False])
def test_a_profile_as_a_platform_gives_the_same_prices_as_the_profile(
    tmp_path: Path, gpu: bool
) -> None:
    measured = parse(profile(gpu=gpu), "it")
    made = import_profile(measured, "mine").write(tmp_path / "mine.yaml")
    by_profile, by_platform = (
        RunSpec.parse(fields) for fields in (calibrated(measured), made.spec_fields())
    )
    tasks, _ = generate(RunSpec(), Cursor(), 500)
    share = np.linspace(0, 1, 500)
    device, cpu = by_profile.platform.complete(tasks.task_id, share)
    one, other = (price(tasks, share, spec, device, cpu) for spec in (by_profile, by_platform))
    for name in type(one).__slots__:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_a_profile_says_what_stays_assumed() -> None:
    imported = import_profile(parse(profile(), "it"), "mine")
    assert imported.took == ["physics.size_unit 64 (CPU, 3.221 GFLOP/s)"]
    assert "cluster.gpus: 4, no GPU was measured" in imported.assumed
