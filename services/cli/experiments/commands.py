"""`hybrid experiment ...`: run, resume and compare experiments, and report on them."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer import Argument, Option

from services.cli import shell_completion
from services.cli.client import connect
from services.cli.experiments.execution import remove_arena, run_on_arena, run_on_own_arena
from services.cli.interrupts import INTERRUPTED
from services.cli.options import EXPERIMENTS_DIR, Cluster, DataDir, Json, Platform, Url
from services.cli.output import err, fail, out, print_json
from services.cli.platforms.option import merge_machine
from services.cli.settings import settings_behind_gateway
from services.cli.tables import prose, table
from services.lab.experiments import declaration as experiments
from services.lab.experiments import provenance
from services.lab.experiments.declaration import Experiment, ExperimentError
from services.lab.experiments.journal import Folder, Journal
from services.lab.experiments.runner import Interrupted, finish
from shared.runtime import logs
from shared.runtime.settings import Settings
from shared.store.client import Store

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_experiments(json: Json = False) -> None:
    """List the built-in experiments.

    Example: `hybrid experiment list`
    """
    built_in = experiments.built_in().values()
    if json:
        print_json([experiment.model_dump(mode="json") for experiment in built_in])
        return
    rows = (
        (e.name, f"{len(e.variants)} × {len(e.seeds)} seeds", f"{e.tasks:,}", e.question)
        for e in built_in
    )
    out.print(table(("name", "runs", "tasks each", prose("question")), rows))
    err.print("[dim]run one with `hybrid experiment run NAME`, or your own file.yaml[/]")


@app.command()
def run(
    name: Annotated[
        str | None,
        Argument(
            help="A built-in experiment, or your file.yaml.",
            autocompletion=shell_completion.experiments,
        ),
    ] = None,
    tasks: Annotated[int | None, Option(min=1, help="Tasks of every run.")] = None,
    seeds: Annotated[str | None, Option(help="Number (5: seeds 1 to 5), or which (7,8,9).")] = None,
    pace: Annotated[str | None, Option(help="Tasks per second of wall time, or max.")] = None,
    cluster: Cluster = None,
    platform: Platform = None,
    out_dir: Annotated[
        Path | None,
        Option("--out", help="Folder for data and report.", show_default="experiments/..."),
    ] = None,
    resume: Annotated[Path | None, Option(help="Folder of the experiment to continue.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Run an experiment and write its report.

    Starts an arena for it, unless --url or --data-dir names a running one. With --url the results
    are read from that arena's ClickHouse: set HYBRID_CLICKHOUSE_URL, _USER, _PASSWORD and
    _DATABASE. Ctrl-C keeps the completed runs, and --resume continues.

    Examples: `hybrid experiment run shift`, `hybrid experiment run heavy --seeds 3`,
    `hybrid experiment run heavy --tasks 1000000 --seeds 1 --pace max`,
    `hybrid experiment run queues --platform dgx`,
    `hybrid experiment run mine.yaml --url http://127.0.0.1:8000`,
    `hybrid experiment run --resume experiments/shift-1116-081502`
    """
    logs.set_up(Settings(log_level="warning", log_format="console"))
    if (name is None) == (resume is None):
        fail("give the name of an experiment, or --resume and its folder")
    args = {"tasks": tasks, "seeds": seeds, "pace": pace, "cluster": cluster, "platform": platform}
    options = {key: value for key, value in args.items() if value is not None}
    remote = url is not None or data_dir is not None
    if resume is not None:
        if options or out_dir is not None:
            fail("--resume takes no settings: the experiment keeps those it started with")
        folder = Folder.open(resume)
        if folder.complete:
            err.print("every run is complete; writing the report again")
            if not (folder.path / "provenance.json").exists():  # killed after the last run
                finish(folder)
            remove_arena(folder)
            _write_report(folder.path, json)
            return
        arena = connect(url, data_dir).url if remote else "embedded"
        if arena != folder.journal.arena:
            fail(f"{resume} was started on the arena {folder.journal.arena}; use the same one")
    else:
        assert name is not None
        experiment = _with_options(experiments.load(name), options)
        path = out_dir or EXPERIMENTS_DIR / f"{experiment.name}-{datetime.now():%m%d-%H%M%S}"
        arena = connect(url, data_dir).url if remote else "embedded"
        journal = Journal(command=_command(name, options), arena=arena, started_at=provenance.now())
        folder = Folder.create(path, experiment, journal)
    try:
        if remote:
            store = Store(settings_behind_gateway(url, data_dir))
            run_on_arena(folder, connect(url, data_dir), store, quiet=json)
        else:
            asyncio.run(run_on_own_arena(folder, quiet=json))
    except Interrupted:
        command = f"hybrid experiment run --resume {shlex.quote(str(folder.path))}"
        if remote:
            command += f" --url {url}" if url else f" --data-dir {data_dir}"
        note = f"interrupted; completed runs are kept. Continue with: [bold]{escape(command)}[/]"
        err.print(note, soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None
    finish(folder)
    _write_report(folder.path, json)


@app.command()
def report(
    folder: Annotated[Path, Argument(help="The folder of a finished experiment.")],
    json: Json = False,
) -> None:
    """Write the report of a finished experiment again.

    Example: `hybrid experiment report experiments/shift-1116-081502`
    """
    Folder.open(folder)
    if not (folder / "provenance.json").exists():
        fail(f"{folder} is not finished: hybrid experiment run --resume {folder}")
    _write_report(folder, json)


@app.command()
def compare(
    folders: Annotated[list[Path], Argument(help="Folders of finished experiments.")],
    out_dir: Annotated[Path, Option("--out", help="Folder of the report.")] = Path("comparison"),
    json: Json = False,
) -> None:
    """Compare two or more results of an experiment: another version, machine or setting.

    Example: `hybrid experiment compare experiments/heavy-1 experiments/heavy-2 --out before-after`
    """
    from services.lab.reports import comparison as reports

    if len(folders) < 2:
        fail("give two folders or more")
    for folder in folders:
        if not (folder / "provenance.json").exists():
            fail(f"no finished experiment in {folder}")
    with err.status("comparing"):
        written = reports.write_comparison(folders, out_dir)
    _print_files(out_dir, written, json)


def _with_options(declared: Experiment, options: dict[str, Any]) -> Experiment:
    data = declared.model_dump(mode="json")
    machine = options.get("cluster"), options.get("platform")
    data["spec"] = merge_machine(*machine, data["spec"])
    if "tasks" in options:
        data["tasks"] = options["tasks"]
    if "seeds" in options:
        data["seeds"] = _seeds(options["seeds"])
    if "pace" in options:
        data["spec"]["pace"] = options["pace"]
    return experiments.parse(data, declared.name)


def _seeds(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.removesuffix(",").split(",")]
    except ValueError:
        problem = "expected a number of seeds, or a list such as 7,8,9"
        raise ExperimentError(f"--seeds {text}: {problem}") from None
    if "," in text:
        return numbers
    if not 1 <= numbers[0] <= 1000:
        problem = f"at most 1000 seeds; for the single seed {text} write {text},"
        raise ExperimentError(f"--seeds {text}: {problem}")
    return list(range(1, numbers[0] + 1))


def _command(name: str, options: dict[str, Any]) -> str:
    """The command that reproduces it: with the options that change a result only."""
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    return shlex.join(["hybrid", "experiment", "run", name, *words])


def _write_report(folder: Path, json: bool) -> None:
    from services.lab.reports import report as reports

    started = time.monotonic()
    with err.status("writing the report"):
        written = reports.write(folder)
    if not json:
        err.print(f"[dim]report written in {time.monotonic() - started:.1f} s[/]")
    _print_files(folder, written, json)


def _print_files(folder: Path, files: Iterable[Path], json: bool) -> None:
    if json:
        print_json({"folder": str(folder), "files": [str(file) for file in files]})
        return
    for file in files:
        if file.suffix in (".html", ".pdf"):
            out.print(escape(str(file)), soft_wrap=True)
    err.print(f"figures and data are in [bold]{escape(str(folder))}[/]", soft_wrap=True)
