"""Options that the commands of `hybrid trace` share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape
from typer import Argument, Option

from services.cli.output import err
from services.cli.platforms.option import merge_platform
from services.lab.traces.mapping import Mapping, load_mapping
from services.lab.traces.problem_report import SHOWN as SHOWN
from services.lab.traces.problem_report import Report, TraceError
from services.lab.traces.trace import FORMATS, Trace
from shared.domain.spec import RunSpec, read_mapping

File = Annotated[Path, Argument(help="The trace; may be gzipped.")]
Format = Annotated[
    str | None, Option(help=f"{', '.join(FORMATS)}; none: detected from the content.")
]
MappingFile = Annotated[
    Path | None, Option(help="YAML that maps columns to task fields; see docs.")
]
SpecFile = Annotated[Path | None, Option("--spec", help="A RunSpec: cluster, physics, learning.")]
Errors = Annotated[Path | None, Option(help="Write all problems to this file.")]
Show = Annotated[int, Option(min=0, help="How many problems to show.")]
Strict = Annotated[bool, Option("--strict", help="Fail at the first problem.")]


@contextmanager
def reporting(file: Path, errors: Path | None, show: int, strict: bool) -> Iterator[Report]:
    """A report that shows the first problems on stderr and writes all of them to a file."""

    def show_problem(text: str) -> None:
        err.print(escape(text), style="yellow", soft_wrap=True)

    if errors is None:
        yield Report(strict=strict, show=show_problem, shown=show)
        return
    if errors.exists() and file.exists() and errors.samefile(file):
        raise TraceError(f"{errors} is the trace itself: give --errors another file")
    try:
        sink = errors.open("w", encoding="utf-8")
    except OSError as error:
        raise TraceError(f"{errors}: cannot be written: {error.strerror}") from None
    with sink:
        yield Report(strict=strict, show=show_problem, shown=show, sink=sink)


def known_format(format: str | None) -> str | None:
    if format is not None and format not in FORMATS:
        raise TraceError(f"no format {format!r}; there are {', '.join(FORMATS)}")
    return format


def mapping_of(path: Path | None) -> Mapping:
    return Mapping() if path is None else load_mapping(path)


def open_trace(
    file: Path,
    report: Report,
    format: str | None,
    mapping: Path | None,
    spec: RunSpec | None,
    limit: int | None = None,
) -> Trace:
    return Trace(
        file,
        report,
        format=known_format(format),
        mapping=mapping_of(mapping),
        spec=spec,
        limit=limit,
    )


def spec_fields(spec: Path | None, platform: str | None) -> dict[str, Any]:
    """The fields of a spec file, and those of a platform for what it leaves out."""
    data = dict(read_mapping(spec) or {}) if spec else {}
    RunSpec.parse(data)
    return merge_platform(platform, data)


def left_out(report: Report) -> dict[str, Any]:
    skipped, adjusted = dict(report.skipped.most_common()), dict(report.adjusted.most_common())
    return {"skipped": skipped, "adjusted": adjusted, "notes": report.notes}
