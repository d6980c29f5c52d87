"""Messages of the data plane: what is written is read."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

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
    tasks = Tasks(*(np.array(COLUMNS[name]) for name in list(COLUMNS)[:5]), COLUMNS["dependencies"])
    rows = batches.task_rows(tasks)
    assert rows.to_pydict() == COLUMNS
    again = batches.tasks_of(rows)
    for name in list(COLUMNS)[:5]:
        assert getattr(again, name).tolist() == COLUMNS[name]
    assert again.parents == COLUMNS["dependencies"]


def test_tasks_that_do_not_wait_carry_empty_dependencies() -> None:
    tasks = Tasks(*(np.array(COLUMNS[name]) for name in list(COLUMNS)[:5]))
    rows = batches.task_rows(tasks)
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
    said = batches.decision_rows(rows, tasks, Decisions(np.array([0.0, 0.5, 1.0])), 4)
    assert said.column("gpu").to_pylist() == [0, 1, 2]  # 300, 301, 302 modulo 4
    assert said.column("model_version").to_pylist() == [0, 0, 0]
    assert said.column("explored").to_pylist() == [False] * 3
    assert said.column("probability").to_pylist() == [1.0] * 3
    assert said.select(list(COLUMNS)).to_pydict() == COLUMNS


def test_decisions_carry_what_the_policy_said() -> None:
    rows = rows_of("tasks")
    said = Decisions(
        gpu_fraction=np.array(DECISION_COLUMNS["gpu_fraction"]),
        gpu=np.array(DECISION_COLUMNS["gpu"]),
        model_version=7,
        explored=np.array(DECISION_COLUMNS["explored"]),
        probability=np.array(DECISION_COLUMNS["probability"]),
    )
    decided = batches.decision_rows(rows, batches.tasks_of(rows), said, 4)
    assert decided.to_pydict() == CONTENT["decisions"]


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


def test_columns_may_come_in_another_order() -> None:
    rows = rows_of("tasks").select(list(reversed(COLUMNS)))
    assert decode(encode(envelope_of("tasks"), rows), "tasks.run-1").rows.to_pydict() == COLUMNS
