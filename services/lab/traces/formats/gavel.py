"""Gavel's job traces: tab-separated, without a header, seven or ten fields a line.

Seven: job type, command, name of the steps argument, whether it needs data, steps, arrival, GPUs.
Ten: job type, command, working directory, name of the steps argument, whether it needs data, steps,
GPUs, priority, service-level objective, arrival.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.lab.platforms.gavel import kind_of
from services.lab.traces.column_rules import Rules
from services.lab.traces.formats.text_blocks import Block, Source, blocks
from services.lab.traces.formats.text_columns import Malformed, Parser, Rows
from services.lab.traces.problem_report import Report, TraceError

COLUMNS = ["job_type", "total_steps", "scale_factor", "arrival_time", "priority", "slo", "kind"]
# Where the columns but `kind` are; -1: nowhere.
PLACES = {7: (0, 4, 6, 5, -1, -1), 10: (0, 5, 6, 9, 7, 8)}


class GavelParser(Parser):
    def parse(self, block: Block) -> Iterator[Rows]:
        yield self._finite(self._by_line(block))

    def _at_once(self, block: Block) -> Rows | None:
        return None

    def _cells(self, line: str) -> list[str]:
        fields = line.split("\t")
        if len(fields) not in PLACES:
            raise Malformed("neither 7 nor 10 fields", str(len(fields)))
        cells = ["" if place < 0 else fields[place] for place in PLACES[len(fields)]]
        return [*cells, _kind(cells[0].strip(), cells[2].strip())]


def _kind(job_type: str, scale_factor: str) -> str:
    return kind_of(job_type, int(scale_factor)) if scale_factor.isdecimal() else job_type


def looks_like_gavel(line: bytes) -> bool:
    fields = line.rstrip(b"\r").split(b"\t")
    places = PLACES.get(len(fields))
    return places is not None and all(_is_number(fields[place]) for place in places[1:4])


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_rows(source: Source, rules: Rules, report: Report) -> Iterator[Rows]:
    texts = [rules.kind] if rules.kind else []
    if unknown := sorted((rules.columns() | {*texts}) - set(COLUMNS)):
        raise TraceError(
            f"Gavel's trace has no column {', '.join(unknown)}; it has {', '.join(COLUMNS)}"
        )
    parser = GavelParser(COLUMNS, sorted(rules.columns()), texts, report)
    empty = True
    for block in blocks(source, report):
        empty = False
        yield from parser.parse(block)
    if empty:
        raise TraceError("the file is empty")
