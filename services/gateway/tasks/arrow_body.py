"""Tasks as an Arrow stream in a request's body. The body is untrusted: a small one must not become
a large table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shared.domain.hardware.measured_times import LONGEST_KIND
from shared.domain.tasks import Tasks
from shared.errors import SpecError
from shared.messages.arrow_safety import BROKEN, refuse_compression
from shared.messages.batches import TASKS, column, tasks_of
from shared.messages.columns import TASK

MOST_ROWS = 100_000

_TASK_ID, *COLUMNS = TASK
KIND, DEPENDENCIES, LAST_CHILD = "kind", "dependencies", "last_child"
# What a column that may be left out has in every row.
DEFAULTS = {DEPENDENCIES: [], **{each.name: each.default for each in COLUMNS if each.since > 1}}


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
    """The rows as tasks with ids from `first` on; a column `task_id` is ignored. A `last_child`
    below 0 was not given."""
    task_id = pa.array(np.arange(first, first + table.num_rows, dtype=np.int64))
    arrays = [task_id, *(_column(table, each.name, each.type) for each in COLUMNS)]
    rows = pa.RecordBatch.from_arrays(arrays, schema=TASKS)
    return replace(tasks_of(rows), last_child=column(rows, LAST_CHILD))


def _column(table: pa.Table, name: str, expected: pa.DataType) -> pa.Array:
    indices = table.schema.get_all_field_indices(name)
    if not indices and name in DEFAULTS:
        return _repeated(name, expected, table.num_rows)
    if len(indices) != 1:
        raise SpecError([f"column {name} is {'there twice' if indices else 'missing'}"])
    values = table.column(indices[0])
    if _untyped_and_empty(values):
        return _repeated(name, expected, table.num_rows)
    if not _plain(values.type, expected):
        raise SpecError([f"column {name} must be {expected}, not {values.type}"])
    try:
        values = values.cast(expected).combine_chunks()
    except pa.ArrowException as error:
        raise SpecError([f"column {name} must be {expected}: {error}"]) from None
    if values.null_count or (name == DEPENDENCIES and values.flatten().null_count):
        raise SpecError([f"column {name} has missing values"])
    if name == KIND and (longest := pc.max(pc.utf8_length(values)).as_py()) > LONGEST_KIND:
        raise SpecError([f"column {name} has {longest} characters; at most {LONGEST_KIND}"])
    return values


def _repeated(name: str, expected: pa.DataType, count: int) -> pa.Array:
    return pa.array([DEFAULTS[name]] * count, expected)


def _untyped_and_empty(column: pa.ChunkedArray) -> bool:
    """Whether all lists are empty; many writers then give their items no type."""
    if not (pa.types.is_list(column.type) and pa.types.is_null(column.type.value_type)):
        return False
    return all(len(chunk.flatten()) == 0 for chunk in column.chunks)


def _plain(actual: pa.DataType, expected: pa.DataType) -> bool:
    """Whether the layout is plain: others, such as dictionaries, may grow when they are read."""
    if pa.types.is_list(expected):
        return bool(pa.types.is_list(actual) and pa.types.is_integer(actual.value_type))
    if pa.types.is_string(expected):
        return bool(pa.types.is_string(actual) or pa.types.is_large_string(actual))
    if pa.types.is_boolean(expected):
        return bool(pa.types.is_boolean(actual))
    return bool(pa.types.is_integer(actual) or pa.types.is_floating(actual))
