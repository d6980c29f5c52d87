"""`hybrid experiment ...`: run, resume and compare experiments, and report on them."""

from __future__ import annotations

import asyncio
import shlex
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from services.cli.client import connect, settings_beside
from services.cli.conduct import clear, embedded, on_arena
from services.cli.options import DataDir, Json, Url
from services.cli.output import err, explained, fail, out, plain, print_json
from services.cli.profile import ClusterOption, over_profile
from services.lab import experiment as experiments
from services.lab import provenance
from services.lab.experiment import Experiment, ExperimentError
from services.lab.journal import Folder, Journal
from services.lab.runner import Interrupted, finish
from shared import logs
from shared.settings import Settings
from shared.store.client import Store

app = typer.Typer(
    no_args_is_help=True,
    help="Experiments: many runs, several seeds, one report with figures and intervals.",
)

RESULTS_DIR = Path("experiments")


@app.command("list")
def list_experiments(json: Json = False) -> None:
    """List the experiments that come with the arena."""
    with explained():
        known = experiments.built_in().values()
    if json:
        print_json([each.model_dump(mode="json") for each in known])
        return
    table = Table("name", "runs", "tasks each", "what it finds out")
    for each in known:
        runs = f"{len(each.variants)} × {len(each.seeds)} seeds"
        table.add_row(each.name, runs, f"{each.tasks:,}", each.question)
    out.print(table)
    err.print("[dim]run one with `hybrid experiment run NAME`, or your own file.yaml[/]")


@app.command()
def run(
    name: Annotated[
        str | None, typer.Argument(help="A built-in experiment, or a file.yaml of your own.")
    ] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="Tasks of every run.")] = None,
    seeds: Annotated[
        str | None, typer.Option(help="How many (5: seeds 1 to 5), or which ones (7,8,9).")
    ] = None,
    pace: Annotated[str | None, typer.Option(help="Tasks per second of wall time, or max.")] = None,
    cluster: ClusterOption = None,
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for data and report.", show_default="experiments/..."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with an interrupted experiment's folder.")
    ] = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Run an experiment and write its report.

    Brings up an arena of its own, unless --url or --data-dir names a running one. With --url the
    results are read from that arena's ClickHouse, which HYBRID_CLICKHOUSE_URL, _USER, _PASSWORD
    and _DATABASE name. Ctrl-C loses nothing: what was done is kept, and --resume goes on.

    Examples: `hybrid experiment run shift`, `hybrid experiment run heavy --seeds 3`,
    `hybrid experiment run heavy --tasks 1000000 --seeds 1 --pace max`,
    `hybrid experiment run mine.yaml --url http://127.0.0.1:8000`,
    `hybrid experiment run --resume experiments/shift-1116-081502`
    """
    logs.set_up(Settings(log_level="warning", log_format="console"))
    with explained():
        if (name is None) == (resume is None):
            fail("give the name of an experiment, or --resume and its folder")
        remote = url is not None or data_dir is not None
        if resume is not None:
            if any(given is not None for given in (tasks, seeds, pace, cluster, out_dir)):
                fail("--resume goes on with the settings that the experiment was started with")
            folder = Folder.open(resume)
            if folder.complete:
                _report_again(folder, json)
                return
            here = connect(url, data_dir).url if remote else "embedded"
            if here != folder.journal.arena:
                fail(f"{resume} was started on this arena: {folder.journal.arena}; say the same")
        else:
            assert name is not None
            wanted = _overridden(experiments.load(name), tasks, seeds, pace, cluster)
            where = out_dir or RESULTS_DIR / f"{wanted.name}-{datetime.now():%m%d-%H%M%S}"
            command = _command(name, tasks, seeds, pace, cluster)
            arena = connect(url, data_dir).url if remote else "embedded"
            journal = Journal(command=command, arena=arena, started_at=provenance.now())
            folder = Folder.create(where, wanted, journal)
        try:
            if remote:
                store = Store(settings_beside(url, data_dir))
                on_arena(folder, connect(url, data_dir), store, quiet=json)
            else:
                asyncio.run(embedded(folder, quiet=json))
        except Interrupted:
            again = f"hybrid experiment run --resume {shlex.quote(str(folder.path))}"
            if remote:
                again += f" --url {url}" if url else f" --data-dir {data_dir}"
            note = f"interrupted; what was done is kept. Go on with: [bold]{plain(again)}[/]"
            err.print(note, soft_wrap=True)
            raise typer.Exit(130) from None
        finish(folder)
        _write_report(folder.path, json)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a finished experiment.")],
    json: Json = False,
) -> None:
    """Write the report of a finished experiment again.

    Example: `hybrid experiment report experiments/shift-1116-081502`
    """
    with explained():
        Folder.open(folder)
        if not (folder / "provenance.json").exists():
            fail(f"{folder} is not finished: hybrid experiment run --resume {folder}")
        _write_report(folder, json)


@app.command()
def compare(
    folders: Annotated[list[Path], typer.Argument(help="Folders of finished experiments.")],
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the comparison.")] = Path(
        "comparison"
    ),
    json: Json = False,
) -> None:
    """Compare experiments that were run twice: another version, machine or setting.

    Example: `hybrid experiment compare experiments/heavy-1 experiments/heavy-2 --out before-after`
    """
    from services.lab import report as reports

    with explained():
        if len(folders) < 2:
            fail("give two folders or more")
        for folder in folders:
            if not (folder / "provenance.json").exists():
                fail(f"no finished experiment in {folder}")
        with err.status("comparing"):
            written = reports.write_comparison(folders, out_dir)
    _say(out_dir, [str(each) for each in written], json)


def _overridden(
    declared: Experiment,
    tasks: int | None,
    seeds: str | None,
    pace: str | None,
    cluster: Path | None,
) -> Experiment:
    data = declared.model_dump(mode="json")
    data["spec"] = over_profile(cluster, data["spec"])
    if tasks is not None:
        data["tasks"] = tasks
    if seeds is not None:
        data["seeds"] = _seeds(seeds)
    if pace is not None:
        data["spec"]["pace"] = pace
    return experiments.parse(data, declared.name)


def _seeds(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.removesuffix(",").split(",")]
    except ValueError:
        raise ExperimentError(
            f"--seeds {text}: a number of seeds, or a list such as 7,8,9"
        ) from None
    if "," in text:
        return numbers
    if not 1 <= numbers[0] <= 1000:
        raise ExperimentError(f"--seeds {text}: between 1 and 1000 seeds; one seed N alone is N,")
    return list(range(1, numbers[0] + 1))


def _command(
    name: str, tasks: int | None, seeds: str | None, pace: str | None, cluster: Path | None
) -> str:
    """What reproduces it: the options that change a result, and no others."""
    words = ["hybrid", "experiment", "run", name]
    options = {"--tasks": tasks, "--seeds": seeds, "--pace": pace, "--cluster": cluster}
    for option, value in options.items():
        words += [] if value is None else [option, str(value)]
    return shlex.join(words)


def _report_again(folder: Folder, json: bool) -> None:
    """Every run is done, so no arena is needed; what was measured with the runs stays as it is."""
    err.print("every run is done, the report is written again")
    if not (folder.path / "provenance.json").exists():  # it was killed right before
        finish(folder)
    clear(folder)
    _write_report(folder.path, json)


def _write_report(folder: Path, json: bool) -> None:
    from services.lab import report as reports

    began = time.monotonic()
    with err.status("writing the report"):
        written = reports.write(folder)
    if not json:
        err.print(f"[dim]report written in {time.monotonic() - began:.1f} s[/]")
    _say(folder, [str(each) for each in written], json)


def _say(folder: Path, written: list[str], json: bool) -> None:
    if json:
        print_json({"folder": str(folder), "files": written})
        return
    for file in written:
        if Path(file).suffix in (".html", ".pdf"):
            out.print(plain(file), soft_wrap=True)
    err.print(f"figures and data are in [bold]{plain(str(folder))}[/]", soft_wrap=True)
