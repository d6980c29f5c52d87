"""Writes a trace as our own CSV or Parquet file; an incomplete file is never left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet as arrow_parquet

from services.lab.atomic_write import replace_file
from services.lab.traces.formats.delimited import SEPARATOR
from services.lab.traces.problem_report import TraceError
from services.lab.traces.trace import Trace
from shared.domain.tasks import Tasks
from shared.messages.batches import TASKS, complete, task_rows

# The columns of a file; which child is the last follows from the dependencies.
COLUMNS = TASKS.remove(TASKS.get_field_index("last_child"))
# CSV has no lists, and 0 and 1 for truth values, like any number.
IN_CSV = {"dependencies": pa.string(), "divisible": pa.int32()}
AS_TEXT = pa.schema([field.with_type(IN_CSV.get(field.name, field.type)) for field in COLUMNS])


class Writer(Protocol):
    def write_batch(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


def convert(trace: Trace, target: Path, each: Callable[[Tasks], None]) -> int:
    """Write all tasks and return their number; `each` is called with every batch."""
    check_target(trace.path, target)
    try:
        with replace_file(target) as part:
            return _write(trace, part, target.suffix, each)
    except OSError as error:
        raise TraceError(f"{target}: cannot be written: {error.strerror}") from None


def _write(trace: Trace, part: Path, suffix: str, each: Callable[[Tasks], None]) -> int:
    count = 0
    writer = _writer(part, suffix)
    try:
        for tasks in trace.batches():
            rows = complete(task_rows(tasks), "tasks").select(COLUMNS.names)
            writer.write_batch(rows if suffix == ".parquet" else _texts(rows))
            count += len(tasks)
            each(tasks)
    finally:
        writer.close()
    return count


def check_target(source: Path, target: Path) -> None:
    if target.suffix not in (".csv", ".parquet"):
        raise TraceError(f"{target}: a trace is written as .csv or .parquet")
    if target.exists() and source.exists() and target.samefile(source):
        raise TraceError(f"{target}: is the trace itself")


def _writer(part: Path, suffix: str) -> Writer:
    writer: Any
    if suffix == ".parquet":
        writer = arrow_parquet.ParquetWriter(part, COLUMNS, compression="zstd")
    else:
        options = arrow_csv.WriteOptions(quoting_style="none", quoting_header="none")
        writer = arrow_csv.CSVWriter(part, AS_TEXT, write_options=options)
    return cast(Writer, writer)


def _texts(rows: pa.RecordBatch) -> pa.RecordBatch:
    lists = rows.column("dependencies").to_pylist()
    columns = {name: rows.column(name) for name in COLUMNS.names}
    columns["dependencies"] = pa.array([SEPARATOR.join(map(str, ids)) for ids in lists])
    arrays = [columns[field.name].cast(field.type) for field in AS_TEXT]
    return pa.RecordBatch.from_arrays(arrays, schema=AS_TEXT)
