"""Any bytes: valid tasks and a report, or a TraceError."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.lab.traces.formats.text_blocks import GZIP_MAGIC
from services.lab.traces.problem_report import Report, TraceError
from services.lab.traces.trace import FORMATS, Trace
from shared.messages.batches import task_problem
from tests.unit.lab.traces.reading import SAMPLES

HEADERS = {
    "csv": b"task_id,size,compute_intensity,memory_required,arrival_time,dependencies\n",
    "alibaba": (SAMPLES / "pods.csv").read_bytes().split(b"\n")[0] + b"\n",
    "swf": b"; x\n",
    "wfcommons": b'{"workflow": {"tasks": [',
    "parquet": b"PAR1",
    "gavel": b"",
    "philly": b"[",
    "helios": (SAMPLES / "slurm.csv").read_bytes().split(b"\n")[0] + b"\n",
}
SOUND = {
    "csv": "tasks.csv",
    "alibaba": "pods.csv",
    "swf": "cluster.swf",
    "wfcommons": "pipeline.json",
    "gavel": "training.tsv",
    "philly": "jobs.json",
    "helios": "slurm.csv",
}

# What lines are made of, so that some get far.
PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [b",", b"\n", b"\r", b" ", b";", b'"', b"-1", b"0", b"1e5", b"nan", b"inf", b"\xff",
             b"{", b"}", b"[", b"]", b":", b"\0", b"1 " * 18 + b"\n", b"0,1,0.5,1,1,\n"]
        ),
        st.binary(max_size=5),
    ),
    max_size=60,
).map(b"".join)  # fmt: skip


def check(content: bytes, format: str) -> None:
    """Every task that comes out is one that the gateway would take, and ids have no gaps."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        messages: list[str] = []
        report = Report(show=messages.append, shown=10**6)
        tasks = 0
        try:
            for batch in Trace(Path(file.name), report, format=format).batches():
                assert task_problem(batch) is None
                assert batch.task_id[0] == tasks
                tasks += len(batch)
        except TraceError:
            return
        assert len(messages) == report.skipped.total() + report.adjusted.total()
        if format in ("csv", "alibaba", "swf") and not content.startswith(GZIP_MAGIC):
            assert tasks + report.skipped.total() <= content.count(b"\n") + 1


@settings(max_examples=150, deadline=None)
@given(body=PIECES, headed=st.booleans(), format=st.sampled_from(sorted(FORMATS)))
def test_random_bytes(body: bytes, headed: bool, format: str) -> None:
    check((HEADERS[format] if headed else b"") + body, format)


@settings(max_examples=120, deadline=None)
@given(
    format=st.sampled_from(sorted(SOUND)),
    place=st.integers(0, 3000),
    removed=st.integers(0, 40),
    put=st.one_of(st.binary(max_size=8), PIECES),
    packed=st.booleans(),
)
def test_valid_files_with_one_damage(
    format: str, place: int, removed: int, put: bytes, packed: bool
) -> None:
    content = (SAMPLES / SOUND[format]).read_bytes()
    if packed:
        content = gzip.compress(content, mtime=0)
    check(content[:place] + put + content[place + removed :], format)


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_nothing_at_all(format: str) -> None:
    check(b"", format)
    check(b"\n\n\n", format)
    check(HEADERS[format], format)
