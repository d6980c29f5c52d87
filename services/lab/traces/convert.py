"""A trace as our own CSV or Parquet. Under its name the file is there whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet as arrow_parquet

from services.lab.traces.delimited import SEPARATOR
from services.lab.traces.report import TraceError
from services.lab.traces.trace import Trace
from shared.batches import TASKS, task_rows
from shared.tasks import Tasks

AS_TEXT = TASKS.set(TASKS.get_field_index("dependencies"), pa.field("dependencies", pa.string()))


class Writer(Protocol):
    def write_batch(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


def convert(trace: Trace, target: Path, each: Callable[[Tasks], None]) -> int:
    """Write all tasks; `each` sees every batch. Returns how many there were."""
    check_target(trace.path, target)
    count = 0
    with _whole_or_not_at_all(target) as part:
        writer = _writer(part, target)
        try:
            for tasks in trace.batches():
                rows = task_rows(tasks)
                writer.write_batch(rows if target.suffix == ".parquet" else _texts(rows))
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


def _writer(part: Path, target: Path) -> Writer:
    made: Any
    if target.suffix == ".parquet":
        made = arrow_parquet.ParquetWriter(part, TASKS, compression="zstd")
    else:
        options = arrow_csv.WriteOptions(quoting_style="none", quoting_header="none")
        made = arrow_csv.CSVWriter(part, AS_TEXT, write_options=options)
    writer: Writer = made
    return writer


def _texts(rows: pa.RecordBatch) -> pa.RecordBatch:
    lists = rows.column("dependencies").to_pylist()
    texts = pa.array([SEPARATOR.join(map(str, found)) for found in lists], pa.string())
    return pa.RecordBatch.from_arrays([*rows.columns[:-1], texts], schema=AS_TEXT)


@contextmanager
def _whole_or_not_at_all(target: Path) -> Iterator[Path]:
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, target)
    except OSError as error:
        raise TraceError(f"{target}: cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
