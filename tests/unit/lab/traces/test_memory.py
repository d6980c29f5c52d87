"""Reading takes little memory: 48 MB of each format, in a separate process. What grows is nine
bytes a line, and some more where a line has parents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MEGABYTES = 48
ALLOWED = 32

# Padded lines, so that there are few of them: what is tested is memory, not speed.
LINES = {
    "csv": (
        "size,compute_intensity,memory_required,arrival_time,dependencies,padding\n",
        "100,0.5,64,{n},{n},{padding}\n",
    ),
    "swf": ("; x\n", "{n} {n} 0 8 1 4 1 1 1 1 1 1 1 1 1 1 {n} -1{spaces}\n"),
    "alibaba": (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n",
        "{padding},1,64,1,500,{n},{n}9,{n}\n",
    ),
    "gavel": ("", "A3C\t{padding}\t-n\t1\t100\t{n}\t1\n"),
    "philly": (
        "[",
        '{{"submitted_time": "2020-01-01 00:00:00", "user": "{padding}", "attempts": ['
        '{{"start_time": "2020-01-01 00:00:00", "end_time": "2020-01-01 00:00:09"}}]}},',
    ),
    "wfcommons": (
        '{{"workflow": {{"tasks": [',
        '{{"id": "{n}", "runtime": 8, "parents": ["{n}"], "command": "{padding}"}},',
    ),
}

READ = """
import json, resource, sys
from pathlib import Path
from services.lab.traces.problem_report import Report
from services.lab.traces.summary import Summary
from services.lab.traces.trace import Trace

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def read(path):
    trace = Trace(Path(path), Report())
    summary = Summary(trace)
    for tasks in trace.batches():
        summary.add(tasks)
    return summary.described()["tasks"]

small, large = sys.argv[1:]
read(small)  # what is loaded and allocated once
before = peak()
tasks = read(large)
print(json.dumps({"tasks": tasks, "grown": peak() - before}))
"""


@pytest.mark.parametrize("format", sorted(LINES))
def test_memory_hardly_grows_with_the_file(tmp_path: Path, format: str) -> None:
    header, line = LINES[format]
    padding = {"padding": "x" * 1600, "spaces": " " * 1600}
    size = len(line.format(n=10**6, **padding))
    count = MEGABYTES * 2**20 // size
    paths = []
    for name, lines in (("small", 3 * 2**20 // size), ("large", count)):
        with (tmp_path / name).open("w") as file:
            file.write(header.format())
            file.writelines(line.format(n=10**6 + n, **padding) for n in range(lines))
        paths.append(str(tmp_path / name))
    done = subprocess.run([sys.executable, "-c", READ, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["tasks"] == count
    assert result["grown"] < ALLOWED
