"""Alibaba's node list as a platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.lab.platforms.alibaba import import_alibaba
from services.lab.platforms.imported import ImportFailed
from shared.domain.spec import RunSpec

NODES = """sn,cpu_milli,memory_mib,gpu,model
n0,32000,262144,0,
n1,96000,393216,8,G2
n2,96000,786432,8,G2
n3,8000,61440,1,V100M32
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "nodes.csv"
    path.write_text(text)
    return path


def test_equal_nodes_are_one_entry_with_a_count(tmp_path: Path) -> None:
    imported = import_alibaba(written(tmp_path, NODES), "mine")
    made = imported.write(tmp_path / "mine.yaml")
    platform = RunSpec.parse(made.spec_fields()).platform
    counts = {each.name: (each.count, each.memory_mb) for each in platform.types}
    assert counts == {"cpu": (4, float("inf")), "g2": (16, 8000), "v100m32": (1, 32000)}
    assert len(platform.node_names) == 4
    assert imported.took == ["4 nodes, 3 of them with 17 GPUs: g2, v100m32"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sn,gpus\n", "line 1: no column gpu, model"),
        (NODES.replace("8,G2", "many,G2", 1), "line 3: gpu is 'many'; expected the number of GPUs"),
        (NODES.replace("8,G2", "8,", 1), "line 3: model is ''; expected a name such as V100M16"),
        (NODES.splitlines()[0] + "\n", "no nodes"),
    ],
)
def test_a_wrong_list_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ImportFailed, match=message):
        import_alibaba(written(tmp_path, text), "mine")
