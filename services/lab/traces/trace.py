"""A trace file: detects its format and reads its tasks in batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from services.lab.traces.column_rules import SwfRules
from services.lab.traces.formats import delimited, gavel, parquet, philly, swf, wfcommons
from services.lab.traces.formats.text_blocks import Source
from services.lab.traces.formats.text_columns import Rows
from services.lab.traces.mapping import Mapping
from services.lab.traces.problem_report import Report, TraceError
from services.lab.traces.task_links import LinkCollector, TaskLinks
from services.lab.traces.to_tasks import Substituted, Translator
from shared.domain.bounds.offered_load import Load, OfferedLoad
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks, take

FORMATS = {
    "csv": "our CSV, the columns of a task",
    "parquet": "the same as Parquet",
    "swf": "Standard Workload Format",
    "alibaba": "Alibaba's GPU pod list of 2023 (openb_pod_list)",
    "wfcommons": "WfCommons JSON (WfFormat)",
    "gavel": "Gavel's job trace, tab-separated",
    "philly": "Philly's job log (cluster_job_log), JSON",
    "helios": "Helios' job log (cluster_log.csv)",
}
READERS = {
    "wfcommons": wfcommons.read_rows,
    "gavel": gavel.read_rows,
    "philly": philly.read_rows,
}

DETECT_BYTES = 65_536


@dataclass(frozen=True)
class Survey:
    """What the first pass over a trace found."""

    tasks: int
    links: TaskLinks
    offered: OfferedLoad

    @cached_property
    def load(self) -> Load | None:
        """The offered load; None: all tasks arrive at once, or the platform lacks their times."""
        return self.offered.load()


class Trace:
    """The tasks of a file, as a run of `spec` would get them.

    Without a spec they are those of the default one, and none is skipped because the platform
    cannot run it. The file is read twice: see `task_links`.
    """

    def __init__(
        self,
        path: Path,
        report: Report,
        *,
        format: str | None = None,
        mapping: Mapping | None = None,
        spec: RunSpec | None = None,
        limit: int | None = None,
    ) -> None:
        mapping = mapping or Mapping()
        self.path = path
        self.report = report
        self.format = format or detect(path)
        self.rules = mapping.rules(self.format)
        self.spec = _with_physics(spec or RunSpec.parse({}), mapping)
        self._fit = spec is not None
        self._limit = limit
        self._source: Source | None = None
        self._pass = 0
        self._survey: Survey | None = None
        self._translator: Translator | None = None
        self.tasks_read = 0

    @property
    def progress(self) -> float:
        """The share of the file that has been read in both passes."""
        if self._source is None or not self._source.total:
            return 0.0
        return (self._pass - 1 + self._source.position / self._source.total) / 2

    @property
    def has_times(self) -> bool:
        """Whether the platform says how long these tasks take."""
        return not self.rules.needs_measured_times or self.spec.platform.measured is not None

    @property
    def substituted(self) -> dict[str, Substituted]:
        """What each rule has substituted in the tasks read so far."""
        return {} if self._translator is None else self._translator.substituted

    @property
    def recorded_on_cpu(self) -> int:
        """How many of the tasks read so far have a time that was recorded on a CPU."""
        return 0 if self._translator is None else self._translator.recorded_on_cpu

    def survey(self) -> Survey:
        """The first pass: which task waits for which, and the load that all of them offer."""
        if self._survey is None:
            with self._named_errors():
                self._survey = self._first_pass()
        return self._survey

    def _first_pass(self) -> Survey:
        self._pass = 1
        collector, load = LinkCollector(), OfferedLoad(self.spec)
        # The second pass reports the problems.
        translator = Translator(self.rules, self.spec, Report(), collector, self._fit)
        for rows in self._rows(Report()):
            first = translator.next_task
            tasks = translator.tasks(rows)
            if self.has_times and self._fit:
                remaining = len(tasks) if self._limit is None else self._limit - first
                load.add(take(tasks, slice(0, max(remaining, 0))))
            if self._limit is not None and translator.next_task >= self._limit:
                break
        count = min(translator.next_task, self._limit or translator.next_task)
        return Survey(count, collector.links(self.report), load)

    def batches(self) -> Iterator[Tasks]:
        """All tasks, numbered from 0, in batches of some thousands. No task at all is an error."""
        survey = self.survey()
        with self._named_errors():
            self._pass = 2
            survey.links.restart()
            translator = Translator(self.rules, self.spec, self.report, survey.links, self._fit)
            self._translator = translator
            for rows in self._rows(self.report):
                tasks = translator.tasks(rows)
                self.report.flush()
                if self._limit is not None:
                    tasks = take(tasks, slice(0, max(self._limit - self.tasks_read, 0)))
                self.tasks_read += len(tasks)
                if len(tasks):
                    yield tasks
                if self.tasks_read == self._limit:
                    return
            self.report.flush()
            if self.tasks_read == 0:
                raise TraceError(f"no tasks in this trace{self._why_empty()}")

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except TraceError as error:
            raise TraceError(f"{self.path}: {error}") from None

    def _why_empty(self) -> str:
        unit, skipped = self.report.unit, self.report.skipped
        if not skipped:
            return f": it has no {unit}s to read"
        ((reason, count),) = skipped.most_common(1)
        return f": {skipped.total():,} {unit}s skipped, {count:,} of them for: {reason}"

    def _rows(self, report: Report) -> Iterator[Rows]:
        if self.format == "parquet":
            yield from parquet.read_rows(self.path, self.rules, report)
            return
        with Source(self.path) as source:
            self._source = source
            if isinstance(self.rules, SwfRules):
                yield from swf.read_rows(source, self.rules, report)
            else:
                yield from READERS.get(self.format, delimited.read_rows)(source, self.rules, report)


def _with_physics(spec: RunSpec, mapping: Mapping) -> RunSpec:
    """The spec with the constants that the mapping sets instead of the run."""
    if mapping.physics is None:
        return spec
    physics = spec.physics.model_copy(update=mapping.physics.model_dump())
    return spec.model_copy(update={"physics": physics})


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
    if data.lstrip().startswith(b"["):
        return "philly"
    if gavel.looks_like_gavel(data.split(b"\n", 1)[0]):
        return "gavel"
    header = set(delimited.header_of(data))
    if {"gpu_num", "submit_time", "duration"} <= header:
        return "helios"
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
