"""Each format against values calculated by hand, from T = (N / 1000) ** 1.5 / (I + 0.5)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from services.lab.traces.mapping import parse_mapping
from services.lab.traces.problem_report import TraceError
from services.lab.traces.trace import detect
from shared.domain.spec import Physics, RunSpec
from tests.unit.lab.traces.reading import SAMPLES, read, written

OWN = """size,compute_intensity,memory_required,arrival_time,dependencies
100,0.5,64,0,
200,0.25,128,0.5,0
300,1,0,0.5,1;0;1
"""

# job, submit, wait, run, processors, cpu, memory, -, -, requested memory, status, ..., preceding
SWF = """; Version: 2.2
; MaxProcs: 8

1 100 5 8 2 4 1000 2 60 -1 1 1 1 1 1 1 -1 -1
2 103 5 27 4 -1 -1 4 60 500 1 1 1 1 1 1 1 10
  3   110 0 18 1 18 -1 1 60 -1 0 1 1 1 1 1 2 0
4 111 0 -1 1 -1 -1 1 60 -1 5 1 1 1 1 1 -1 -1
5 112 0 0 1 0 -1 1 60 -1 1 1 1 1 1 1 -1 -1
6 113 0 -1 1 -1 -1 1 60 -1 -1 1 1 1 1 1 -1 -1
7 114 0 9 1 4 -1 1 60 -1 3 1 1 1 1 1 -1 -1
"""

PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
scheduled_time
pod-0,8000,1000,0,0,,LS,Succeeded,50,71,55
pod-1,8000,2000,1,1000,V100M16|V100M32,BE,Running,60,80,62
pod-2,8000,2000,1,500,,BE,Running,61,69,61
pod-3,8000,2000,8,1000,,BE,Failed,62,80,62
pod-4,8000,2000,0,0,,LS,Pending,63,90,
"""


def workflow() -> dict[str, Any]:
    return {
        "name": "two steps",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [
                    {"name": "a", "id": "a1", "parents": [], "children": ["b1"]},
                    {"name": "b", "id": "b1", "parents": ["a1"], "inputFiles": ["x"]},
                    {"name": "c", "id": "c1", "parents": ["b1", "a1"]},
                ],
                "files": [{"id": "x", "sizeInBytes": 10}],
            },
            "execution": {
                "makespanInSeconds": 50,
                "tasks": [
                    {"id": "c1", "runtimeInSeconds": 18, "avgCPU": 250.0, "coreCount": 4},
                    {"id": "a1", "runtimeInSeconds": 8.0, "avgCPU": 50, "memoryInBytes": 2e9},
                    {"id": "b1", "runtimeInSeconds": 27, "command": {"program": "b"}},
                ],
                "machines": [{"nodeName": "n", "cpu": {"coreCount": 8}}],
            },
        },
    }


def test_our_own_csv_is_read_unchanged(tmp_path: Path) -> None:
    result = read(written(tmp_path, "tasks.csv", OWN))
    assert result.trace.format == "csv"
    assert result.tasks.task_id.tolist() == [0, 1, 2]
    assert result.tasks.size.tolist() == [100, 200, 300]
    assert result.tasks.compute_intensity.tolist() == [0.5, 0.25, 1]
    assert result.tasks.memory_required.tolist() == [64, 128, 0]
    assert result.tasks.arrival_time.tolist() == [0, 0.5, 0.5]
    assert result.tasks.parents == [[], [0], [0, 1]]
    assert result.messages == []


def test_dependencies_are_by_task_id_when_there_is_one(tmp_path: Path) -> None:
    text = (
        "arrival_time,task_id,dependencies,size,compute_intensity,memory_required,extra\n"
        "1,seven,,100,0.5,64,x\n2,nine,seven,100,0.5,64,y\n3,8,nine; seven,100,0.5,64,\n"
    )
    result = read(written(tmp_path, "tasks.csv", text))
    assert result.tasks.parents == [[], [0], [0, 1]]
    assert result.tasks.arrival_time.tolist() == [1, 2, 3]


def test_swf_sizes_take_as_long_as_the_job_ran(tmp_path: Path) -> None:
    result = read(written(tmp_path, "cluster.swf", SWF))
    assert result.trace.format == "swf"
    # 4 of 8 s computed: I = 0.5, (8 * 1) ** (2/3) = 4; unknown: 0.5, 27 ** (2/3) = 9;
    # all of 18 s computed: I = 1, (18 * 1.5) ** (2/3) = 9.
    assert result.tasks.size.tolist() == pytest.approx([4000, 9000, 9000], rel=1e-12)
    assert result.tasks.compute_intensity.tolist() == [0.5, 0.5, 1]
    # Main memory is not held against a GPU.
    assert result.tasks.memory_required.tolist() == [0, 0, 0]
    assert result.tasks.width is not None
    assert result.tasks.width.tolist() == [2, 4, 1]
    assert result.tasks.arrival_time.tolist() == [0, 3, 10]
    assert result.tasks.parents == [[], [0], [1]]
    assert result.messages == [
        "line 3: skipped: empty line",
        "line 7: skipped: job was cancelled (keep_status)",
        "line 8: skipped: ran for no time",
        "line 9: skipped: missing value: run_time",
        "line 10: skipped: job has status 3 (keep_status)",
    ]
    assert result.trace.substituted["intensity"].otherwise == 1


def test_alibabas_pods_become_tasks(tmp_path: Path) -> None:
    result = read(written(tmp_path, "openb_pod_list_default.csv", PODS))
    assert result.trace.format == "alibaba"
    # No GPU: 16 s on a CPU at I = 0, (16 * 0.5) ** (2/3) = 4. On a GPU times are 1 + 3 I shorter:
    # a whole one for 18 s, (18 * 4 * 1.5) ** (2/3); half of one for 8 s, (8 * 2.5 * 1) ** (2/3).
    whole = 1000 * 108 ** (2 / 3)
    half = 1000 * 20 ** (2 / 3)
    assert result.tasks.compute_intensity.tolist() == [0, 1, 0.5, 1]
    assert result.tasks.size.tolist() == pytest.approx([4000, whole, half, whole], rel=1e-12)
    assert result.tasks.memory_required.tolist() == [0] * 4
    assert result.tasks.width is not None
    assert result.tasks.width.tolist() == [1, 1, 1, 8]
    assert result.tasks.kind == ["", "V100M16|V100M32", "", ""]
    assert result.tasks.arrival_time.tolist() == [0, 10, 11, 12]
    assert result.messages == ["line 6: skipped: missing value: deletion_time - scheduled_time"]
    assert result.trace.substituted["intensity"].limited == 1


def test_a_workflow_becomes_tasks_with_parents(tmp_path: Path) -> None:
    result = read(written(tmp_path, "wf.json", json.dumps(workflow())))
    assert result.trace.format == "wfcommons"
    assert result.tasks.compute_intensity.tolist() == [0.5, 0.5, 1]
    assert result.tasks.size.tolist() == pytest.approx([4000, 9000, 9000], rel=1e-12)
    assert result.tasks.memory_required.tolist() == [0, 0, 0]
    assert result.tasks.arrival_time.tolist() == [0, 0, 0]
    assert result.tasks.parents == [[], [0], [0, 1]]
    assert result.tasks.kind == ["a", "b", "c"]
    assert result.messages == []


def test_a_workflow_may_have_its_measurements_first(tmp_path: Path) -> None:
    other = workflow()
    inside = other["workflow"]
    other["workflow"] = {name: inside[name] for name in ("execution", "specification")}
    result = read(written(tmp_path, "wf.json", json.dumps(other)))
    assert result.tasks.size.tolist() == pytest.approx([4000, 9000, 9000], rel=1e-12)


@pytest.mark.parametrize("runtime", ["runtime", "runtimeInSeconds"])
def test_older_workflows_have_one_list(tmp_path: Path, runtime: str) -> None:
    tasks = [
        {"name": "a1", "id": "a1", runtime: 8, "avgCPU": 50, "memory": 1000, "parents": []},
        {"name": "b1", "id": "b1", runtime: 27, "parents": ["a1"]},
    ]
    text = json.dumps({"schemaVersion": "1.4", "workflow": {"makespan": 3, "tasks": tasks}})
    result = read(written(tmp_path, "wf.json", text))
    assert result.tasks.size.tolist() == pytest.approx([4000, 9000], rel=1e-12)
    assert result.tasks.parents == [[], [0]]


def test_the_physics_of_the_run_is_inverted(tmp_path: Path) -> None:
    spec = RunSpec(physics=Physics(size_unit=10, size_exponent=2, intensity_offset=1))
    result = read(written(tmp_path, "cluster.swf", SWF), spec=spec)
    # (8 * 1.5) ** 0.5, (27 * 1.5) ** 0.5, (18 * 2) ** 0.5, times 10.
    assert result.tasks.size.tolist() == pytest.approx([34.641016, 63.639610, 60])
    fixed = parse_mapping({"physics": {"size_unit": 1000}})
    result = read(written(tmp_path, "cluster.swf", SWF), spec=spec, mapping=fixed)
    assert result.tasks.size[0] == pytest.approx(4000)


@pytest.mark.parametrize(
    ("name", "format", "tasks"),
    [
        ("tasks.csv", "csv", 120),
        ("cluster.swf", "swf", 97),
        ("pods.csv", "alibaba", 78),
        ("pipeline.json", "wfcommons", 31),
        ("training.tsv", "gavel", 60),
        ("jobs.json", "philly", 40),
        ("slurm.csv", "helios", 50),
    ],
)
def test_the_samples_are_told_apart_by_what_is_in_them(
    tmp_path: Path, name: str, format: str, tasks: int
) -> None:
    content = (SAMPLES / name).read_bytes()
    for path in (
        SAMPLES / name,
        written(tmp_path, name + ".gz", gzip.compress(content)),
        written(tmp_path, "trace", content),
        written(tmp_path, "trace.gz", b"" + gzip.compress(b"\xef\xbb\xbf" + content)),
        written(tmp_path, "windows.txt", content.replace(b"\n", b"\r\n")),
    ):
        result = read(path)
        assert result.trace.format == format
        assert len(result.tasks) == tasks


def test_what_cannot_be_told_asks_for_the_format(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="unknown format; set it with --format"):
        detect(written(tmp_path, "trace.txt", "hello\nworld\n"))
    with pytest.raises(TraceError, match="the file is empty"):
        detect(written(tmp_path, "empty.txt", ""))
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        detect(tmp_path / "nothing.csv")
    with pytest.raises(TraceError, match="cannot be read: Is a directory"):
        detect(tmp_path)
