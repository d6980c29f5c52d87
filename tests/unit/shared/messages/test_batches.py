"""Messages of the data plane: what is written is read."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.messages import batches
from shared.messages.batches import Envelope, decode, encode
from tests.unit.shared.messages.samples import (
    COLUMNS,
    CONTENT,
    DECISION_COLUMNS,
    ENVELOPE,
    KINDS,
    SUBJECTS,
    envelope_of,
    rows_of,
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_is_read_as_it_was_written(kind: str) -> None:
    rows = rows_of(kind)
    batch = decode(encode(envelope_of(kind), rows), SUBJECTS[kind])
    assert batch.envelope == envelope_of(kind)
    assert batch.rows.to_pydict() == CONTENT[kind]
    assert batch.rows.schema.equals(batches.SCHEMAS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_batch_has_the_same_bytes(kind: str) -> None:
    rows = rows_of(kind)
    assert encode(envelope_of(kind), rows) == encode(envelope_of(kind), rows)


def test_tasks_become_rows_and_tasks_again() -> None:
    arrays = {n: np.array(v) for n, v in COLUMNS.items() if n not in ("dependencies", "kind")}
    tasks = Tasks(**arrays, parents=COLUMNS["dependencies"], kind=COLUMNS["kind"])
    rows = batches.task_rows(tasks)
    assert rows.to_pydict() == COLUMNS
    again = batches.tasks_of(rows)
    for name in arrays:
        assert getattr(again, name).tolist() == COLUMNS[name]
    assert again.parents == COLUMNS["dependencies"]
    assert again.kind == COLUMNS["kind"]


def test_columns_with_only_the_usual_value_are_none() -> None:
    tasks = Tasks(*(np.array(COLUMNS[name]) for name in list(COLUMNS)[:5]))
    again = batches.tasks_of(batches.task_rows(tasks))
    assert (again.kind, again.divisible, again.width, again.home) == ((), None, None, None)


def test_a_task_whose_last_child_is_unknown_may_have_children_for_256_tasks() -> None:
    tasks = Tasks(*(np.array(COLUMNS[name]) for name in list(COLUMNS)[:5]))
    again = batches.tasks_of(batches.task_rows(tasks))
    assert again.last_child is not None
    assert again.last_child.tolist() == [556, 557, 558]


def test_tasks_that_do_not_wait_have_empty_dependencies() -> None:
    tasks = Tasks(*(np.array(COLUMNS[name]) for name in list(COLUMNS)[:5]))
    rows = batches.complete(batches.task_rows(tasks), "tasks")
    assert rows.column("dependencies").to_pylist() == [[], [], []]
    assert len(batches.tasks_of(rows).parents) == 0


def test_the_dependencies_of_a_slice_are_those_of_its_tasks() -> None:
    rows = rows_of("tasks")
    assert batches.tasks_of(rows.slice(1, 2)).parents == [[45, 299, 300], [46]]
    assert len(batches.tasks_of(rows.slice(0, 1)).parents) == 0
    sliced = decode(encode(envelope_of("tasks"), rows.slice(1, 2)), "tasks.run-1").rows
    assert sliced.to_pydict() == {name: values[1:] for name, values in COLUMNS.items()}


def test_decisions_get_their_usual_values() -> None:
    rows = rows_of("tasks")
    tasks = batches.tasks_of(rows)
    decisions = Decisions(np.array([0.0, 0.5, 1.0]))
    sent = batches.decision_rows(rows, tasks, decisions, RunSpec().platform)
    decided = batches.complete(sent, "decisions")
    assert decided.column("device").to_pylist() == [0, 1, 2]  # 300, 301, 302 modulo 4
    assert decided.column("cpu").to_pylist() == [4, 4, 4]  # behind the four GPUs
    assert decided.column("model_version").to_pylist() == [0, 0, 0]
    assert decided.column("explored").to_pylist() == [False] * 3
    assert decided.column("probability").to_pylist() == [1.0] * 3
    assert decided.select(list(COLUMNS)).to_pydict() == COLUMNS


def test_decisions_carry_what_the_policy_chose() -> None:
    rows = rows_of("tasks")
    decisions = Decisions(
        gpu_fraction=np.array(DECISION_COLUMNS["gpu_fraction"]),
        device=np.array(DECISION_COLUMNS["device"]),
        cpu=np.array(DECISION_COLUMNS["cpu"]),
        model_version=7,
        explored=np.array(DECISION_COLUMNS["explored"]),
        probability=np.array(DECISION_COLUMNS["probability"]),
        expected_time=np.array(DECISION_COLUMNS["expected_time"]),
        order=np.array([1, 0, 2]),
        predicted=[[0.5, 2.0], [], [1.5, np.inf]],
        scores=DECISION_COLUMNS["scores"],
    )
    platform = RunSpec().platform
    decided = batches.decision_rows(rows, batches.tasks_of(rows), decisions, platform)
    # Where it chose none: the GPU of task 2 and the only CPU in rotation.
    completed = {**CONTENT["decisions"], "device": [0, 3, 2], "cpu": [4, 4, 4]}
    assert decided.to_pydict() == completed
    assert np.array_equal(batches.order_of(decided), [1, 0, 2])


@pytest.mark.parametrize(
    ("envelope", "message_id"),
    [
        (Envelope("tasks", "run-1", 0, 1.0), "tasks.run-1.0"),
        (Envelope("decisions", "run-1", 7, 1.0, "greedy"), "decisions.run-1.greedy.7"),
        (Envelope("results", "r", 10**9, 1.0, "rl_agent"), "results.r.rl_agent.1000000000"),
    ],
)
def test_a_message_id_names_the_batch(envelope: Envelope, message_id: str) -> None:
    assert envelope.message_id == message_id
    assert envelope.subject == message_id.rpartition(".")[0]


@pytest.mark.parametrize("kind", KINDS)
def test_batches_that_leave_out_different_columns_are_joined(kind: str) -> None:
    """The first task has no dependencies and no kind; the second has both, and another home."""
    rows = rows_of(kind)
    messages = [encode(envelope_of(kind), rows.slice(row, 1)) for row in range(rows.num_rows)]
    parts = [decode(message, SUBJECTS[kind]).rows for message in messages]
    assert parts[0].schema.names != parts[1].schema.names
    assert batches.join(parts, kind).to_pydict() == CONTENT[kind]
    assert batches.join(parts[:1], kind) is parts[0]


def test_a_message_id_does_not_depend_on_when_or_with_what_it_was_published() -> None:
    early = Envelope("tasks", "run-1", 3, 1.0, state={"a": 1})
    late = Envelope("tasks", "run-1", 3, 2.0)
    assert early.message_id == late.message_id


def test_metadata_and_columns_of_a_newer_writer_are_ignored() -> None:
    rows = rows_of("tasks")
    rows = rows.append_column("priority", pa.array([["a"], None, ["b", "c"]]))
    rows = rows.append_column(
        pa.field("note", pa.string(), metadata={"x": "y"}), pa.array(["a", "b", "c"])
    )
    rows = rows.replace_schema_metadata(
        {
            "envelope": json.dumps(ENVELOPE | {"trace": {"id": 1}}),
            "pandas": "whatever",
            "x": b"\xff",
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    batch = decode(bytes(sink.getvalue()), "tasks.run-1")
    assert batch.envelope == Envelope("tasks", "run-1", 12, 1.5)
    assert batch.rows.to_pydict() == COLUMNS


def test_a_decision_of_format_1_is_read_with_the_values_of_its_time() -> None:
    rows = rows_of("decisions")
    old = rows.select([column.name for column in batches.COLUMNS["decisions"] if column.since == 1])
    old = old.append_column("gpu", pa.array([0, 3, 1], pa.int16()))
    read = decode(encode(envelope_of("decisions"), old), SUBJECTS["decisions"]).rows
    again = batches.complete(read, "decisions").to_pydict()
    assert again["device"] == [0, 3, 1]
    assert again["cpu"] == [-1] * 3
    assert (again["kind"], again["divisible"]) == ([""] * 3, [True] * 3)
    assert (again["width"], again["home"], again["last_child"]) == ([1] * 3, [-1] * 3, [-1] * 3)


def test_columns_may_come_in_another_order() -> None:
    rows = rows_of("tasks").select(list(reversed(COLUMNS)))
    assert decode(encode(envelope_of("tasks"), rows), "tasks.run-1").rows.to_pydict() == COLUMNS
