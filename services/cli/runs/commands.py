"""`hybrid run ...`"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer import Argument, Option

from services.cli import shell_completion
from services.cli.client import connect
from services.cli.options import (
    Cluster,
    DataDir,
    Json,
    Limit,
    Platform,
    Preset,
    Run,
    Seed,
    SpecFile,
    Url,
    Wait,
)
from services.cli.output import ago, coloured, err, fail, out, print_json, race_table
from services.cli.runs import forking
from services.cli.tables import table

app = typer.Typer(no_args_is_help=True)
app.command()(forking.fork)
app.command()(forking.compare)


@app.command()
def start(
    spec: SpecFile = None,
    tasks: Annotated[int | None, Option(help="How many tasks; none: endless.")] = None,
    pace: Annotated[str | None, Option(help="Tasks per second, or max.")] = None,
    seed: Seed = None,
    preset: Preset = None,
    cluster: Cluster = None,
    platform: Platform = None,
    wait: Wait = False,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Start a run.

    Examples: `hybrid run start --tasks 10000 --pace max --wait`,
    `hybrid run start --spec my-run.yaml --seed 7`,
    `hybrid run start --platform dgx`, `hybrid run start --cluster hardware_profile.json`
    """
    # Imported here because numpy and pydantic would slow down `hybrid run list`.
    from services.cli.runs.completion import suspended_lines, wait_for
    from services.cli.runs.spec import spec_from

    data = spec_from(spec, tasks, pace, seed, preset, cluster, platform)
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
        for line in suspended_lines(run):
            err.print(line)
    else:
        err.print(f"run [bold]{run['run']}[/] is {coloured(run['state'])}")
        out.print(run["run"])


@app.command("list")
def list_runs(
    limit: Limit = 20, url: Url = None, data_dir: DataDir = None, json: Json = False
) -> None:
    """List runs, newest first.

    Examples: `hybrid run list`, `hybrid run list --limit 5 --json`
    """
    runs = connect(url, data_dir).get("/api/runs", limit=limit)
    if json:
        print_json(runs)
    elif not runs:
        err.print("no run yet; start one with `hybrid run start`")
    else:
        headings = "run", "name", "state", "started", "tasks", "pace", "preset", "seed"
        left_out_first = "pace", "seed", "preset", "tasks", "started", "name"
        out.print(table(headings, map(_row, runs), left_out_first=left_out_first))


def _row(run: dict[str, Any]) -> Iterator[str]:
    spec = run["spec"]
    submitted = spec["workload"].get("source") == "submitted"
    total = "endless" if spec["tasks"] is None else f"{spec['tasks']:,}"
    yield from (run["run"], escape(run["name"]), coloured(run["state"]), ago(run["created_at"]))
    yield from ("submitted" if submitted else total, str(spec["pace"]))
    yield from ("–" if submitted else spec["workload"]["preset"], str(spec["seed"]))


ACTIONS = {
    "pause": """Pause a run. It stays paused when the arena is restarted.

    Example: `hybrid run pause`""",
    "resume": """Resume a paused run.

    Example: `hybrid run resume`""",
    "stop": """End a run; it cannot be resumed.

    Example: `hybrid run stop 1116-081502-6a1f`""",
}


def _add_command(action: str, description: str) -> None:
    @app.command(action, help=description)
    def control(
        run: Run = None, url: Url = None, data_dir: DataDir = None, json: Json = False
    ) -> None:
        changed = connect(url, data_dir).post(f"/api/simulation/{action}", run=run)
        if json:
            print_json(changed)
        else:
            err.print(f"run [bold]{changed['run']}[/] is {coloured(changed['state'])}")


for action, description in ACTIONS.items():
    _add_command(action, description)


RunId = Annotated[str, Argument(help="The run's id.", autocompletion=shell_completion.runs)]
SchedulerName = Annotated[
    str, Argument(help="The suspended scheduler.", autocompletion=shell_completion.schedulers)
]


@app.command()
def retry(
    run: RunId,
    scheduler: SchedulerName,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Let a suspended scheduler take part in a run again, from where it failed.

    A policy of a file is loaded again, so fix it first.

    Example: `hybrid run retry 1117-101500-ab12 my_policy`
    """
    changed = connect(url, data_dir).post(f"/api/runs/{run}/schedulers/{scheduler}/retry")
    if json:
        print_json(changed)
    else:
        err.print(f"{scheduler} takes part in run [bold]{run}[/] again")


@app.command("leave-out")
def leave_out(
    run: RunId,
    scheduler: SchedulerName,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Finish a run without a suspended scheduler. It cannot be taken back.

    Example: `hybrid run leave-out 1117-101500-ab12 my_policy`
    """
    changed = connect(url, data_dir).post(f"/api/runs/{run}/schedulers/{scheduler}/leave-out")
    if json:
        print_json(changed)
    else:
        err.print(f"{scheduler} is left out of run [bold]{run}[/]")


@app.command("export-trace")
def export_trace(
    run: RunId,
    out_file: Annotated[Path, Option("--out", help="The file to write.")] = Path("trace.json"),
    scheduler: Annotated[str | None, Option(help="Only this one; else all.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Write what every device did and when, to look at in ui.perfetto.dev or chrome://tracing.

    Example: `hybrid run export-trace 1117-101500-ab12 --scheduler eft --out eft.json`
    """
    pieces = connect(url, data_dir).download(f"/api/runs/{run}/trace.json", scheduler=scheduler)
    partial = out_file.with_name(f"{out_file.name}.part")
    with partial.open("wb") as file:
        for piece in pieces:
            file.write(piece)
    partial.replace(out_file)
    err.print(f"wrote {out_file}: {out_file.stat().st_size / 1e6:.1f} MB")


@app.command()
def objective(
    run: Annotated[str, Argument(help="The run's id.", autocompletion=shell_completion.runs)],
    turnaround: Annotated[float, Option(help="Weight of turnaround; above 0.")] = 1.0,
    energy: Annotated[float, Option(help="Weight of energy.")] = 0.0,
    cost: Annotated[float, Option(help="Weight of money.")] = 0.0,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Let the learners of a running run minimise something else from now on.

    Energy and money count in seconds of the strongest devices. Not for runs in lockstep, whose
    results follow from their spec: start one with `objective` in its spec.

    Example: `hybrid run objective 1117-101500-ab12 --turnaround 1 --energy 0.5`
    """
    weights = {"turnaround": turnaround, "energy": energy, "cost": cost}
    changed = connect(url, data_dir).put(f"/api/runs/{run}/objective", weights)
    if json:
        print_json(changed)
    else:
        shown = ", ".join(f"{name} {weight:g}" for name, weight in weights.items())
        err.print(f"the learners of run [bold]{changed['run']}[/] now minimise {shown}")
