"""`hybrid run ...` and `hybrid status`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from services.cli.client import connect
from services.cli.options import DataDir, Json, RunArgument, Url
from services.cli.output import (
    ago,
    coloured,
    err,
    explained,
    fail,
    out,
    plain,
    print_json,
    race_table,
)
from services.cli.profile import ClusterOption, over_profile
from shared.gateway import Gateway, Pause, patiently
from shared.spec import RunSpec, read_mapping

LOOK_SECONDS = 0.2

app = typer.Typer(no_args_is_help=True, help="Start, watch and steer runs.")


def spec_from(
    spec: Path | None,
    tasks: int | None,
    pace: str | None,
    seed: int | None,
    preset: str | None,
    cluster: Path | None = None,
) -> dict[str, Any]:
    """The options over a spec file over a hardware profile.

    All of it is checked here, so that errors need no arena.
    """
    data = read_mapping(spec) if spec else {}
    RunSpec.parse(data)
    data = over_profile(cluster, dict(data or {}))
    for key, value in (("tasks", tasks), ("pace", pace), ("seed", seed)):
        if value is not None:
            data[key] = value
    if preset is not None:
        data["workload"] = {**(data.get("workload") or {}), "preset": preset}
    return RunSpec.parse(data).model_dump(mode="json", exclude_unset=True)


@app.command()
def start(
    spec: Annotated[Path | None, typer.Option(help="A RunSpec, YAML or JSON.")] = None,
    tasks: Annotated[int | None, typer.Option(help="How many tasks; none: endless.")] = None,
    pace: Annotated[str | None, typer.Option(help="Tasks per second, or max.")] = None,
    seed: Annotated[int | None, typer.Option(help="Same spec and seed, same results.")] = None,
    preset: Annotated[str | None, typer.Option(help="Workload preset, such as hpc.")] = None,
    cluster: ClusterOption = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run is complete.")] = False,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Start a run.

    Examples: `hybrid run start --tasks 10000 --pace max --wait`,
    `hybrid run start --spec my-run.yaml --seed 7`,
    `hybrid run start --cluster hardware_profile.json`
    """
    with explained():
        data = spec_from(spec, tasks, pace, seed, preset, cluster)
        if wait and data.get("tasks") is None:
            fail("--wait needs a run that ends: give --tasks")
        gateway = connect(url, data_dir)
        run = gateway.post("/api/runs", data)
        if wait:
            run = wait_for(gateway, run["run"], data["tasks"], quiet=json)
    if json:
        print_json(run)
    elif wait:
        out.print(race_table(run["schedulers"], f"run {run['run']}", run["bound"]))
    else:
        err.print(f"run [bold]{run['run']}[/] is {coloured(run['state'])}")
        out.print(run["run"])


def wait_for(
    gateway: Gateway, run: str, tasks: int, *, quiet: bool, pause: Pause = time.sleep
) -> dict[str, Any]:
    """Until every task has a stored result from every scheduler, with a progress bar; the run as
    it is then. The arena goes on with it or will, so one that is away is waited for."""
    bar = Progress(
        TextColumn("results stored"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        disable=quiet or not err.is_terminal,
    )
    with bar:
        progress = bar.add_task("", total=tasks)
        while True:
            status = patiently(lambda: gateway.get("/api/status", run=run), pause)
            bar.update(progress, completed=min(status["tasks_processed"], tasks))
            if status["state"] == "completed":
                return dict(patiently(lambda: gateway.get(f"/api/runs/{run}"), pause))
            if status["state"] == "stopped":
                fail(f"run {run} was stopped")
            pause(LOOK_SECONDS)


@app.command("list")
def list_runs(
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """List runs, newest first."""
    with explained():
        runs = connect(url, data_dir).get("/api/runs", limit=limit)
    if json:
        print_json(runs)
        return
    if not runs:
        err.print("no run yet; start one with `hybrid run start`")
        return
    table = Table("run", "name", "state", "started", "tasks", "pace", "preset", "seed")
    for run in runs:
        spec = run["spec"]
        submitted = spec["workload"].get("source") == "submitted"
        total = "endless" if spec["tasks"] is None else f"{spec['tasks']:,}"
        table.add_row(
            run["run"],
            plain(run["name"]),
            coloured(run["state"]),
            ago(run["created_at"]),
            "submitted" if submitted else total,
            str(spec["pace"]),
            "–" if submitted else spec["workload"]["preset"],
            str(spec["seed"]),
        )
    out.print(table)


def _move(verb: str, run: str | None, url: str | None, data_dir: Path | None, json: bool) -> None:
    with explained():
        moved = connect(url, data_dir).post(f"/api/simulation/{verb}", run=run)
    if json:
        print_json(moved)
    else:
        err.print(f"run [bold]{moved['run']}[/] is {coloured(moved['state'])}")


@app.command()
def pause(
    run: RunArgument = None, url: Url = None, data_dir: DataDir = None, json: Json = False
) -> None:
    """Hold a run. It stays paused over a restart of everything."""
    _move("pause", run, url, data_dir, json)


@app.command()
def resume(
    run: RunArgument = None, url: Url = None, data_dir: DataDir = None, json: Json = False
) -> None:
    """Let a paused run go on."""
    _move("resume", run, url, data_dir, json)


@app.command()
def stop(
    run: RunArgument = None, url: Url = None, data_dir: DataDir = None, json: Json = False
) -> None:
    """End a run for good."""
    _move("stop", run, url, data_dir, json)


def status(
    run: RunArgument = None, url: Url = None, data_dir: DataDir = None, json: Json = False
) -> None:
    """Show the arena: services, the race, and who lags behind.

    Ends with 1 when a part of the arena does not answer.
    """
    with explained(), connect(url, data_dir) as gateway:
        health = gateway.get("/api/health")
        found = gateway.get("/api/status", run=run)
    if json:
        print_json({"health": health, "status": found})
    else:
        _show_status(gateway, health, found)
    if health["status"] != "ok":
        raise typer.Exit(1)


def _show_status(gateway: Gateway, health: Any, found: Any) -> None:
    colour = "green" if health["status"] == "ok" else "red"
    out.print(f"arena at {gateway.url}: [{colour}]{health['status']}[/]")
    counts: dict[str, int] = {}
    for report in health["services"]:
        name = " ".join(filter(None, (report["service"], report["scheduler"])))
        counts[name] = counts.get(name, 0) + 1
        for part, problem in report["problems"].items():
            out.print(f"  [red]{name}: {part}: {problem}[/]")
    out.print(
        "services: "
        + ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in sorted(counts.items()))
    )
    for missing in health["missing"]:
        out.print(f"  [red]missing: {missing}[/]")
    if found["run"] is None:
        out.print("no run yet; start one with `hybrid run start`")
        _show_bus(found)
        return
    title = (
        f"run {found['run']}: {coloured(found['state'])}, {found['tasks_sent']:,} tasks sent, "
        f"{found['tasks_processed']:,} finished by all"
    )
    out.print(race_table(found["schedulers"], title))
    _show_bus(found)


def _show_bus(found: Any) -> None:
    """Every reader of the bus with what it has still to deal with, and the dead letters."""
    table = Table("reader", Column("messages behind", justify="right"), title="the bus")
    table.title_justify = "left"
    for reader, lag in sorted(found["lag"].items()):
        table.add_row(plain(reader), f"[yellow]{lag:,}[/]" if lag else "0")
    out.print(table)
    by = {service: count for service, count in found["rejected_by"].items() if count}
    if by:
        said = ", ".join(f"{service} {count:,}" for service, count in by.items())
        out.print(
            f"[yellow]dead letters: {found['rejected']:,}[/] ({said}); `hybrid rejected list`"
        )
    else:
        out.print("dead letters: none")
