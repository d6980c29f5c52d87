"""The run spec of a replay, and which runs a trace can resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.lab.traces.mapping import Mapping, parse_mapping
from services.lab.traces.problem_report import Report, TraceError
from services.lab.traces.replay import (
    ReplayError,
    check_resumed,
    complete_spec,
    fingerprint,
    first_and_rest,
    first_part,
    rescaled,
    run_spec,
    stretch,
    undivided,
)
from services.lab.traces.summary import load_warnings
from services.lab.traces.trace import Trace
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks, first_batch
from shared.domain.workload import Cursor, generate
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
        fingerprint(TRACE, "csv", Mapping(), None, load=0.8),
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
    batches = list(Trace(TRACE, Report(), limit=limit).batches())
    assert sum(len(batch) for batch in batches) == tasks
    assert all(len(batch) for batch in batches)


def test_a_trace_without_a_task_starts_nothing(tmp_path: Path) -> None:
    header = TRACE.read_text().splitlines()[0]
    empty = Trace(written(tmp_path, "t.csv", header + "\n"), Report())
    with pytest.raises(TraceError, match="no tasks in this trace: it has no lines to read"):
        first_and_rest(empty.batches())


EVEN = "size,compute_intensity,memory_required,arrival_time,width\n" + "".join(
    f"{1000 * 4 ** (2 / 3)},0.5,0,{n},{1 + n % 2}\n" for n in range(101)
)
CPUS = RunSpec.parse({"cluster": {"devices": [{"type": "cpu", "count": 4}]}})


def even(folder: Path, spec: RunSpec = CPUS) -> Trace:
    """Every second a task of 4 s arrives, for one and two of the CPUs in turn: 606 CPU-seconds in
    100 s, which is 1.515 times what four CPUs can do."""
    return Trace(written(folder, "even.csv", EVEN), Report(), spec=spec)


def test_the_offered_load_of_one_type_by_hand(tmp_path: Path) -> None:
    load = even(tmp_path).survey().load
    assert load is not None
    assert load.by_type["cpu"].tasks == 101
    assert load.by_type["cpu"].load == pytest.approx((51 * 4 + 50 * 8) / 100 / 4)
    assert load.cluster == pytest.approx(load.by_type["cpu"].load)
    # 91 of the tasks, 46 of them for one CPU, within 90 s.
    assert load.busiest_span_s == 90
    assert load.busiest == pytest.approx((46 * 4 + 45 * 8) / 90 / 4)


def test_types_that_are_as_fast_share_the_load(tmp_path: Path) -> None:
    cluster = {"devices": [{"type": "cpu", "count": 3}, {"type": "cpu-b", "count": 9}]}
    load = even(tmp_path, RunSpec.parse({"cluster": cluster})).survey().load
    assert load is not None
    assert load.by_type["cpu"].tasks == pytest.approx(101 / 4)
    assert load.by_type["cpu"].load == pytest.approx(604 / 100 / 12)
    assert load.by_type["cpu-b"].load == pytest.approx(604 / 100 / 12)


def test_a_pause_before_most_tasks_does_not_hide_that_there_are_too_many(tmp_path: Path) -> None:
    # One task a long time before all the others: on average there is little to do.
    text = EVEN.splitlines()[0] + "\n" + f"{1000 * 4 ** (2 / 3)},0.5,0,0,1\n"
    text += "".join(f"{1000 * 4 ** (2 / 3)},0.5,0,{10_000 + n / 10},1\n" for n in range(100))
    trace = Trace(written(tmp_path, "t.csv", text), Report(), spec=CPUS)
    load = trace.survey().load
    assert load is not None
    assert load.cluster < 0.011
    (warning,) = load_warnings(trace)
    assert warning.startswith("nine of ten tasks arrive within 9 s, where the offered load is 10.1")


def test_arrivals_are_stretched_to_the_load(tmp_path: Path) -> None:
    trace = even(tmp_path)
    factor = stretch(trace, 0.5)
    assert factor == pytest.approx(1.51 / 0.5)
    assert stretch(trace, None) == 1
    (tasks,) = rescaled(trace.batches(), factor)
    assert tasks.arrival_time[[0, 1, 100]].tolist() == pytest.approx([0, 3.02, 302])
    with pytest.raises(ReplayError, match="the last task would arrive after 1e"):
        stretch(trace, 1e-8)


def test_tasks_that_arrive_at_once_have_no_load(tmp_path: Path) -> None:
    one = EVEN.splitlines()[0] + "\n100,0.5,0,5,1\n" * 2
    trace = Trace(written(tmp_path, "t.csv", one), Report(), spec=CPUS)
    with pytest.raises(ReplayError, match="all tasks arrive at once"):
        stretch(trace, 0.8)


def test_the_runs_window_is_the_farthest_parent(tmp_path: Path) -> None:
    header = "size,compute_intensity,memory_required,arrival_time,dependencies\n"
    lines = ["100,0.5,0,0,\n"] * 400 + ["100,0.5,0,0,1;399\n"]
    trace = Trace(written(tmp_path, "t.csv", header + "".join(lines)), Report(), spec=CPUS)
    made = complete_spec({"workload": {"source": "submitted"}}, trace, None)
    assert RunSpec.parse(made).workload.dependencies.window == 399


def test_a_trace_of_steps_needs_a_platform_with_measured_times() -> None:
    trace = Trace(SAMPLES / "training.tsv", Report(), spec=CPUS)
    with pytest.raises(ReplayError, match="its sizes are steps, not time: choose a platform"):
        complete_spec({"workload": {}}, trace, None)


def test_learners_are_pretrained_on_tasks_like_the_first_part() -> None:
    # The sample: the first 24 of 120 tasks.
    spec = RunSpec.parse({})
    first = first_part(Trace(TRACE, Report(), spec=spec, limit=24).batches())
    assert len(first) == 24
    made = complete_spec({"workload": {}}, Trace(TRACE, Report(), spec=spec), first)
    mix = RunSpec.parse(made).workload.mix
    sizes = np.log(first.size)
    assert mix.size.model_dump() == pytest.approx(
        {"kind": "lognormal", "median": np.exp(sizes.mean()), "sigma": sizes.std(),
         "high": first.size.max()}
    )  # fmt: skip
    drawn, _ = generate(RunSpec.parse({**made, "seed": 1}), Cursor(), 4000)
    assert np.median(drawn.compute_intensity) == pytest.approx(
        np.median(first.compute_intensity), abs=0.2
    )


def test_pretraining_tasks_are_as_wide_as_the_first_part(tmp_path: Path) -> None:
    # One CPU and two in turn, one task a second; none of them may be split.
    trace = even(tmp_path)
    first = first_part(rescaled(trace.batches(), 2.0), most=11)
    made = complete_spec({"workload": {}}, trace, first)["workload"]
    assert made["widths"] == [{"width": 1, "weight": 6}, {"width": 2, "weight": 5}]
    assert made["divisible"] is False
    assert made["arrival_rate"] == 11 / 20


KINDS = """size,compute_intensity,memory_required,arrival_time,kind,width
2,0.5,4,0,a,1
8,0.5,16,1,a,2
5,0.5,0,2,b,1
2,0.5,4,3,a,1
"""


def test_on_measured_times_pretraining_has_the_kinds_of_the_first_part(tmp_path: Path) -> None:
    curves = [
        {"kind": kind, "type": "gpu", "sizes": [1, 9], "seconds": [1, 9]} for kind in ("a", "b")
    ]
    spec = RunSpec.parse({"physics": {"measured": curves}})
    trace = Trace(written(tmp_path, "t.csv", KINDS), Report(), spec=spec)
    made = complete_spec(
        {"physics": {"measured": curves}, "workload": {"source": "submitted"}},
        trace,
        first_part(trace.batches(), most=3),
    )
    # Kind a: sizes 2 and 8, whose logarithms lie ln 2 to each side of ln 4; 20 MB for size 10.
    a, b = made["workload"]["kinds"]
    assert (a["kind"], a["weight"], a["memory_mb_per_size"]) == ("a", 2, 2)
    assert a["widths"] == [{"width": 1, "weight": 1}, {"width": 2, "weight": 1}]
    assert a["size"] == pytest.approx(
        {"kind": "lognormal", "median": 4, "sigma": np.log(2), "high": 8}
    )
    assert (b["kind"], b["weight"], b["memory_mb_per_size"]) == ("b", 1, 0)
    assert b["size"] == pytest.approx({"kind": "lognormal", "median": 5, "sigma": 0, "high": 5})

    tasks, _ = generate(RunSpec.parse(made), Cursor(), 30_000)
    assert tasks.width is not None
    of_a = np.array(tasks.kind) == "a"
    assert of_a.mean() == pytest.approx(2 / 3, abs=0.015)
    assert tasks.width[of_a].mean() == pytest.approx(1.5, abs=0.02)
    assert set(tasks.width[~of_a]) == {1}
    assert tasks.size[~of_a] == pytest.approx(np.full(int((~of_a).sum()), 5))
    # A sixth of a normal distribution is above one deviation, and is cut to the largest size.
    assert (tasks.size[of_a] == 8).mean() == pytest.approx(0.1587, abs=0.015)
    assert np.median(tasks.size[of_a]) == pytest.approx(4, rel=0.03)
    assert tasks.memory_required == pytest.approx(np.where(of_a, 2 * tasks.size, 0))


def arriving_at(arrival: list[float], first: int = 0) -> Tasks:
    ones = np.ones(len(arrival))
    task_id = np.arange(first, first + len(arrival))
    return Tasks(task_id, ones, ones, ones, np.array(arrival), parents=[[]] * len(arrival))


def test_tasks_that_arrive_together_are_sent_together() -> None:
    blocks = [arriving_at([0, 1, 1]), arriving_at([1, 1], 3), arriving_at([1, 2, 3, 3], 5)]
    found = [batch.task_id.tolist() for batch in undivided(iter(blocks))]
    assert found == [[0], [1, 2, 3, 4, 5, 6], [7, 8]]


def test_a_batch_is_longer_rather_than_cut_among_tasks_that_arrive_together() -> None:
    tasks = arriving_at([0, 0, 0, 1, 1, 2])
    sizes = [first_batch(tasks, size, 100) for size in (1, 2, 3, 4, 5, 6, 7)]
    assert sizes == [3, 3, 3, 5, 5, 6, 6]
    assert first_batch(tasks, 1, most=2) == 2
