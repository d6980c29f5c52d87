"""`hybrid trace ...`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.markup import escape
from typer import Option

from services.cli.interrupts import INTERRUPTED
from services.cli.options import Json, Platform
from services.cli.output import err, out, print_json
from services.cli.traces import options
from services.cli.traces.output import show_report, show_summary, trace_progress
from services.cli.traces.replay import replay
from services.lab.traces.convert import check_target
from services.lab.traces.convert import convert as write
from services.lab.traces.mapping import Mapping
from services.lab.traces.summary import Summary
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks

app = typer.Typer(no_args_is_help=True)


@app.command()
def inspect(
    file: options.File,
    format: options.Format = None,
    mapping: options.MappingFile = None,
    spec: options.SpecFile = None,
    platform: Platform = None,
    errors: options.Errors = None,
    show: options.Show = options.SHOWN,
    strict: options.Strict = False,
    json: Json = False,
) -> None:
    """Summarise a trace: its tasks, which column maps to which field, the load that they offer to
    the platform, what cannot be concluded from them, and what was skipped.

    Examples: `hybrid trace inspect jobs.swf`,
    `hybrid trace inspect pods.csv.gz --platform workstation --json`
    """
    with options.reporting(file, errors, show, strict) as report:
        chosen = RunSpec.parse(options.spec_fields(spec, platform))
        trace = options.open_trace(file, report, format, mapping, chosen)
        summary = Summary(trace)
        with trace_progress(json) as update:
            for tasks in trace.batches():
                summary.add(tasks)
                update(trace.progress, trace.tasks_read)
    described = summary.described()
    if json:
        print_json(described)
        return
    show_summary(described)
    show_report(report)


@app.command()
def convert(
    file: options.File,
    target: Annotated[Path, Option("--out", help="A .csv or .parquet file.")],
    format: options.Format = None,
    mapping: options.MappingFile = None,
    spec: options.SpecFile = None,
    platform: Platform = None,
    errors: options.Errors = None,
    show: options.Show = options.SHOWN,
    strict: options.Strict = False,
    json: Json = False,
) -> None:
    """Convert a trace to the arena's own CSV or Parquet.

    Sizes are such that tasks take as long as recorded on the devices of `--spec` or `--platform`;
    without either, on those of the default cluster.

    Example: `hybrid trace convert jobs.swf.gz --out jobs.parquet`
    """
    with options.reporting(file, errors, show, strict) as report:
        check_target(file, target)
        has_devices = spec is not None or platform is not None
        chosen = RunSpec.parse(options.spec_fields(spec, platform)) if has_devices else None
        trace = options.open_trace(file, report, format, mapping, chosen)
        with trace_progress(json) as update:

            def watch(tasks: Tasks) -> None:
                update(trace.progress, int(tasks.task_id[-1]) + 1)

            try:
                count = write(trace, target, watch)
            except KeyboardInterrupt:
                err.print(f"interrupted: {escape(str(target))} was not written", soft_wrap=True)
                raise typer.Exit(INTERRUPTED) from None
    if json:
        print_json({"file": str(target), "tasks": count, **options.left_out(report)})
        return
    show_report(report)
    err.print(f"{count:,} tasks")
    out.print(escape(str(target)), soft_wrap=True)


app.command()(replay)


@app.command("mapping")
def show_mapping() -> None:
    """Print the default mapping as YAML, to edit and pass to `--mapping`.

    Example: `hybrid trace mapping > mapping.yaml`
    """
    text = yaml.safe_dump(Mapping().model_dump(mode="json", exclude_none=True), sort_keys=False)
    print(text, end="")
