"""Tasks as CSV in a request's body: the columns of `hybrid trace convert`, with a header."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from services.gateway.tasks.arrow_body import DEPENDENCIES, MOST_ROWS
from shared.errors import SpecError
from shared.messages.columns import TASK

CSV = "text/csv"
SEPARATOR = ";"
DIVISIBLE = "divisible"  # 0 or 1

TYPES = {column.name: column.type for column in TASK} | {
    DEPENDENCIES: pa.string(),
    DIVISIBLE: pa.int32(),
}


def read_csv(body: bytes) -> pa.Table:
    """The columns of tasks in a CSV body. Columns with other names are ignored."""
    try:
        table = csv.read_csv(
            io.BytesIO(body),
            convert_options=csv.ConvertOptions(column_types=TYPES, strings_can_be_null=False),
        )
        table = table.select([name for name in table.column_names if name in TYPES])
        for name, convert in ((DEPENDENCIES, _lists), (DIVISIBLE, _flags)):
            if name in table.column_names:
                at = table.column_names.index(name)
                table = table.set_column(at, name, convert(table.column(name)))
    except (pa.ArrowException, ValueError) as error:
        raise SpecError([f"not CSV with the columns of tasks: {error}"]) from None
    if not 1 <= table.num_rows <= MOST_ROWS:
        raise SpecError([f"a request has 1 to {MOST_ROWS} tasks, not {table.num_rows}"])
    return table


def _lists(texts: pa.ChunkedArray) -> pa.Array:
    """`1;2;3` as a list of task ids."""
    ids = [[int(part) for part in text.split(SEPARATOR) if part] for text in texts.to_pylist()]
    return pa.array(ids, pa.list_(pa.int64()))


def _flags(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.not_equal(numbers, 0)
