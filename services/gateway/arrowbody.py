"""Tasks as an Arrow stream in the body of a request, read with the caution that a stranger's bytes
ask for: a small body must not become a large table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shared.arrow import BROKEN, refuse_compression
from shared.batches import TASK_FIELDS, tasks_of
from shared.errors import SpecError
from shared.tasks import Tasks

MOST_ROWS = 100_000

COLUMNS = {field.name: field for field in TASK_FIELDS if field.name != "task_id"}
DEPENDENCIES = "dependencies"


def read_columns(body: bytes) -> pa.Table:
    """The columns of the tasks, with the types that the bus uses."""
    try:
        refuse_compression(body)
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except BROKEN as error:
        raise SpecError([f"not an Arrow stream that can be read: {error}"]) from None
    if not 1 <= table.num_rows <= MOST_ROWS:
        raise SpecError([f"a request has 1 to {MOST_ROWS} tasks, not {table.num_rows}"])
    return table


def numbered(table: pa.Table, first: int) -> Tasks:
    """The rows as tasks whose ids rise from `first`; a column `task_id` is not looked at."""
    arrays = {name: _column(table, name) for name in COLUMNS}
    arrays["task_id"] = pa.array(np.arange(first, first + table.num_rows, dtype=np.int64))
    rows = [arrays[field.name] for field in TASK_FIELDS]
    return tasks_of(pa.RecordBatch.from_arrays(rows, schema=pa.schema(TASK_FIELDS)))


def _column(table: pa.Table, name: str) -> pa.Array:
    wanted = COLUMNS[name].type
    places = table.schema.get_all_field_indices(name)
    if not places and name == DEPENDENCIES:
        return pa.array([[]] * table.num_rows, wanted)
    if len(places) != 1:
        raise SpecError([f"column {name} is {'there twice' if places else 'missing'}"])
    column = table.column(places[0])
    if _untyped_and_empty(column):
        return pa.array([[]] * table.num_rows, wanted)
    if not _plain(column.type, name):
        raise SpecError([f"column {name} must be {wanted}, not {column.type}"])
    try:
        column = column.cast(wanted).combine_chunks()
    except pa.ArrowException as error:
        raise SpecError([f"column {name} must be {wanted}: {error}"]) from None
    if column.null_count or (name == DEPENDENCIES and column.flatten().null_count):
        raise SpecError([f"column {name} has missing values"])
    return column


def _untyped_and_empty(column: pa.ChunkedArray) -> bool:
    """What a program makes of lists that are all empty."""
    if not (pa.types.is_list(column.type) and pa.types.is_null(column.type.value_type)):
        return False
    return all(len(chunk.flatten()) == 0 for chunk in column.chunks)


def _plain(kind: pa.DataType, name: str) -> bool:
    """Numbers, or lists of them, one after the other: other layouts grow when they are read."""
    if name == DEPENDENCIES:
        return bool(pa.types.is_list(kind) and pa.types.is_integer(kind.value_type))
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
