"""`hybrid trace ...`"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from services.cli.client import connect
from services.cli.options import DataDir, Json, Url
from services.cli.output import coloured, err, explained, fail, out, plain, print_json, race_table
from services.cli.runs import spec_from, wait_for
from services.cli.traceview import progress, show_report, show_summary
from services.lab.traces import replay as replaying
from services.lab.traces.convert import check_target
from services.lab.traces.convert import convert as write
from services.lab.traces.mapping import Mapping, load_mapping
from services.lab.traces.report import SHOWN, Report, TraceError
from services.lab.traces.summary import Summary
from services.lab.traces.trace import FORMATS, Trace, detect
from shared.spec import Physics, RunSpec
from shared.tasks import Tasks

INTERRUPTED = 130  # what a shell says of a command that Ctrl-C ended

app = typer.Typer(
    no_args_is_help=True, help="Look into recorded workloads, convert them, replay them in a run."
)

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
    with explained(), _reporting(file, errors, show, strict) as report:
        trace = Trace(file, report, format=_known(format), mapping=_mapping(mapping))
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
    with explained(), _reporting(file, errors, show, strict) as report:
        check_target(file, target)
        trace = Trace(file, report, format=_known(format), mapping=_mapping(mapping))
        with progress(json) as bar:

            def watch(tasks: Tasks) -> None:
                bar.update(trace.progress, int(tasks.task_id[-1]) + 1)

            try:
                count = write(trace, target, watch)
            except KeyboardInterrupt:
                err.print(f"interrupted: {plain(str(target))} was not written", soft_wrap=True)
                raise typer.Exit(INTERRUPTED) from None
    if json:
        print_json({"file": str(target), "tasks": count, **_left_out(report)})
        return
    show_report(report)
    err.print(f"{count:,} tasks")
    out.print(plain(str(target)), soft_wrap=True)


@app.command()
def replay(
    file: File,
    schedulers: Annotated[
        str | None, typer.Option(help="Who competes, by commas; none: all that are deployed.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of what schedulers draw.")] = None,
    pace: Annotated[str, typer.Option(help="Tasks per second of wall time, or max.")] = "max",
    spec: Annotated[
        Path | None, typer.Option(help="A RunSpec: cluster, physics, learning.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first tasks.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run is complete.")] = False,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RUN", help="Go on with a run's replay.")
    ] = None,
    format: Format = None,
    mapping: MappingFile = None,
    errors: Errors = None,
    show: Show = SHOWN,
    strict: Strict = False,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Stream a trace into a new run of a running arena; each task gets in once.

    Ctrl-C loses nothing: `--resume RUN` with the same file goes on where the run stands.

    Examples: `hybrid trace replay jobs.swf --schedulers greedy,oracle --wait`,
    `hybrid trace replay jobs.swf --resume 1116-081502-6a1f`
    """
    with explained(), _reporting(file, errors, show, strict) as report:
        rules, chosen = _mapping(mapping), _known(format) or detect(file)
        mark = replaying.fingerprint(file, chosen, rules, limit)
        gateway = connect(url, data_dir)
        if resume is None:
            given = _spec(spec, pace, seed, schedulers)
            data = replaying.run_spec(given, file, mark)
            physics, start = RunSpec.parse(data).physics, 0
        else:
            if spec or schedulers or seed is not None:
                fail("--resume goes on with the run's own spec: leave the others out")
            record = gateway.get(f"/api/runs/{resume}")
            start = replaying.check_resumed(record, mark)
            physics = Physics.model_validate(record["spec"]["physics"])
        trace = Trace(file, report, format=chosen, mapping=rules, physics=physics)
        batches = replaying.first_and_rest(trace, limit)
        run = resume or gateway.post("/api/runs", data)["run"]
        began, rate = time.monotonic(), RunSpec.parse({"pace": pace}).pace
        with progress(json) as bar:
            told: set[str] = set()

            def watch(at: replaying.Progress) -> None:
                share = trace.progress if limit is None else at.next_task / limit
                bar.update(share, at.next_task, at.waiting)
                if at.waiting and at.waiting not in told and not err.is_terminal:
                    told.add(at.waiting)
                    err.print(f"waiting: {plain(at.waiting)}", soft_wrap=True)

            sender = replaying.Replay(
                gateway, run, pace=None if rate == "max" else float(rate), watch=watch
            )
            try:
                sender.send(batches, start)
            except BaseException:
                _tell_how_to_resume(file, run, sender.next_task)
                raise
        seconds = time.monotonic() - began
        if wait:
            wait_for(gateway, run, sender.next_task, quiet=json)
        found = gateway.get(f"/api/runs/{run}")
    sent = {"tasks": sender.next_task, "sent": sender.next_task - start, "seconds": seconds}
    if json:
        print_json({**found, **sent, **_left_out(report)})
        return
    show_report(report)
    err.print(
        f"run [bold]{run}[/] is {coloured(found['state'])}: {sent['sent']:,} tasks sent "
        f"in {seconds:.1f} s" + (f", {start:,} were there" if start else "")
    )
    out.print(race_table(found["schedulers"], f"run {run}") if wait else run)


@app.command("mapping")
def show_mapping() -> None:
    """Print the usual mapping as YAML, to be changed and given to `--mapping`."""
    text = yaml.safe_dump(Mapping().model_dump(mode="json", exclude_none=True), sort_keys=False)
    print(text, end="")


@contextmanager
def _reporting(file: Path, errors: Path | None, show: int, strict: bool) -> Iterator[Report]:
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


def _spec(spec: Path | None, pace: str, seed: int | None, schedulers: str | None) -> dict[str, Any]:
    data = spec_from(spec, None, pace, seed, None)
    if schedulers:
        names = [name.strip() for name in schedulers.split(",") if name.strip()]
        data = RunSpec.parse({**data, "schedulers": names}).model_dump(
            mode="json", exclude_unset=True
        )
    return data


def _known(format: str | None) -> str | None:
    if format is not None and format not in FORMATS:
        raise TraceError(f"no format {format!r}; there are {', '.join(FORMATS)}")
    return format


def _mapping(path: Path | None) -> Mapping:
    return Mapping() if path is None else load_mapping(path)


def _left_out(report: Report) -> dict[str, Any]:
    skipped, mended = dict(report.skipped.most_common()), dict(report.adjusted.most_common())
    return {"skipped": skipped, "mended": mended, "notes": report.notes}


def _tell_how_to_resume(file: Path, run: str, next_task: int) -> None:
    err.print(
        f"run [bold]{run}[/] has {next_task:,} tasks and waits for more; go on with the same "
        f"options and --resume:\n  hybrid trace replay {plain(str(file))} --resume {run}",
        soft_wrap=True,
    )
