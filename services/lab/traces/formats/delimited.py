"""CSV traces: our own, Alibaba's pod list, or any other with a mapping of its columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from services.lab.traces.column_rules import Rules
from services.lab.traces.formats.dates import all_seconds
from services.lab.traces.formats.text_blocks import Block, Source, blocks
from services.lab.traces.formats.text_columns import Malformed, Parser, Rows, check_count
from services.lab.traces.problem_report import Report, TraceError

SEPARATOR = ";"  # between the parents of a task


class CsvParser(Parser):
    def _at_once(self, block: Block) -> Rows | None:
        block.data.decode()  # checks the unused columns, too
        words = {*self._texts, *self._dates}
        kinds = {
            name: pa.string() if name in words else pa.float64()
            for name in (*self._numbers, *self._texts)
        }
        table = arrow_csv.read_csv(
            pa.BufferReader(block.data),
            read_options=arrow_csv.ReadOptions(
                column_names=self._header, use_threads=False, block_size=len(block.data) + 1
            ),
            parse_options=arrow_csv.ParseOptions(ignore_empty_lines=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types=kinds, include_columns=list(kinds), null_values=[""]
            ),
        )
        if table.num_rows != block.count:  # Arrow takes a lone carriage return as a line end
            return None
        numbers = {}
        for name in self._numbers:
            column = table.column(name)
            if name in self._dates:
                numbers[name] = all_seconds(column.to_pylist(), self._dates[name])
                continue
            values = column.to_numpy()
            if np.isnan(values).sum() != column.null_count:
                return None
            numbers[name] = values
        lines = np.arange(block.first_line, block.first_line + block.count, dtype=np.int64)
        texts = {name: table.column(name).to_numpy().tolist() for name in self._texts}
        return Rows(lines, numbers, texts)

    def _cells(self, line: str) -> list[str]:
        return check_count(split_line(line), self._header)


def split_line(line: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error as error:
        raise Malformed("unbalanced quotes", str(error)) from None


def read_rows(source: Source, rules: Rules, report: Report) -> Iterator[Rows]:
    parser: CsvParser | None = None
    header: list[str] = []
    first = 0
    for block in blocks(source, report):
        if parser is None:
            if not block.data.split(b"\n", 1)[0].strip():
                raise TraceError("the first line is empty; it must have the names of the columns")
            header = header_of(block.data)
            parser = make_parser(header, rules, report)
            first = block.first_line + 1
            rest = block.data.partition(b"\n")[2]
            if not rest:
                continue
            block = Block(first, rest, block.count - 1)
        for rows in parser.parse(block):
            if rules.parents in header:
                _add_names(rows, rules, header, first)
            yield rows
    if parser is None:
        raise TraceError("the file is empty")


def header_of(data: bytes) -> list[str]:
    line = data.split(b"\n", 1)[0].decode(errors="replace").rstrip("\r")
    try:
        return [name.strip() for name in next(csv.reader(io.StringIO(line)), [])]
    except csv.Error:
        return []


def make_parser(header: Sequence[str], rules: Rules, report: Report) -> CsvParser:
    check_columns(header, rules)
    duplicates = sorted({name for name in header if header.count(name) > 1} & rules.columns())
    if duplicates:
        raise TraceError(f"duplicate column {', '.join(duplicates)}")
    numbers = sorted(rules.columns() & set(header))
    texts = [rules.kind] if rules.kind in header else []
    if rules.parents in header:
        texts += [name for name in (rules.name, rules.parents) if name in header]
    dates = {name: format for name, format in rules.dates().items() if name in header}
    return CsvParser(header, numbers, list(filter(None, texts)), report, dates)


def check_columns(header: Sequence[str], rules: Rules) -> None:
    if missing := rules.missing(header):
        raise TraceError(
            f"no column {', '.join(missing)} in the header; it has "
            f"{', '.join(map(repr, header[:20])) or 'nothing'}; "
            "--mapping FILE says which column is which (start from `hybrid trace mapping`)"
        )


def _add_names(rows: Rows, rules: Rules, header: list[str], first: int) -> None:
    """Without a column of names, the name of a task is its line number, from 0."""
    assert rules.parents is not None
    if rules.name in header:
        rows.names = rows.texts[rules.name]
    else:
        rows.names = [str(number) for number in (rows.line - first).tolist()]
    rows.parents = [
        [part for name in cell.split(SEPARATOR) if (part := name.strip())] if cell else []
        for cell in rows.texts[rules.parents]
    ]
