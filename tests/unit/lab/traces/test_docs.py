"""The examples of docs/traces.md work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from services.lab.traces.mapping import parse_mapping
from tests.unit.lab.traces.reading import SAMPLES, read, written
from tests.unit.lab.traces.test_broken_files import SWF_LINE

DOCS = (SAMPLES.parent / "traces.md").read_text()


def test_the_mapping_of_the_docs_does_what_it_says(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", DOCS, re.S)
    mapping = parse_mapping(yaml.safe_load(text))
    path = written(
        tmp_path,
        "x.csv",
        "start,end,util,gpu_mb,req_mb,gpus,model\n"
        "29.02.2024 00:00:00,29.02.2024 00:00:08,50,,1600,2,a\n"
        "29.02.2024 00:00:01,29.02.2024 00:00:19,100,,,,b\n",
    )
    result = read(path, mapping=mapping)
    # On the default GPU: less 0.1 s and 0.03125 s of transfer, times 1 + 3 I, times I + 0.5.
    expected = [1000 * (7.9 * 2.5 * 1) ** (2 / 3), 1000 * (17.96875 * 4 * 1.5) ** (2 / 3)]
    assert result.tasks.size.tolist() == pytest.approx(expected)
    assert result.tasks.memory_required.tolist() == [1600, 500]
    assert result.tasks.arrival_time.tolist() == [0, 1]
    assert result.tasks.width is not None
    assert result.tasks.width.tolist() == [2, 1]
    assert result.tasks.kind == ["a", "b"]
    # 8 s on 8 processors, half of the time computing: (64 * 1) ** (2/3) = 16.
    path = written(tmp_path, "x.swf", SWF_LINE.replace(" 8 1 4 ", " 8 8 4 ") + "\n")
    result = read(path, mapping=mapping)
    assert result.tasks.size.round(6).tolist() == [16000]
    assert result.tasks.width is None
