"""Every mistake in a platform file gives the line, the field and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.errors import SpecError
from shared.platforms.platform_file import load, parse

GOOD = """\
name: mine
description: two kinds of devices
cluster:
  devices:
    - {type: v100, count: 2, memory_mb: 16000}
    - type: cpu
      watts: 100
times:
  - {kind: gemm, type: cpu, sizes: [1, 2], seconds: [1, 4]}
  - {kind: gemm, type: v100, sizes: [1, 2], seconds: [0.1, 0.4]}
"""


def problems(text: str, folder: Path = Path()) -> list[str]:
    with pytest.raises(SpecError) as caught:
        parse(text, "mine.yaml", folder)
    return caught.value.problems


def test_the_file_without_a_mistake_is_read() -> None:
    made = parse(GOOD, "mine.yaml", Path())
    assert [device.type for device in made.cluster.devices] == ["v100", "cpu"]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("description:", "descripton:",
         "line 2: descripton: unknown key (did you mean description?); allowed: assumed, cluster, "
         "description, name, physics, sources, times"),
        ("watts: 100", "wats: 100",
         "line 7: cluster.devices.1.wats: unknown key (did you mean watts?); allowed: "),
        ("watts: 100", "watts: many",
         "line 7: cluster.devices.1.watts: Input should be a valid number"),
        ("watts: 100", "watts: -100",
         "line 7: cluster.devices.1.watts: Input should be greater than or equal to 0 (got -100)"),
        ("count: 2", "count: 0",
         "line 5: cluster.devices.0.count: Input should be greater than or equal to 1 (got 0)"),
        ("{type: v100, count", "{count",
         "line 5: cluster.devices.0.type: Field required: cpu, v100, tpu, any name"),
        ("name: mine\n", "",
         "line 1: name: Field required: letters, digits"),
        ("name: mine", "name: my machine",
         "line 1: name: String should match pattern"),
        ("      watts: 100", "    - {type: v100, count: 1}",
         "line 7: cluster.devices.2: device 2: v100 in node node is listed twice; add the counts "
         "up"),
        ("      watts: 100", "    - {type: v100, node: b, memory_mb: 32000}",
         "line 7: cluster.devices.2.memory_mb: device 2 is another v100 than the one before: "
         "memory_mb is 32000.0, not 16000.0; give it another type"),
        ("times:", "  nodes:\n    - {name: node}\n    - {name: spare}\ntimes:",
         "line 10: cluster.nodes.1: spare has no devices: name it as the node of a device"),
        ("times:", "  nodes: [{name: rack}]\ntimes:",
         "line 5: cluster.devices.0.node: no node node; in `nodes` are rack"),
        ("  devices:", "  gpus: 2\n  devices:",
         "line 4: cluster.gpus: gpus cannot be given beside `devices`: use one form"),
        ("type: cpu, sizes", "type: p100, sizes",
         "line 9: times.0.type: no device type p100; in `cluster` are cpu, v100"),
        ("type: cpu, sizes", "type: v100, sizes",
         "line 10: times.1: gemm on v100 is given twice; use one curve"),
        ("[1, 2], seconds: [1, 4]", "[2, 1], seconds: [1, 4]",
         "line 9: times.0.sizes.1: sizes must rise from one to the next (1 after 2)"),
        ("seconds: [1, 4]", "seconds: [1]",
         "line 9: times.0.seconds: 1 values for 2 sizes"),
        ("seconds: [1, 4]", "seconds: [1, 0]",
         "line 9: times.0.seconds.1: Input should be greater than 0 (got 0)"),
        ("times:", "physics: {noise: loud}\ntimes:",
         "line 8: physics.noise: Input should be 'measured' (got 'loud')"),
        ("times:", "physics: {split: serial}\ntimes:",
         "line 8: physics.split: belongs to a run, not to a platform; allowed: noise, memory"),
        ("times:", "physics: {measured: []}\ntimes:",
         "line 8: physics.measured: belongs to a run, not to a platform; give the curves as "
         "`times`; allowed"),
        ("times:", "workload: {preset: hpc}\ntimes:", "line 8: workload: unknown key; allowed: "),
        ("description:", "name: other\ndescription:",
         "line 2: name: is given twice, first in line 1"),
        ("cluster:\n", "cluster:\n\tx: 1\n",
         "line 4: not YAML: found character '\\t' that cannot start any token"),
    ],
)  # fmt: skip
def test_a_mistake_has_line_field_and_what_is_allowed(
    before: str, after: str, message: str
) -> None:
    assert before in GOOD
    found = problems(GOOD.replace(before, after, 1))
    assert any(problem.startswith(f"mine.yaml, {message}") for problem in found), found


def test_every_mistake_is_reported_in_the_order_of_lines() -> None:
    text = GOOD.replace("watts: 100", "watts: -1").replace("count: 2", "count: x")
    assert [problem.split(":")[0] for problem in problems(text)] == [
        "mine.yaml, line 5",
        "mine.yaml, line 7",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine.yaml: empty; a platform file needs at least `name` and `cluster`"),
        ("# nothing\n", "mine.yaml: empty; a platform file needs at least `name` and `cluster`"),
        ("- a\n- b\n", "mine.yaml, line 1: should be a mapping with name, description, sources, "
                       "assumed, cluster, physics, times, not a list"),
        ("name: {a: [1, 2\n", "mine.yaml, line 2: not YAML: "),
    ],
)  # fmt: skip
def test_what_is_no_platform_at_all(text: str, message: str) -> None:
    assert problems(text)[0].startswith(message)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"missing.yaml: cannot be read: No such file"):
        load(tmp_path / "missing.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match=r"binary.yaml: not a text file in UTF-8"):
        load(tmp_path / "binary.yaml")


HEAD = "name: mine\ncluster: {devices: [{type: cpu}]}\n"


def test_a_table_that_is_missing_gives_the_line_that_names_it(tmp_path: Path) -> None:
    (problem,) = problems(f"{HEAD}times: nowhere.parquet\n", tmp_path)
    table = tmp_path / "nowhere.parquet"
    assert problem == f"mine.yaml, line 3: times: {table}: there is no such file"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("kind,type,size\na,cpu,1\n",
         "column mean_seconds is missing; the columns are kind, type, size, mean_seconds, "
         "deviation (optional), count (optional)"),
        ("kind,type,size,mean_seconds,speed\n", "unknown column speed; the columns are kind,"),
        ("kind,type,size,mean_seconds\n", "no rows"),
        ("kind,type,size,mean_seconds\na,cpu,1,2\na,cpu,x,2\n",
         "line 3: size: should be a number above 0 (got 'x')"),
        ("kind,type,size,mean_seconds\na,cpu,1,-2\n",
         "line 2: mean_seconds: should be a number above 0 (got '-2')"),
        ("kind,type,size,mean_seconds\n,cpu,1,2\n", "line 2: kind: is empty"),
        ("kind,type,size,mean_seconds,deviation\na,cpu,1,2,-1\n",
         "line 2: deviation: should be a number of 0 or more (got '-1')"),
        ("kind,type,size,mean_seconds\na,cpu,1,2\na,cpu,1,3\n",
         "line 3: a on cpu has size 1 twice (first in line 2)"),
        ("kind,type,size,mean_seconds\na,cpu,1,2,9\n", "line 2: more values than columns"),
    ],
)  # fmt: skip
def test_a_bad_table_gives_its_own_line_too(tmp_path: Path, content: str, message: str) -> None:
    table = tmp_path / "times.csv"
    table.write_text(content)
    found = problems(f"{HEAD}times: times.csv\n", tmp_path)
    assert found[0].startswith("mine.yaml, line 3: times: ")
    assert message in found[0]


def test_a_table_that_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "times.parquet").write_text("kind,type")
    (problem,) = problems(f"{HEAD}times: times.parquet\n", tmp_path)
    assert "times.parquet: cannot be read as Parquet: " in problem


def test_a_table_of_a_type_that_the_cluster_lacks(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("kind,type,size,mean_seconds\na,tpu,1,2\n")
    (problem,) = problems(f"{HEAD}times: times.csv\n", tmp_path)
    assert problem == "mine.yaml, line 3: times.0.type: no device type tpu; in `cluster` are cpu"
