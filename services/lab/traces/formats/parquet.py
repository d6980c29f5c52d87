"""Parquet files with the columns of a task, as `hybrid trace convert` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet as arrow_parquet

from services.lab.traces.column_rules import Rules
from services.lab.traces.formats.delimited import check_columns
from services.lab.traces.formats.text_columns import NOT_FINITE, Rows
from services.lab.traces.problem_report import Report, TraceError

ROWS = 16_384
MAGIC = b"PAR1"


def read_rows(path: Path, rules: Rules, report: Report) -> Iterator[Rows]:
    report.unit = "row"
    try:
        with arrow_parquet.ParquetFile(path) as file:
            yield from _rows(file, rules, report)
    except (pa.ArrowException, OSError) as error:
        raise TraceError(f"not a readable Parquet file: {error}") from None


def _rows(file: arrow_parquet.ParquetFile, rules: Rules, report: Report) -> Iterator[Rows]:
    names = file.schema_arrow.names
    check_columns(names, rules)
    texts = [name for name in (rules.name, rules.parents, rules.kind) if name in names]
    columns = sorted(rules.columns() & set(names))
    first = 0
    for batch in file.iter_batches(ROWS, columns=columns + texts):
        lines = np.arange(first, first + batch.num_rows, dtype=np.int64)
        first += batch.num_rows
        rows = Rows(lines, {name: _numbers(batch, name) for name in columns})
        if rules.kind and rules.kind in names:
            kinds = batch.column(rules.kind).to_pylist()
            rows.texts[rules.kind] = ["" if kind is None else str(kind) for kind in kinds]
        if rules.parents in names:
            _name(rows, batch, rules, names)
        yield _finite(rows, batch, report)


def _numbers(batch: pa.RecordBatch, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    try:
        values: np.ndarray[tuple[int], np.dtype[np.float64]] = (
            batch.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False)
        )
        return values
    except pa.ArrowException:
        kind = batch.schema.field(name).type
        raise TraceError(f"column {name} is {kind}, not numbers") from None


def _name(rows: Rows, batch: pa.RecordBatch, rules: Rules, names: list[str]) -> None:
    assert rules.parents is not None
    lists = batch.column(rules.parents)
    if not pa.types.is_list(lists.type):
        raise TraceError(f"column {rules.parents} is {lists.type}, not lists")
    own = batch.column(rules.name).to_pylist() if rules.name in names else rows.line.tolist()
    rows.names = ["" if name is None else str(name) for name in own]
    rows.parents = [[str(name) for name in ids or ()] for ids in lists.to_pylist()]


def _finite(rows: Rows, batch: pa.RecordBatch, report: Report) -> Rows:
    kept = np.ones(len(rows), np.bool_)
    for name, values in rows.numbers.items():
        present = batch.column(name).is_valid().to_numpy(zero_copy_only=False)
        bad = kept & present & ~np.isfinite(values)
        report.skip_all(rows.line[bad], NOT_FINITE, (f"{name} {value}" for value in values[bad]))
        kept &= ~bad
    return rows.only(kept)
