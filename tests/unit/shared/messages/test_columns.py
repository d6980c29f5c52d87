"""A column that is added later: older messages get its default, older tables the column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor, generate
from shared.errors import Unreadable
from shared.messages import batches
from shared.messages.batches import select_columns
from shared.messages.columns import FLOAT, INT, TEXT, Column
from shared.messages.envelope import Envelope
from shared.store.schema import Table, derive_migrations

SPEC = RunSpec.parse({"seed": 1})
ENVELOPE = Envelope("tasks", "run-1", 0, 1.0)

ID = Column("id", INT, "number of the row")
NEW = Column("colour", TEXT, "it's new", low_cardinality=True, since=3, default="red")
TABLE = Table("things", (ID, NEW), order_by="id")


def test_a_message_without_a_later_column_gets_its_default() -> None:
    old = pa.RecordBatch.from_pydict({"id": [1, 2]})
    assert select_columns(old, (ID, NEW)).to_pydict() == {"id": [1, 2], "colour": ["red", "red"]}


def test_a_message_with_the_later_column_keeps_its_values() -> None:
    new = pa.RecordBatch.from_pydict({"colour": ["blue"], "id": [1]})
    assert select_columns(new, (ID, NEW)).to_pydict() == {"id": [1], "colour": ["blue"]}


def test_a_later_column_of_another_type_is_refused() -> None:
    wrong = pa.RecordBatch.from_pydict({"id": [1], "colour": [0.5]})
    with pytest.raises(Unreadable, match="column colour is double, expected string"):
        select_columns(wrong, (ID, NEW))


def test_each_schema_version_adds_its_columns() -> None:
    first, second, third = derive_migrations([TABLE])
    assert [each.version for each in (first, second, third)] == [1, 2, 3]
    (create,) = first.statements
    assert "id Int64 COMMENT 'number of the row'" in create
    assert "colour" not in create
    assert second.statements == ()
    assert third.statements == (
        "ALTER TABLE things ADD COLUMN IF NOT EXISTS "
        r"colour LowCardinality(String) DEFAULT 'red' COMMENT 'it\'s new'",
    )


def test_a_nullable_number_is_nullable_in_clickhouse() -> None:
    table = Table("things", (Column("score", FLOAT, nullable=True),), order_by="tuple()")
    assert "score Nullable(Float64)" in table.create_statement()


def test_a_column_with_its_usual_value_in_all_rows_is_not_sent() -> None:
    tasks, _ = generate(SPEC, Cursor(), 3)
    rows = batches.task_rows(tasks)
    body = batches.encode(ENVELOPE, rows)
    sent = pa.ipc.open_stream(body).schema.names
    assert set(sent) == {
        *("task_id", "size", "compute_intensity", "memory_required", "arrival_time", "last_child")
    }
    assert batches.decode(body, ENVELOPE.subject).rows.equals(rows)


def test_a_column_with_one_other_value_is_sent() -> None:
    tasks, _ = generate(SPEC, Cursor(), 3)
    rows = batches.task_rows(replace(tasks, kind=("", "", "fft"), width=np.array([1, 2, 1])))
    body = batches.encode(ENVELOPE, rows)
    assert {"kind", "width"} <= set(pa.ipc.open_stream(body).schema.names)
    assert batches.decode(body, ENVELOPE.subject).rows.equals(rows)
