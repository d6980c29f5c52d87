"""The examples of docs/traces.md work."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from services.lab.traces.mapping import parse_mapping
from tests.unit.lab.traces.reading import SAMPLES, read, written
from tests.unit.lab.traces.test_broken_files import SWF_LINE

DOCS = (SAMPLES.parent / "traces.md").read_text()


def test_the_mapping_of_the_docs_does_what_it_says(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", DOCS, re.S)
    mapping = parse_mapping(yaml.safe_load(text))
    path = written(tmp_path, "x.csv", "t,secs,util,rss_mb,req_mb\n5,8,50,,3\n6,18,100,,\n")
    result = read(path, mapping=mapping)
    assert result.tasks.size.round(6).tolist() == [4000, 9000]
    assert result.tasks.memory_required.tolist() == [3, 500]
    assert result.tasks.arrival_time.tolist() == [0, 1]
    # 8 s on 8 processors, half of the time computing: (64 * 1) ** (2/3) = 16.
    path = written(tmp_path, "x.swf", SWF_LINE.replace(" 8 1 4 ", " 8 8 4 ") + "\n")
    assert read(path, mapping=mapping).tasks.size.round(6).tolist() == [16000]
