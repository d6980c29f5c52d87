"""Options that the commands of `hybrid trace` share, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from services.cli.output import err, plain
from services.lab.traces.mapping import Mapping, load_mapping
from services.lab.traces.report import Report, TraceError
from services.lab.traces.trace import FORMATS

INTERRUPTED = 130  # what a shell says of a command that Ctrl-C ended

File = Annotated[Path, typer.Argument(help="The trace; may be gzipped.", show_default=False)]
Format = Annotated[
    str | None,
    typer.Option("--format", help=f"{', '.join(FORMATS)}; none: told by the content."),
]
MappingFile = Annotated[
    Path | None,
    typer.Option("--mapping", help="YAML that changes which column becomes what; see docs."),
]
Errors = Annotated[
    Path | None, typer.Option("--errors", help="Write everything that is wrong into this file.")
]
Show = Annotated[int, typer.Option("--show", min=0, help="How many problems to show at once.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail at the first thing that is wrong.")]


@contextmanager
def reporting(file: Path, errors: Path | None, show: int, strict: bool) -> Iterator[Report]:
    """A report that shows the first problems on stderr and writes all into a file."""

    def tell(text: str) -> None:
        err.print(plain(text), style="yellow", soft_wrap=True)

    if errors is None:
        yield Report(strict=strict, show=tell, shown=show)
        return
    if errors.exists() and file.exists() and errors.samefile(file):
        raise TraceError(f"{errors}: is the trace itself")
    try:
        sink = errors.open("w", encoding="utf-8")
    except OSError as error:
        raise TraceError(f"{errors}: cannot be written: {error.strerror}") from None
    with sink:
        yield Report(strict=strict, show=tell, shown=show, sink=sink)


def known_format(format: str | None) -> str | None:
    if format is not None and format not in FORMATS:
        raise TraceError(f"no format {format!r}; there are {', '.join(FORMATS)}")
    return format


def mapping_of(path: Path | None) -> Mapping:
    return Mapping() if path is None else load_mapping(path)


def left_out(report: Report) -> dict[str, Any]:
    skipped, mended = dict(report.skipped.most_common()), dict(report.adjusted.most_common())
    return {"skipped": skipped, "mended": mended, "notes": report.notes}
