"""A trace file: detects its format and reads its tasks in batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from services.lab.traces.column_rules import Inversion, SwfRules
from services.lab.traces.formats import delimited, parquet, swf, wfcommons
from services.lab.traces.formats.text_blocks import Source
from services.lab.traces.formats.text_columns import Rows
from services.lab.traces.mapping import Mapping
from services.lab.traces.problem_report import Report, TraceError
from services.lab.traces.to_tasks import Translator
from shared.domain.spec import Physics
from shared.domain.tasks import Tasks

FORMATS = {
    "csv": "our CSV, the columns of a task",
    "parquet": "the same as Parquet",
    "swf": "Standard Workload Format",
    "alibaba": "Alibaba's GPU pod list of 2023 (openb_pod_list)",
    "wfcommons": "WfCommons JSON (WfFormat)",
}

DETECT_BYTES = 65_536


class Trace:
    def __init__(
        self,
        path: Path,
        report: Report,
        *,
        format: str | None = None,
        mapping: Mapping | None = None,
        physics: Physics | None = None,
    ) -> None:
        mapping = mapping or Mapping()
        self.path = path
        self.report = report
        self.format = format or detect(path)
        self.rules = mapping.rules(self.format)
        self.physics = mapping.physics or inversion(physics or Physics())
        self.translator = Translator(self.rules, self.physics, report)
        self._source: Source | None = None

    @property
    def progress(self) -> float:
        """The share of the file that has been read."""
        if self._source is None or not self._source.total:
            return 0.0
        return self._source.position / self._source.total

    def batches(self) -> Iterator[Tasks]:
        """All tasks, numbered from 0, in batches of some thousands. No task at all is an error."""
        try:
            for rows in self._rows():
                tasks = self.translator.tasks(rows)
                self.report.flush()
                if len(tasks):
                    yield tasks
            self.report.flush()
            if self.translator.next_task == 0:
                raise TraceError(f"no tasks in this trace{self._why_empty()}")
        except TraceError as error:
            raise TraceError(f"{self.path}: {error}") from None

    def _why_empty(self) -> str:
        unit, skipped = self.report.unit, self.report.skipped
        if not skipped:
            return f": it has no {unit}s to read"
        ((reason, count),) = skipped.most_common(1)
        return f": {skipped.total():,} {unit}s skipped, {count:,} of them for: {reason}"

    def _rows(self) -> Iterator[Rows]:
        if self.format == "parquet":
            yield from parquet.read_rows(self.path, self.rules, self.report)
            return
        with Source(self.path) as source:
            self._source = source
            if isinstance(self.rules, SwfRules):
                yield from swf.read_rows(source, self.rules, self.report)
            elif self.format == "wfcommons":
                yield from wfcommons.read_rows(source, self.rules, self.report)
            else:
                yield from delimited.read_rows(source, self.rules, self.report)


def inversion(physics: Physics) -> Inversion:
    return Inversion(
        size_unit=physics.size_unit,
        size_exponent=physics.size_exponent,
        intensity_offset=physics.intensity_offset,
    )


def detect(path: Path) -> str:
    """The format by content; file names such as trace.txt.gz are not reliable."""
    try:
        return _detected(path)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None


def _detected(path: Path) -> str:
    with Source(path) as source:
        data = source.read(DETECT_BYTES)
    if data.startswith(parquet.MAGIC):
        return "parquet"
    if data.lstrip().startswith(b"{"):
        return "wfcommons"
    header = set(delimited.header_of(data))
    if {"cpu_milli", "gpu_milli", "creation_time"} <= header:
        return "alibaba"
    if {"size", "compute_intensity"} & header:
        return "csv"
    name = path.name.removesuffix(".gz")
    if name.endswith(".swf") or _looks_like_swf(data):
        return "swf"
    if not data.strip():
        raise TraceError("the file is empty")
    if name.endswith(".csv"):
        # Probably ours: missing columns are reported when it is read.
        return "csv"
    known = "; ".join(f"{name}: {text}" for name, text in FORMATS.items())
    raise TraceError(f"unknown format; set it with --format ({known})")


def _looks_like_swf(data: bytes) -> bool:
    for line in data.split(b"\n")[:-1] or [data]:
        if not line.strip() or line.lstrip().startswith(b";"):
            continue
        return len(line.split()) == len(swf.COLUMNS) and b"," not in line
    return False
