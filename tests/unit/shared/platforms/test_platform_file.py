"""What a platform file gives of a run spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.domain.hardware.measured_times import Curve
from shared.domain.spec import RunSpec
from shared.errors import SpecError
from shared.platforms.platform_file import find, load, parse
from shared.platforms.times_table import read_table, write_table

CURVES = (
    Curve(kind="gemm", type="cpu", sizes=(1, 2), seconds=(1, 4), deviations=(0.1, 0.2),
          counts=(5, 6)),
    Curve(kind="gemm", type="v100", sizes=(1,), seconds=(0.5,)),
)  # fmt: skip


def test_only_what_the_file_says_becomes_fields() -> None:
    text = """
name: mine
cluster:
  devices: [{type: v100, count: 2}, {type: cpu}]
physics: {size_unit: 64}
"""
    assert parse(text, "mine.yaml", Path()).spec_fields() == {
        "cluster": {"devices": [{"type": "v100", "count": 2}, {"type": "cpu"}]},
        "physics": {"size_unit": 64},
    }


def test_the_short_form_is_a_cluster_too() -> None:
    made = parse("name: mine\ncluster: {gpus: 2}\n", "mine.yaml", Path())
    assert made.spec_fields() == {"cluster": {"gpus": 2}}


def test_times_become_the_measured_times_of_the_physics() -> None:
    text = """
name: mine
cluster: {devices: [{type: cpu}]}
physics: {noise: measured}
times: [{kind: a, type: cpu, sizes: [1, 10], seconds: [2, 30]}]
"""
    fields = parse(text, "mine.yaml", Path()).spec_fields()
    curve = {"kind": "a", "type": "cpu", "sizes": [1, 10], "seconds": [2, 30]}
    assert fields["physics"] == {"noise": "measured", "measured": [curve]}
    assert RunSpec.parse(fields).platform.measured is not None


@pytest.mark.parametrize("name", ["times.csv", "times.parquet"])
def test_a_table_beside_the_file_gives_the_same_curves(tmp_path: Path, name: str) -> None:
    if name.endswith(".csv"):
        rows = "kind,type,size,mean_seconds,deviation,count"
        # In any order: curves are sorted by size.
        rows += "\ngemm,cpu,2,4,0.2,6\ngemm,cpu,1,1,0.1,5\ngemm,v100,1,0.5,,\n"
        (tmp_path / name).write_text(rows)
    else:
        write_table(CURVES, tmp_path / name)
    assert read_table(tmp_path / name) == CURVES
    file = tmp_path / "mine.yaml"
    file.write_text(f"name: mine\ncluster: {{devices: [{{type: v100}}, {{type: cpu}}]}}\n"
                    f"times: {name}\n")  # fmt: skip
    assert load(file).times == CURVES


def test_a_name_that_is_not_shipped_lists_those_that_are() -> None:
    with pytest.raises(SpecError, match=r"no platform 'dgxx'; shipped: dgx, rack, seeds, work"):
        find("dgxx")


def test_a_file_may_refer_to_itself_without_end() -> None:
    with pytest.raises(SpecError, match="line 2: sources"):
        parse("name: mine\nsources: &a [*a]\ncluster: {gpus: 1}\n", "mine.yaml", Path())
