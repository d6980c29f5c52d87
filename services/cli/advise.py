"""`hybrid advise`: which scheduler to use for these machines and these jobs."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, TimeElapsedColumn
from typer import Option

from deploy.local.arena import Ports
from deploy.local.stack import Plan, Stack
from services.cli.client import connect, gateway_of
from services.cli.options import EXPERIMENTS_DIR, DataDir, Json, Platform, Preset, Url
from services.cli.output import err, fail, out, print_json, progress
from services.cli.platforms.option import merge_platform
from services.cli.settings import settings_behind_gateway, settings_of
from services.lab.advice.answer import Answer, headline, make_answer, numbers, undecided_note
from services.lab.advice.jobs import GeneratedJobs, Jobs, TraceJobs
from services.lab.advice.measurement import Measured, Measurement, Progress, deployed_schedulers
from services.lab.advice.objective_option import parse_objective
from services.lab.advice.page import write_page
from services.lab.reports.report import plain
from services.lab.traces.mapping import load_mapping
from services.lab.traces.problem_report import Report
from shared.domain.schedulers import BUILT_IN
from shared.runtime import logs
from shared.runtime.gateway_client import GatewayClient
from shared.runtime.settings import Settings
from shared.store.client import Store


def advise(
    platform: Platform = None,
    trace: Annotated[Path | None, Option(help="The jobs: a trace of any known format.")] = None,
    preset: Preset = None,
    objective: Annotated[
        str, Option(help="What to minimise, as weights: turnaround=1,cost=0.2.")
    ] = "turnaround=1",
    budget: Annotated[float, Option(min=0.1, help="How many minutes it may take.")] = 10,
    load: Annotated[
        float | None, Option(min=0.01, max=10, help="Offered load; none: that of the jobs.")
    ] = None,
    tasks: Annotated[int, Option(min=20, help="Jobs of each run, without a trace.")] = 1000,
    noise: Annotated[
        float | None, Option(min=0, max=10, help="Relative deviation of real from expected times.")
    ] = None,
    schedulers: Annotated[
        str | None, Option(help="Only these, separated by commas; none: all that are deployed.")
    ] = None,
    mapping: Annotated[Path | None, Option(help="YAML that maps columns of the trace.")] = None,
    limit: Annotated[int | None, Option(min=1, help="Only the first jobs of the trace.")] = None,
    seed: Annotated[int, Option(min=0, help="The first seed.")] = 1,
    out_dir: Annotated[
        Path | None, Option("--out", help="Folder of the page.", show_default="experiments/...")
    ] = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Say which scheduler to use for these machines and jobs, by how much, and why.

    Starts runs, one per seed, until the answer is decided or the time budget is used up; Ctrl-C
    ends it with the answer so far. Writes one page as HTML, PDF and JSON.

    Examples: `hybrid advise --platform mine.yaml --trace jobs.csv`,
    `hybrid advise --preset hpc --load 0.8 --objective turnaround=1,cost=0.2 --budget 5`
    """
    logs.set_up(Settings(log_level="warning", log_format="console"))
    if trace is not None and preset is not None:
        fail("--trace and --preset both say which jobs: give one of them")
    fields: dict[str, Any] = {"objective": parse_objective(objective)}
    if preset is not None:
        fields["workload"] = {"preset": preset}
    if noise is not None:
        fields["physics"] = {"noise": noise}
    fields = merge_platform(platform, fields)
    report = Report()
    jobs: Jobs
    if trace is None:
        jobs = GeneratedJobs(fields, tasks, load)
    else:
        rules = load_mapping(mapping) if mapping else None
        jobs = TraceJobs(fields, trace, load, mapping=rules, report=report, limit=limit)
    names = _names(schedulers)
    folder = out_dir or EXPERIMENTS_DIR / f"advice-{datetime.now():%m%d-%H%M%S}"
    folder.mkdir(parents=True, exist_ok=True)

    def measure(
        gateway: GatewayClient, store: Store, show: Callable[[Progress], None],
        stopping: threading.Event,
    ) -> Measured:  # fmt: skip
        chosen = names or deployed_schedulers(gateway)
        args = jobs, chosen, budget * 60, gateway, store, show, stopping, seed
        return Measurement(*args).measure()

    if url is not None or data_dir is not None:
        store = Store(settings_behind_gateway(url, data_dir))
        measured = _with_progress(measure, connect(url, data_dir), store, _stopping(), json)
    else:
        measured = asyncio.run(_on_own_arena(folder / "arena", names or BUILT_IN, measure, json))
    notes = [f"{report.skipped.total():,} lines of the trace were skipped."] * bool(report.skipped)
    answer = make_answer(jobs, measured, platform or "the default node", notes)
    files = write_page(answer, folder, _command())
    _print(answer, files, json)


Measure = Callable[[GatewayClient, Store, Callable[[Progress], None], threading.Event], Measured]


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _stopping() -> threading.Event:
    stopping = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stopping.set())
    return stopping


async def _on_own_arena(
    folder: Path, names: tuple[str, ...], measure: Measure, quiet: bool
) -> Measured:
    stopping = threading.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stopping.set)
    stack = Stack(Plan(folder, Ports.free(), names))
    try:
        with err.status("starting an arena"):
            await stack.start()
        gateway, store = gateway_of(stack.arena), Store(settings_of(stack.arena))
        return await asyncio.to_thread(_with_progress, measure, gateway, store, stopping, quiet)
    finally:
        with err.status("stopping the arena"):
            await stack.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _with_progress(
    measure: Measure, gateway: GatewayClient, store: Store, stopping: threading.Event, quiet: bool
) -> Measured:
    columns = "{task.description}", BarColumn(), TimeElapsedColumn()
    with progress(*columns, quiet=quiet) as bars:
        bar = bars.add_task("advice", total=1.0)
        printed: set[str] = set()

        def show(status: Progress) -> None:
            bars.update(bar, completed=status.share, description=escape(status.text))
            run = status.text.partition(":")[0]
            if run not in printed and not err.is_terminal and not quiet:
                printed.add(run)
                err.print(escape(run))

        return measure(gateway, store, show, stopping)


def _command() -> str:
    return shlex.join(["hybrid", *sys.argv[1:]])


def _print(answer: Answer, files: list[Path], json: bool) -> None:
    if json:
        print_json(plain(numbers(answer)) | {"files": [str(file) for file in files]})
        return
    out.print(f"[bold]{escape(headline(answer))}[/]", soft_wrap=True)
    if answer.verdict is None or not answer.verdict.decided:
        out.print(escape(undecided_note(answer)), soft_wrap=True)
    for file in files:
        if file.suffix in (".html", ".pdf"):
            out.print(escape(str(file)), soft_wrap=True)
    if answer.verdict is None:
        raise typer.Exit(1)
