"""A task takes as long on the device it was recorded on as it did there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.lab.traces.mapping import parse_mapping
from services.lab.traces.problem_report import TraceError
from shared.domain.spec import RunSpec
from shared.domain.times import seconds
from tests.unit.lab.traces.reading import Read, read, written
from tests.unit.lab.traces.test_formats import PODS, SWF

JOBS = "secs,util,mb,t,what\n8,0.5,160,0,gemm\n27,1,320,1,trsm\n"
DEVICES = {
    "devices": [
        {"type": "v100", "count": 2, "speed": 2, "speedup_slope": 5, "bandwidth_mb_s": 1000},
        {"type": "k80", "count": 8, "speed": 1.5, "bandwidth_mb_s": 500},
        {"type": "cpu", "count": 4, "speed": 0.5},
    ]
}


def mapped(**rules: Any) -> Any:
    columns = {
        "seconds": {"column": "secs"},
        "intensity": {"column": "util"},
        "memory": {"column": "mb"},
        "arrival": {"column": "t"},
        "kind": "what",
    }
    return parse_mapping({"csv": {**columns, **rules}})


def jobs(tmp_path: Path, spec: dict[str, Any], **rules: Any) -> Read:
    path = written(tmp_path, "jobs.csv", JOBS)
    return read(path, mapping=mapped(**rules), spec=RunSpec.parse(spec))


@pytest.mark.parametrize(
    ("recorded_on", "column"), [("cpu", 2), ("v100", 0), ("k80", 1), ("gpu", 1)]
)
def test_the_formula_gives_the_recorded_seconds_on_that_type(
    tmp_path: Path, recorded_on: str, column: int
) -> None:
    """On `gpu`, the type with the most devices: the file does not say which it was."""
    result = jobs(tmp_path, {"cluster": DEVICES}, recorded_on=recorded_on)
    times = seconds(result.tasks, result.trace.spec)[:, column]
    assert times.tolist() == pytest.approx([8, 27], rel=1e-12)
    assert len(result.report.notes) == (recorded_on == "gpu")


def test_the_size_by_hand(tmp_path: Path) -> None:
    # Without the transfer of 0.16 s and 0.32 s, times the speed 2 (1 + 5 I), times I + 0.5.
    result = jobs(tmp_path, {"cluster": DEVICES}, recorded_on="v100")
    assert result.tasks.size.tolist() == pytest.approx(
        [1000 * (7.84 * 7) ** (2 / 3), 1000 * (26.68 * 18) ** (2 / 3)]
    )


def test_measured_times_are_looked_up_backwards(tmp_path: Path) -> None:
    curves = [
        {"kind": "gemm", "type": "v100", "sizes": [10, 1000], "seconds": [1, 100]},
        {"kind": "gemm", "type": "cpu", "sizes": [10, 1000], "seconds": [2, 200]},
    ]
    spec = {"cluster": DEVICES, "physics": {"measured": curves}}
    result = jobs(tmp_path, spec, recorded_on="v100", memory={"otherwise": 0})
    # gemm takes size / 10 seconds on a v100; trsm was not measured.
    assert result.tasks.size.tolist() == pytest.approx([80])
    assert result.messages == [
        "line 3: skipped: has no size that takes as long on the device it was recorded on: 27"
    ]


def test_a_time_shorter_than_moving_the_data_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "jobs.csv", JOBS.replace("160", "9000"))
    result = read(
        path, mapping=mapped(recorded_on="v100"), spec=RunSpec.parse({"cluster": DEVICES})
    )
    assert len(result.tasks) == 1
    assert "has no size" in result.messages[0]


def test_an_unknown_device_type_names_those_of_the_platform(tmp_path: Path) -> None:
    with pytest.raises(
        TraceError, match="tpu is no device type of the platform; allowed: cpu, gpu"
    ):
        jobs(tmp_path, {"cluster": DEVICES}, recorded_on="tpu")


def test_pods_ran_on_the_gpu_that_they_asked_for(tmp_path: Path) -> None:
    cluster = {
        "devices": [
            {"type": "v100m32", "count": 8, "speed": 3},
            {"type": "t4", "count": 9},
            {"type": "cpu"},
        ]
    }
    spec = RunSpec.parse({"cluster": cluster})
    result = read(written(tmp_path, "pods.csv", PODS), spec=spec)
    times = seconds(result.tasks, spec)
    # pod-0 on a CPU, pod-1 on the V100M32 that it asked for, the others on the most common GPU.
    recorded = times[np.arange(4), [2, 0, 1, 1]]
    assert recorded.tolist() == pytest.approx([16, 18, 8, 18])


def test_jobs_that_are_too_wide_are_skipped_and_counted(tmp_path: Path) -> None:
    spec = RunSpec.parse({"cluster": {"devices": [{"type": "cpu", "count": 3}]}})
    result = read(written(tmp_path, "t.swf", SWF), spec=spec)
    reason = "takes more devices than the platform has of one type (3)"
    assert result.report.skipped[reason] == 1
    assert result.tasks.width is not None
    assert result.tasks.width.tolist() == [2, 1]
    # Job 3 waited for job 2, which is gone, and that for job 1.
    assert result.tasks.parents == [[], [0]]
    # A file that is only converted keeps them: it has no platform.
    assert len(read(written(tmp_path, "t.swf", SWF)).tasks) == 3


def test_tasks_of_traces_are_not_split(tmp_path: Path) -> None:
    result = read(written(tmp_path, "t.swf", SWF))
    assert result.tasks.divisible is not None
    assert not result.tasks.divisible.any()


def test_facts_of_our_own_csv_are_checked(tmp_path: Path) -> None:
    header = "size,compute_intensity,memory_required,arrival_time,kind,width,divisible,home\n"
    long = "k" * 101
    lines = "5,0.5,1,0,gemm,2,1,0\n5,0.5,1,0,,,,\n"
    lines += f"5,0.5,1,0,{long},,,\n5,0.5,1,0,,-1,,\n5,0.5,1,0,,,,-2\n5,0.5,1,0,,,,7\n"
    result = read(written(tmp_path, "t.csv", header + lines), spec=RunSpec.parse({}))
    tasks = result.tasks
    assert tasks.width is not None
    assert tasks.divisible is not None
    assert tasks.home is not None
    assert (tasks.kind, tasks.width.tolist()) == (["gemm", ""], [2, 1])
    assert (tasks.divisible.tolist(), tasks.home.tolist()) == ([True, False], [0, -1])
    assert [text.split(": ", 1)[1] for text in result.messages] == [
        f"skipped: kind is longer than 100 characters: {'k' * 80}…",
        "skipped: width is not within 0..100000: -1",
        "skipped: home is below -1: -2",
        "skipped: home is no node of the platform (1): 7",
    ]
