"""`hybrid trace ...`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import yaml

from services.cli.options import Json
from services.cli.output import err, explained, out, plain, print_json
from services.cli.replay import replay
from services.cli.traceoptions import (
    INTERRUPTED,
    Errors,
    File,
    Format,
    MappingFile,
    Show,
    Strict,
    known_format,
    left_out,
    mapping_of,
    reporting,
)
from services.cli.traceview import progress, show_report, show_summary
from services.lab.traces.convert import check_target
from services.lab.traces.convert import convert as write
from services.lab.traces.mapping import Mapping
from services.lab.traces.report import SHOWN
from services.lab.traces.summary import Summary
from services.lab.traces.trace import Trace
from shared.tasks import Tasks

app = typer.Typer(
    no_args_is_help=True, help="Look into recorded workloads, convert them, replay them in a run."
)


@app.command()
def inspect(
    file: File,
    format: Format = None,
    mapping: MappingFile = None,
    errors: Errors = None,
    show: Show = SHOWN,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Show what a trace has in it, which column became what, and what was skipped.

    Examples: `hybrid trace inspect jobs.swf`, `hybrid trace inspect pods.csv.gz --json`
    """
    with explained(), reporting(file, errors, show, strict) as report:
        trace = Trace(file, report, format=known_format(format), mapping=mapping_of(mapping))
        summary = Summary(trace)
        with progress(json) as bar:
            for tasks in trace.batches():
                summary.add(tasks)
                bar.update(trace.progress, trace.translator.next_task)
    found = summary.described()
    if json:
        print_json(found)
        return
    show_summary(found)
    show_report(report)


@app.command()
def convert(
    file: File,
    target: Annotated[Path, typer.Option("--out", help="A .csv or .parquet file.")],
    format: Format = None,
    mapping: MappingFile = None,
    errors: Errors = None,
    show: Show = SHOWN,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Write a trace as our own CSV or Parquet.

    Examples: `hybrid trace convert jobs.swf.gz --out jobs.parquet`
    """
    with explained(), reporting(file, errors, show, strict) as report:
        check_target(file, target)
        trace = Trace(file, report, format=known_format(format), mapping=mapping_of(mapping))
        with progress(json) as bar:

            def watch(tasks: Tasks) -> None:
                bar.update(trace.progress, int(tasks.task_id[-1]) + 1)

            try:
                count = write(trace, target, watch)
            except KeyboardInterrupt:
                err.print(f"interrupted: {plain(str(target))} was not written", soft_wrap=True)
                raise typer.Exit(INTERRUPTED) from None
    if json:
        print_json({"file": str(target), "tasks": count, **left_out(report)})
        return
    show_report(report)
    err.print(f"{count:,} tasks")
    out.print(plain(str(target)), soft_wrap=True)


app.command()(replay)


@app.command("mapping")
def show_mapping() -> None:
    """Print the usual mapping as YAML, to be changed and given to `--mapping`."""
    text = yaml.safe_dump(Mapping().model_dump(mode="json", exclude_none=True), sort_keys=False)
    print(text, end="")
