"""The run spec of a replay, and which runs a trace can resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.lab.traces.mapping import Mapping, parse_mapping
from services.lab.traces.problem_report import Report, TraceError
from services.lab.traces.replay import (
    ReplayError,
    check_resumed,
    fingerprint,
    first_and_rest,
    limited,
    run_spec,
)
from services.lab.traces.trace import Trace
from shared.domain.spec import RunSpec
from shared.errors import SpecError
from tests.unit.lab.traces.reading import SAMPLES, written

TRACE = SAMPLES / "tasks.csv"


def test_a_submitted_run_has_no_number_of_tasks() -> None:
    assert RunSpec.parse({}).submitted is False
    assert RunSpec.parse({"workload": {"source": "submitted"}}).submitted
    with pytest.raises(SpecError, match="leave `tasks` out"):
        RunSpec.parse({"tasks": 5, "workload": {"source": "submitted"}})
    with pytest.raises(SpecError, match=r"workload\.source"):
        RunSpec.parse({"workload": {"source": "recorded"}})


def test_the_spec_of_a_replay_keeps_the_users_fields() -> None:
    made = run_spec({"name": "mine", "seed": 3, "workload": {"preset": "readme"}}, TRACE, "abc")
    assert (made["name"], made["seed"]) == ("mine #abc", 3)
    assert (made["workload"]["source"], made["workload"]["preset"]) == ("submitted", "readme")
    assert run_spec({}, TRACE, "abc")["name"] == "tasks.csv #abc"
    assert len(run_spec({"name": "x" * 100}, TRACE, "12345678")["name"]) <= 100
    with pytest.raises(ReplayError, match="use --limit"):
        run_spec({"tasks": 7}, TRACE, "abc")


def test_the_fingerprint_covers_everything_that_determines_the_tasks(tmp_path: Path) -> None:
    other = written(tmp_path, "t.csv", TRACE.read_bytes() + b"1,1,1,1,1,\n")
    changed = parse_mapping({"swf": {"intensity": {"otherwise": 0.1}}})
    marks = [
        fingerprint(TRACE, "csv", Mapping(), None),
        fingerprint(TRACE, "csv", Mapping(), 5),
        fingerprint(TRACE, "swf", Mapping(), None),
        fingerprint(TRACE, "csv", changed, None),
        fingerprint(other, "csv", Mapping(), None),
    ]
    assert len(set(marks)) == len(marks)
    assert marks[0] == fingerprint(TRACE, "csv", Mapping(), None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "tasks.csv #other"}, "was started from another file"),
        ({"state": "stopped"}, "was stopped"),
        ({"spec": {"workload": {"source": "generated"}}}, "generates its own tasks"),
        ({"spec": {"workload": {}}}, "generates its own tasks"),
    ],
)
def test_a_run_of_another_trace_is_not_resumed(change: dict[str, Any], message: str) -> None:
    record = {
        "run": "r1",
        "name": "tasks.csv #abc",
        "state": "paused",
        "tasks": 40,
        "spec": {"workload": {"source": "submitted"}},
    }
    assert check_resumed(record, "abc") == 40
    with pytest.raises(ReplayError, match=message):
        check_resumed({**record, **change}, "abc")


@pytest.mark.parametrize(
    ("limit", "tasks"), [(None, 120), (1, 1), (119, 119), (120, 120), (999, 120)]
)
def test_a_limit_takes_the_first_tasks(limit: int | None, tasks: int) -> None:
    batches = list(limited(Trace(TRACE, Report()).batches(), limit))
    assert sum(len(batch) for batch in batches) == tasks
    assert all(len(batch) for batch in batches)


def test_a_trace_without_a_task_starts_nothing(tmp_path: Path) -> None:
    header = TRACE.read_text().splitlines()[0]
    empty = Trace(written(tmp_path, "t.csv", header + "\n"), Report())
    with pytest.raises(TraceError, match="no tasks in this trace: it has no lines to read"):
        first_and_rest(empty, None)
