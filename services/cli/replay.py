"""`hybrid trace replay`"""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from services.cli.client import connect
from services.cli.options import DataDir, Json, Url
from services.cli.output import coloured, err, explained, fail, out, plain, print_json, race_table
from services.cli.runs import spec_from, wait_for
from services.cli.traceoptions import (
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
from services.cli.traceview import Bar, progress, show_report
from services.lab.traces import replay as replaying
from services.lab.traces.report import SHOWN
from services.lab.traces.trace import Trace, detect
from shared.spec import Physics, RunSpec


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
    again = {"format": format, "mapping": mapping, "limit": limit, "url": url, "data-dir": data_dir}
    with explained(), reporting(file, errors, show, strict) as report:
        rules, chosen = mapping_of(mapping), known_format(format) or detect(file)
        mark = replaying.fingerprint(file, chosen, rules, limit)
        gateway = connect(url, data_dir)
        data: dict[str, Any] = {}
        if resume is None:
            data = replaying.run_spec(_spec(spec, pace, seed, schedulers), file, mark)
            physics, start = RunSpec.parse(data).physics, 0
        else:
            if spec or schedulers or seed is not None:
                fail("--resume goes on with the run's own spec: leave the others out")
            record = gateway.get(f"/api/runs/{resume}")
            start = replaying.check_resumed(record, mark)
            physics = Physics.model_validate(record["spec"]["physics"])
        trace = Trace(file, report, format=chosen, mapping=rules, physics=physics)
        batches = replaying.first_and_rest(trace, limit)
        run = resume or str(gateway.post("/api/runs", data)["run"])
        began = time.monotonic()
        with progress(json) as bar:
            watch = _watcher(trace, bar, limit)
            sender = replaying.Replay(gateway, run, pace=_rate(pace), watch=watch)
            try:
                sender.send(batches, start)
            except BaseException:
                _tell_how_to_resume(run, sender.next_task, file, again)
                raise
        seconds = time.monotonic() - began
        if wait:
            found = wait_for(gateway, run, sender.next_task, quiet=json)
        else:
            found = gateway.get(f"/api/runs/{run}")
    sent = sender.next_task - start
    if json:
        figures = {"tasks": sender.next_task, "sent": sent, "seconds": seconds}
        print_json({**found, **figures, **left_out(report)})
        return
    show_report(report)
    err.print(
        f"run [bold]{run}[/] is {coloured(found['state'])}: {sent:,} tasks sent "
        f"in {seconds:.1f} s" + (f", {start:,} were there" if start else "")
    )
    out.print(race_table(found["schedulers"], f"run {run}", found["bound"]) if wait else run)


def _rate(pace: str) -> float | None:
    rate = RunSpec.parse({"pace": pace}).pace
    return None if rate == "max" else float(rate)


def _watcher(trace: Trace, bar: Bar, limit: int | None) -> replaying.Watcher:
    """Moves the bar; without one, says once what is waited for."""
    told: set[str] = set()

    def watch(at: replaying.Progress) -> None:
        share = trace.progress if limit is None else at.next_task / limit
        bar.update(share, at.next_task, at.waiting)
        if at.waiting and at.waiting not in told and not err.is_terminal:
            told.add(at.waiting)
            err.print(f"waiting: {plain(at.waiting)}", soft_wrap=True)

    return watch


def _spec(spec: Path | None, pace: str, seed: int | None, schedulers: str | None) -> dict[str, Any]:
    data = spec_from(spec, None, pace, seed, None)
    if schedulers:
        names = [name.strip() for name in schedulers.split(",") if name.strip()]
        data = RunSpec.parse({**data, "schedulers": names}).model_dump(
            mode="json", exclude_unset=True
        )
    return data


def _tell_how_to_resume(run: str, next_task: int, file: Path, options: dict[str, Any]) -> None:
    """The very command; what decides which tasks the file gives must be the same again."""
    words = ["hybrid", "trace", "replay", str(file), "--resume", run]
    for name, value in options.items():
        words += [] if value is None else [f"--{name}", str(value)]
    err.print(
        f"run [bold]{run}[/] has {next_task:,} tasks and waits for more; go on with\n  "
        f"{plain(shlex.join(words))}\nor end it with `hybrid run stop {run}`",
        soft_wrap=True,
    )
