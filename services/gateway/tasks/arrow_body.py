"""Tasks as an Arrow stream in a request's body. The body is untrusted: a small one must not become
a large table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shared.domain.tasks import Tasks
from shared.errors import SpecError
from shared.messages.arrow_safety import BROKEN, refuse_compression
from shared.messages.batches import TASKS, tasks_of

MOST_ROWS = 100_000

COLUMNS = {field.name: field for field in TASKS if field.name != "task_id"}
DEPENDENCIES = "dependencies"


def read_columns(body: bytes) -> pa.Table:
    """The columns as the body has them; their types are not checked yet."""
    try:
        refuse_compression(body)
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except BROKEN as error:
        raise SpecError([f"not an Arrow stream: {error}"]) from None
    if not 1 <= table.num_rows <= MOST_ROWS:
        raise SpecError([f"a request has 1 to {MOST_ROWS} tasks, not {table.num_rows}"])
    return table


def numbered(table: pa.Table, first: int) -> Tasks:
    """The rows as tasks with ids from `first` on; a column `task_id` is ignored."""
    arrays = {name: _column(table, name) for name in COLUMNS}
    arrays["task_id"] = pa.array(np.arange(first, first + table.num_rows, dtype=np.int64))
    rows = [arrays[field.name] for field in TASKS]
    return tasks_of(pa.RecordBatch.from_arrays(rows, schema=TASKS))


def _column(table: pa.Table, name: str) -> pa.Array:
    expected = COLUMNS[name].type
    indices = table.schema.get_all_field_indices(name)
    if not indices and name == DEPENDENCIES:
        return pa.array([[]] * table.num_rows, expected)
    if len(indices) != 1:
        raise SpecError([f"column {name} is {'there twice' if indices else 'missing'}"])
    column = table.column(indices[0])
    if _untyped_and_empty(column):
        return pa.array([[]] * table.num_rows, expected)
    if not _plain(column.type, name):
        raise SpecError([f"column {name} must be {expected}, not {column.type}"])
    try:
        column = column.cast(expected).combine_chunks()
    except pa.ArrowException as error:
        raise SpecError([f"column {name} must be {expected}: {error}"]) from None
    if column.null_count or (name == DEPENDENCIES and column.flatten().null_count):
        raise SpecError([f"column {name} has missing values"])
    return column


def _untyped_and_empty(column: pa.ChunkedArray) -> bool:
    """Lists that are all empty; many writers then give their items no type."""
    if not (pa.types.is_list(column.type) and pa.types.is_null(column.type.value_type)):
        return False
    return all(len(chunk.flatten()) == 0 for chunk in column.chunks)


def _plain(kind: pa.DataType, name: str) -> bool:
    """Numbers or lists of numbers: other layouts may grow when they are read."""
    if name == DEPENDENCIES:
        return bool(pa.types.is_list(kind) and pa.types.is_integer(kind.value_type))
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
