"""Every broken line is reported with its number, and the rest is read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from services.lab.traces import task_links
from services.lab.traces.formats import text_blocks, text_columns
from services.lab.traces.problem_report import Report, TraceError
from services.lab.traces.trace import Trace
from tests.unit.lab.traces.reading import SAMPLES, read, written
from tests.unit.lab.traces.test_formats import OWN, PODS, SWF, workflow

HEADER = "task_id,size,compute_intensity,memory_required,arrival_time,dependencies\n"

# By line of the sample; those that are not here are sound.
EXPECTED = [
    "line 4: skipped: too few columns: 4 of 6",
    "line 5: skipped: too many columns: 7 instead of 6",
    "line 6: skipped: not a number: size 'abc'",
    "line 7: skipped: not a finite number: size nan",
    "line 8: skipped: not a finite number: size inf",
    "line 9: skipped: size is not above 0: -5",
    "line 10: skipped: size is not above 0: 0",
    "line 11: skipped: compute_intensity is not within 0..1: 1.5",
    "line 12: skipped: compute_intensity is not within 0..1: -0.1",
    "line 13: skipped: memory_required is not within 0..1e+09: -64",
    "line 14: skipped: arrival_time is negative: -12",
    "line 15: skipped: missing value: size",
    "line 16: skipped: empty line",
    "line 17: skipped: size is above 1e+09: 1e+10",
    "line 18: skipped: arrival_time is above 1e+09: 2e+09",
    "line 19: skipped: not a number: size '1_000'",
    "line 20: skipped: unbalanced quotes: unexpected end of data",
    "line 21: skipped: not UTF-8: 18,100,0.5,64,18,\N{REPLACEMENT CHARACTER}"
    "\N{REPLACEMENT CHARACTER}",
    "line 22: skipped: longer than 65536 bytes",
    "line 23: adjusted: parent dropped: the task itself: 20",
    "line 24: adjusted: parent dropped: no such task before it: 99",
    "line 25: adjusted: parent dropped: no such task before it: 24",
    "line 26: adjusted: parent replaced by its own parents: its line was skipped: 7",
    "line 27: adjusted: arrival moved to that of the task before it: 5 to 23",
    "line 28: skipped: duplicate id: 21",
    "line 295: skipped: too few columns: 3 of 6",
]


@pytest.mark.parametrize("block", [97, 4096, 1 << 20])
def test_the_broken_sample_line_by_line(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the blocks that the file is read in."""
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", block)
    result = read(SAMPLES / "broken.csv")
    assert result.messages == EXPECTED
    assert sum(result.report.skipped.values()) == 21
    assert sum(result.report.adjusted.values()) == 5
    assert len(result.tasks) == 295 - 1 - 21
    assert result.report.notes == [
        "the last line has no line end: it may be incomplete; used as it is"
    ]
    # The sample's last sound line: task 290 of the file is the 273rd that is left.
    assert result.tasks.parents[-1] == [1, 271]
    assert result.tasks.arrival_time.tolist()[:8] == [0, 1, 20, 21, 22, 23, 23, 25]


def test_both_parsers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tasks.csv", "cluster.swf", "pods.csv", "broken.csv"):
        fast = read(SAMPLES / name)
        with monkeypatch.context() as patched:
            for parser in text_columns.Parser.__subclasses__():
                patched.setattr(parser, "_at_once", lambda self, block: None)
            slow = read(SAMPLES / name)
        assert slow.messages == fast.messages
        assert slow.tasks.parents == fast.tasks.parents
        for column in ("size", "compute_intensity", "memory_required", "arrival_time"):
            assert getattr(slow.tasks, column).tobytes() == getattr(fast.tasks, column).tobytes()


def test_only_the_first_problems_are_shown_and_all_are_written(tmp_path: Path) -> None:
    shown: list[str] = []
    with (tmp_path / "errors.txt").open("w") as sink:
        report = Report(show=shown.append, shown=3, sink=sink)
        for _ in Trace(SAMPLES / "broken.csv", report).batches():
            pass
    assert shown[:3] == EXPECTED[:3]
    assert shown[3:] == ["further problems are only counted; --errors FILE writes all of them"]
    assert (tmp_path / "errors.txt").read_text().splitlines() == EXPECTED


def test_strict_fails_at_the_first(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"broken\.csv: line 4: too few columns: 4 of 6"):
        read(SAMPLES / "broken.csv", strict=True)
    assert len(read(SAMPLES / "tasks.csv", strict=True).tasks) == 120


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", "the file is empty"),
        ("\n1,2,3\n", "the first line is empty; it must have the names of the columns"),
        ("100,0.5,64,0\n", "no column arrival_time, compute_intensity, memory_required, size"),
        ("size,compute_intensity\n", "no column arrival_time, memory_required in the header"),
        (HEADER.replace("dependencies", "size"), "duplicate column size"),
    ],
)
def test_a_csv_without_its_columns_is_refused(tmp_path: Path, text: str, messages: str) -> None:
    with pytest.raises(TraceError, match=messages):
        read(written(tmp_path, "trace.csv", text), format="csv")


@pytest.mark.parametrize("header", [HEADER, HEADER.strip()])
def test_a_header_alone_is_an_error(tmp_path: Path, header: str) -> None:
    with pytest.raises(TraceError, match="no tasks in this trace: it has no lines to read"):
        read(written(tmp_path, "trace.csv", header), format="csv")


@pytest.mark.parametrize("content", [OWN, SWF, PODS])
def test_a_truncated_gzip_is_read_up_to_the_truncation(tmp_path: Path, content: str) -> None:
    complete = read(written(tmp_path, "complete", content))
    packed = gzip.compress(content.encode(), compresslevel=0)
    middle = packed.index(content.encode().splitlines()[-2])
    result = read(written(tmp_path, "cut.gz", packed[: middle + 8]), format=complete.trace.format)
    (reason,) = [text for text in result.messages if "truncated here" in text]
    last = len(content.splitlines()) - 1
    assert reason.startswith(f"line {last}: skipped: the file is truncated here: the gzip data end")
    assert result.tasks.size.tolist() == complete.tasks.size.tolist()[: len(result.tasks)]
    damaged = bytearray(packed)
    damaged[-8] ^= 1  # the checksum: all lines are there
    result = read(written(tmp_path, "bad.gz", bytes(damaged)), format=complete.trace.format)
    assert any("truncated here" in text for text in result.messages)
    assert result.tasks.size.tolist() == complete.tasks.size.tolist()


SWF_LINE = "-1 0 0 8 1 4 1 1 1 1 1 1 1 1 1 1 -1 -1"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (SWF_LINE.replace("8", "eight"), "not a number: run_time 'eight'"),
        (SWF_LINE.replace("8", "inf"), "not a finite number: run_time inf"),
        (SWF_LINE.replace("8", "-7"), "run time is negative: -7"),
        (SWF_LINE + " 1", "too many columns: 19 instead of 18"),
        (SWF_LINE[:-3], "too few columns: 17 of 18"),
        (SWF_LINE.replace(" ", ","), "too few columns: 1 of 18"),
    ],
)
def test_broken_lines_of_swf(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, "t.swf", f"{SWF_LINE}\n{line}\n{SWF_LINE}\n" * 100)
    result = read(path)
    assert result.messages == [f"line {3 * k + 2}: skipped: {message}" for k in range(100)]
    assert len(result.tasks) == 200


@pytest.mark.parametrize("block", [97, 4096])
def test_an_id_belongs_to_the_first_line_that_is_a_task(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of a job have its number, and are skipped; whatever lies in the same block."""
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", block)
    job = "{} 0 0 8 1 4 1 1 1 1 {} 1 1 1 1 1 {} -1\n"
    text = job.format(1, 2, -1) + job.format(1, 1, -1) + job.format(1, 3, -1)
    text += job.format(2, 5, -1) + job.format(3, 1, 1) + job.format(4, 1, 2) + job.format(5, 1, 6)
    text += job.format(3, 1, 4) + job.format(6, 5, -1) + job.format(7, 1, 3) + job.format(-1, 1, 7)
    result = read(written(tmp_path, "t.swf", text + job.format(-1, 1, 1)))
    # Tasks are the lines of jobs 1, 3, 4, 5 and 7, and two without a number.
    assert result.tasks.parents == [[], [0], [], [], [1], [4], [0]]
    assert [messages for messages in result.messages if "keep_status" not in messages] == [
        "line 6: adjusted: parent replaced by its own parents: its line was skipped: 2",
        "line 7: adjusted: parent dropped: no such task before it: 6",
        "line 8: skipped: duplicate id: 3",
    ]


@pytest.mark.parametrize("block", [97, 1 << 20])
def test_an_id_may_occur_again_after_many_lines(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", block)
    monkeypatch.setattr(task_links, "REMEMBERED", 300)
    names = [*range(1000), 702, 700, 999]
    text = HEADER + "".join(f"{name},100,0.5,64,0,\n" for name in names)
    result = read(written(tmp_path, "t.csv", text + "x,100,0.5,64,0,700;3;999\n"))
    # Lines 704 and 1002 have 702 in them, 702 and 1003 have 700.
    assert result.messages == [
        "line 1002: skipped: duplicate id: 702",
        "line 1004: skipped: duplicate id: 999",
    ]
    # Parents are the first of that name, however far back.
    assert result.tasks.parents[-1] == [3, 700, 999]


def broken_workflow(change: Any) -> str:
    made = workflow()
    change(made["workflow"]["specification"]["tasks"], made["workflow"]["execution"]["tasks"])
    return json.dumps(made)


@pytest.mark.parametrize(
    ("change", "messages", "left"),
    [
        (
            lambda t, e: e.pop(),
            [
                "task 2: skipped: never ran: nothing was measured: b1",
                "task 3: adjusted: parent replaced by its own parents: its line was skipped: b1",
            ],
            2,
        ),
        (lambda t, e: e[1].update(priority="high"), [], 3),
        (lambda t, e: t[1].pop("id") and t[1].pop("name"), ["task 2: skipped: no id"], 2),
        (lambda t, e: t[2].update(id="a1"), ["task 3: skipped: duplicate id: a1"], 2),
        (lambda t, e: e[1].update(runtimeInSeconds=0), ["task 1: skipped: ran for no time"], 2),
        (
            lambda t, e: e[1].update(runtimeInSeconds="8 s"),
            ["task 1: skipped: not a number: runtimeInSeconds '8 s'"],
            2,
        ),
        (
            lambda t, e: e[1].update(runtimeInSeconds=10**400),
            ["task 1: skipped: not a finite number: runtimeInSeconds inf"],
            2,
        ),
        (
            lambda t, e: t[0].update(parents=["c1", "a1", "zz"]),
            [
                "task 1: adjusted: parent dropped: no such task before it: c1",
                "task 1: adjusted: parent dropped: the task itself: a1",
                "task 1: adjusted: parent dropped: no such task before it: zz",
            ],
            3,
        ),
    ],
)
def test_broken_tasks_of_a_workflow(
    tmp_path: Path, change: Any, messages: list[str], left: int
) -> None:
    result = read(written(tmp_path, "wf.json", broken_workflow(change)))
    assert [text for text in result.messages if text in messages] == messages, result.messages
    assert len(result.tasks) == left


def test_truncated_json_is_read_up_to_the_truncation(tmp_path: Path) -> None:
    tasks = [{"id": str(n), "runtime": 8, "parents": []} for n in range(50)]
    text = json.dumps({"workflow": {"tasks": tasks}})
    for cut in (text[:-100], text.replace('"id": "45"', '"id": NaN')):
        result = read(written(tmp_path, "wf.json", cut))
        assert 40 < len(result.tasks) < 50
        assert "the JSON is truncated or invalid after this task" in result.messages[-1]
    packed = gzip.compress(text.encode(), compresslevel=0)
    result = read(written(tmp_path, "wf.json.gz", packed[:-200]))
    assert 40 < len(result.tasks) < 50
    assert "the gzip data end early" in result.messages[-1]


@pytest.mark.parametrize("text", ["{}", '{"workflow": 3}', '{"tasks": []}', '{"a": [', "{"])
def test_json_without_a_workflow_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(TraceError, match="no workflow in the JSON"):
        read(written(tmp_path, "wf.json", text))
