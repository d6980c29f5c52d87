"""`hybrid trace replay`"""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape
from typer import Option

from services.cli import shell_completion
from services.cli.client import connect
from services.cli.options import DataDir, Json, Platform, Url, Wait
from services.cli.output import coloured, err, fail, out, print_json, race_table
from services.cli.runs.completion import wait_for
from services.cli.traces import options
from services.cli.traces.output import Update, show_report, trace_progress
from services.lab.traces import replay as replaying
from services.lab.traces.problem_report import Report
from services.lab.traces.summary import load_warnings
from services.lab.traces.trace import Trace, detect
from shared.domain.spec import RunSpec


def replay(
    file: options.File,
    schedulers: Annotated[
        str | None,
        Option(
            help="Schedulers, separated by commas; none: all that are deployed.",
            autocompletion=shell_completion.schedulers,
        ),
    ] = None,
    seed: Annotated[int | None, Option(help="Seed of the schedulers' random numbers.")] = None,
    pace: Annotated[str, Option(help="Tasks per second of wall time, or max.")] = "max",
    spec: options.SpecFile = None,
    platform: Platform = None,
    load: Annotated[
        float | None, Option(min=1e-6, help="Stretch the arrivals to this offered load, e.g. 0.8.")
    ] = None,
    pretrain: Annotated[
        float | None,
        Option(
            min=0.001, max=1, help="Pre-train learners on tasks like this first part, e.g. 0.2."
        ),
    ] = None,
    limit: Annotated[int | None, Option(min=1, help="Only the first tasks.")] = None,
    wait: Wait = False,
    resume: Annotated[
        str | None,
        Option(
            metavar="RUN",
            help="Continue this run's replay.",
            autocompletion=shell_completion.runs,
        ),
    ] = None,
    format: options.Format = None,
    mapping: options.MappingFile = None,
    errors: options.Errors = None,
    show: options.Show = options.SHOWN,
    strict: options.Strict = False,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Stream a trace into a new run of a running arena, each task exactly once.

    After Ctrl-C, `--resume RUN` with the same file continues where it stopped.

    Examples: `hybrid trace replay jobs.swf --schedulers greedy,oracle --wait`,
    `hybrid trace replay jobs.swf --resume 1116-081502-6a1f`
    """
    arguments = {"format": format, "mapping": mapping, "limit": limit, "load": load, "url": url,
             "data-dir": data_dir}  # fmt: skip
    with options.reporting(file, errors, show, strict) as report:
        rules, trace_format = (
            options.mapping_of(mapping),
            options.known_format(format) or detect(file),
        )
        fingerprint = replaying.fingerprint(file, trace_format, rules, limit, load)
        data: dict[str, Any] = {}
        if resume is None:
            fields = _spec(options.spec_fields(spec, platform), pace, seed, schedulers)
            data = replaying.run_spec(fields, file, fingerprint)
        gateway = connect(url, data_dir)
        start = 0
        if resume is not None:
            if spec or platform or pretrain or schedulers or seed is not None:
                fail(
                    "--resume uses the run's own spec: leave out --spec, --platform, --pretrain, "
                    "--schedulers and --seed"
                )
            record = gateway.get(f"/api/runs/{resume}")
            start = replaying.check_resumed(record, fingerprint)
            data = record["spec"]

        def opened(report: Report, limit: int | None) -> Trace:
            run_spec = RunSpec.parse(data)
            return Trace(
                file, report, format=trace_format, mapping=rules, spec=run_spec, limit=limit
            )

        trace = opened(report, limit)
        factor = replaying.stretch(trace, load)
        batches = replaying.first_and_rest(replaying.rescaled(trace.batches(), factor))
        if load is None:
            for warning in load_warnings(trace):
                err.print(f"[yellow]warning[/]: {escape(warning)}", soft_wrap=True)
        if resume is None:
            first = None
            if pretrain is not None:
                tasks = max(round(pretrain * trace.survey().tasks), 1)
                part = opened(Report(), tasks).batches()
                first = replaying.first_part(replaying.rescaled(part, factor))
            data = replaying.complete_spec(data, trace, first)
        run = resume or str(gateway.post("/api/runs", data)["run"])
        started = time.monotonic()
        with trace_progress(json) as update:
            watch = _progress_reporter(trace, update, limit)
            sender = replaying.Replay(gateway, run, pace=_rate(pace), watch=watch)
            try:
                sender.send(batches, start)
            except BaseException:
                _print_resume_command(run, sender.next_task, file, arguments)
                raise
        seconds = time.monotonic() - started
        record = (
            wait_for(gateway, run, sender.next_task, quiet=json)
            if wait
            else gateway.get(f"/api/runs/{run}")
        )
    sent = sender.next_task - start
    if json:
        figures = {"tasks": sender.next_task, "sent": sent, "seconds": seconds}
        print_json({**record, **figures, **options.left_out(report)})
        return
    show_report(report)
    err.print(
        f"run [bold]{run}[/] is {coloured(record['state'])}: {sent:,} tasks sent "
        f"in {seconds:.1f} s" + (f", {start:,} had been sent before" if start else "")
    )
    out.print(race_table(record["schedulers"], f"run {run}", record["bound"]) if wait else run)


def _rate(pace: str) -> float | None:
    rate = RunSpec.parse({"pace": pace}).pace
    return None if rate == "max" else float(rate)


def _progress_reporter(trace: Trace, update: Update, limit: int | None) -> replaying.Watcher:
    """Updates the bar; without a terminal, prints each reason for waiting once."""
    printed: set[str] = set()

    def watch(progress: replaying.Progress) -> None:
        share = trace.progress if limit is None else progress.next_task / limit
        update(share, progress.next_task, progress.waiting)
        if progress.waiting and progress.waiting not in printed and not err.is_terminal:
            printed.add(progress.waiting)
            err.print(f"waiting: {escape(progress.waiting)}", soft_wrap=True)

    return watch


def _spec(
    fields: dict[str, Any], pace: str, seed: int | None, schedulers: str | None
) -> dict[str, Any]:
    data = {**fields, "pace": pace}
    if seed is not None:
        data["seed"] = seed
    if schedulers:
        data["schedulers"] = [name.strip() for name in schedulers.split(",") if name.strip()]
    return RunSpec.parse(data).model_dump(mode="json", exclude_unset=True)


def _print_resume_command(run: str, next_task: int, file: Path, arguments: dict[str, Any]) -> None:
    """With the same options, since they decide which tasks the file gives."""
    words = ["hybrid", "trace", "replay", str(file), "--resume", run]
    for name, value in arguments.items():
        words += [] if value is None else [f"--{name}", str(value)]
    err.print(
        f"run [bold]{run}[/] has {next_task:,} tasks and waits for more; continue with\n  "
        f"{escape(shlex.join(words))}\nor end it with `hybrid run stop {run}`",
        soft_wrap=True,
    )
