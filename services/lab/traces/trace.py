"""A trace file, opened: which format it is, and its tasks in batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from services.lab.traces import delimited, parquet, swf, wfcommons
from services.lab.traces.columns import Rows
from services.lab.traces.lines import Source
from services.lab.traces.mapping import Mapping
from services.lab.traces.report import Report, TraceError
from services.lab.traces.rules import Inversion, SwfRules
from services.lab.traces.translate import Translator
from shared.spec import Physics
from shared.tasks import Tasks

FORMATS = {
    "csv": "our CSV, the columns of a task",
    "parquet": "the same as Parquet",
    "swf": "Standard Workload Format",
    "alibaba": "Alibaba's GPU pod list of 2023 (openb_pod_list)",
    "wfcommons": "WfCommons JSON (WfFormat)",
}

LOOKED_AT = 65_536  # bytes that tell the format


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
        """The share of the file that is read."""
        if self._source is None or not self._source.total:
            return 0.0
        return self._source.position / self._source.total

    def batches(self) -> Iterator[Tasks]:
        """All tasks, numbered from 0; a batch has some thousands."""
        try:
            for rows in self._rows():
                tasks = self.translator.tasks(rows)
                self.report.flush()
                if len(tasks):
                    yield tasks
            self.report.flush()
        except TraceError as error:
            raise TraceError(f"{self.path}: {error}") from None

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
    """By the content, since names such as trace.txt.gz say little."""
    try:
        return _detected(path)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None


def _detected(path: Path) -> str:
    with Source(path) as source:
        data = source.read(LOOKED_AT)
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
        # Ours, it seems: what its header lacks is said when it is read.
        return "csv"
    known = "; ".join(f"{name}: {what}" for name, what in FORMATS.items())
    raise TraceError(f"cannot tell the format; say it with --format ({known})")


def _looks_like_swf(data: bytes) -> bool:
    for line in data.split(b"\n")[:-1] or [data]:
        if not line.strip() or line.lstrip().startswith(b";"):
            continue
        return len(line.split()) == len(swf.COLUMNS) and b"," not in line
    return False
