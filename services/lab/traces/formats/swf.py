"""The Standard Workload Format: 18 numbers per line, -1 for unknown, comments start with `;`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from services.lab.traces.column_rules import SwfRules
from services.lab.traces.formats.text_blocks import Block, Source, blocks
from services.lab.traces.formats.text_columns import Parser, Rows, check_count
from services.lab.traces.problem_report import Report, TraceError

COLUMNS = [
    "job_number", "submit_time", "wait_time", "run_time", "processors", "cpu_time",
    "used_memory", "requested_processors", "requested_time", "requested_memory", "status",
    "user", "group", "executable", "queue", "partition", "preceding_job", "think_time",
]  # fmt: skip

UNKNOWN = -1.0


class SwfParser(Parser):
    def _at_once(self, block: Block) -> Rows | None:
        if b";" in block.data or not block.data.strip():
            return None
        table = np.loadtxt(block.data.decode("ascii").split("\n"), comments=None, ndmin=2)
        if table.shape != (block.count, len(COLUMNS)) or np.isnan(table).any():
            return None  # numpy ignores empty lines
        lines = np.arange(block.first_line, block.first_line + block.count, dtype=np.int64)
        return Rows(lines, {name: table[:, COLUMNS.index(name)] for name in self._numbers})

    def _cells(self, line: str) -> list[str]:
        if line.lstrip().startswith(";"):
            return []
        return check_count(line.split(), COLUMNS)


def read_rows(source: Source, rules: SwfRules, report: Report) -> Iterator[Rows]:
    used = rules.columns() | {*_name_columns(rules)} | ({rules.kind} if rules.kind else set())
    unknown = sorted(used - set(COLUMNS))
    if unknown:
        raise TraceError(f"SWF has no column {', '.join(unknown)}; it has {', '.join(COLUMNS)}")
    numbers = sorted(used | {"status"})
    parser = SwfParser(COLUMNS, numbers, [], report)
    empty = True
    for block in blocks(source, report):
        empty = False
        for rows in parser.parse(block):
            rows.kept = _kept(rows, rules, report)
            yield _known(rows, rules)
    if empty:
        raise TraceError("the file is empty")


def _kept(rows: Rows, rules: SwfRules, report: Report) -> NDArray[np.bool_]:
    status = rows.numbers["status"]
    kept = np.isin(status, rules.keep_status)
    for value in np.unique(status[~kept]):
        which = status == value
        reason = "job was cancelled" if value == 5 else f"job has status {value:g}"
        report.skip_all(rows.line[which], f"{reason} (keep_status)", [""] * int(which.sum()))
    return kept


def _known(rows: Rows, rules: SwfRules) -> Rows:
    for name in rows.numbers:
        if name != "status":
            values = rows.numbers[name]
            rows.numbers[name] = np.where(values == UNKNOWN, np.nan, values)
    if rules.kind:
        rows.texts[rules.kind] = [_name(value) for value in rows.numbers[rules.kind].tolist()]
    if columns := _name_columns(rules):
        own, parents = (rows.numbers[column].tolist() for column in columns)
        rows.names = [_name(job) for job in own]
        rows.parents = [[_name(job)] if job == job else [] for job in parents]  # NaN: no parent
    return rows


def _name(job: float) -> str:
    """As in the file; NaN has none."""
    return f"{job:.17g}" if job == job else ""


def _name_columns(rules: SwfRules) -> tuple[str, ...]:
    return (rules.name, rules.parents) if rules.name and rules.parents else ()
