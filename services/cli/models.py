"""`hybrid model ...`"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from services.cli import export as exports
from services.cli.client import connect
from services.cli.options import DataDir, Json, Url
from services.cli.output import ago, err, explained, out, plain, print_json
from shared.errors import NotFound
from shared.gateway import Gateway, Refused
from shared.models import LEARNERS

app = typer.Typer(no_args_is_help=True, help="List, inspect, export and roll back models.")

Name = Annotated[str, typer.Argument(help=f"Whose model: {' or '.join(LEARNERS)}.")]
Run = Annotated[
    str | None,
    typer.Option("--run", help="A run's id; without it the newest active run, else the newest."),
]
Version = Annotated[
    int | None, typer.Option("--version", min=1, help="Without it the one in service.")
]


@app.command("list")
def list_models(
    run: Run = None,
    name: Annotated[str | None, typer.Option("--name", help="Only this learner's.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """List the models of a run, shipped or kept back, newest first.

    Examples: `hybrid model list`, `hybrid model list --name hybrid_ml --limit 5 --json`
    """
    with explained():
        if name is not None:
            _check_name(name)
        gateway = connect(url, data_dir)
        chosen = run or _newest_run(gateway)
        rows = gateway.get("/api/models", run=chosen, name=name, limit=limit)
    if json:
        print_json(rows)
        return
    if not rows:
        err.print(f"no model in run {chosen} yet")
        return
    table = Table("name", "version", "state", "made", "trained on", "score", "why")
    table.title, table.title_justify = f"models of run {chosen}", "left"
    for row in rows:
        table.add_row(
            row["name"],
            str(row["version"]),
            "[green]shipped[/]" if row["shipped"] else "[yellow]kept back[/]",
            ago(_seconds(row["created_at"])),
            f"{row['trained_on']:,}",
            "–" if row["score"] is None else f"{row['score']:.4f}",
            plain(row["reason"]),
        )
    out.print(table)


@app.command()
def show(
    name: Name,
    run: Run = None,
    version: Version = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Show what is known of a model.

    Examples: `hybrid model show hybrid_ml`, `hybrid model show rl_agent --version 3 --json`
    """
    with explained():
        _check_name(name)
        gateway = connect(url, data_dir)
        found = _describe(gateway, run or _newest_run(gateway), name, version)
    if json:
        print_json(found)
        return
    table = Table("", Column(overflow="fold"), show_header=False)
    for key, value in found.items():
        shown = value
        if key == "created_at":
            shown = datetime.fromtimestamp(value).isoformat(" ", "seconds")
        elif key == "metrics":
            shown = ", ".join(f"{label} {number:.6g}" for label, number in value.items()) or "–"
        table.add_row(key.replace("_", " "), plain(str(shown)))
    out.print(table)


@app.command()
def export(
    name: Name,
    file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Where to write it (default: NAME-vVERSION.pkl or .pth here).",
            show_default=False,
        ),
    ] = None,
    run: Run = None,
    version: Version = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Write a model as a file for scikit-learn (hybrid_ml) or PyTorch (rl_agent).

    `joblib.load` reads the first: a pipeline of scaler and forest. `torch.load` reads the second:
    the state_dict of the network, and the `scale` of its rewards.

    Examples: `hybrid model export hybrid_ml --out forest.pkl`,
    `hybrid model export rl_agent --version 3`
    """
    with explained():
        _check_name(name)
        if file is not None:
            exports.check_suffix(name, file)
        gateway = connect(url, data_dir)
        model = gateway.model(run or _newest_run(gateway), name, version)
        target = file or exports.default_file(name, model.manifest.version)
        exports.write(name, model.body, target)
    manifest = model.manifest
    if json:
        print_json({"file": str(target), **manifest.model_dump()})
        return
    err.print(f"version {manifest.version} of {name} in run [bold]{manifest.run}[/]")
    out.print(plain(str(target)), soft_wrap=True)


@app.command()
def rollback(
    name: Name,
    version: Annotated[int, typer.Argument(min=1, help="The version to go back to.")],
    run: Run = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Put an older version into service again, as a new version.

    Examples: `hybrid model rollback hybrid_ml 3`
    """
    with explained():
        _check_name(name)
        gateway = connect(url, data_dir)
        chosen = run or _newest_run(gateway)
        manifest = gateway.post(f"/api/models/{chosen}/{name}/rollback", {"version": version})
    if json:
        print_json(manifest)
        return
    err.print(
        f"{name} in run [bold]{chosen}[/]: version {version} is in service again, "
        f"as version [bold]{manifest['version']}[/]"
    )


def _check_name(name: str) -> None:
    if name not in LEARNERS:
        raise NotFound(f"no learner {name}; there are {', '.join(LEARNERS)}")


def _newest_run(gateway: Gateway) -> str:
    run: str | None = gateway.get("/api/status")["run"]
    if run is None:
        raise NotFound("no run yet; start one with `hybrid run start`")
    return run


def _describe(gateway: Gateway, run: str, name: str, version: int | None) -> dict[str, Any]:
    """From the bus while it holds the model, else from what is stored of it."""
    try:
        model = gateway.model(run, name, version)
        return {**model.manifest.model_dump(), "bytes": len(model.body), "held": True}
    except Refused as refused:
        if refused.status != 404 or version is None:
            raise
        rows = gateway.get("/api/models", run=run, name=name, version=version)
        for row in rows:
            if row["shipped"]:
                return {**row, "created_at": _seconds(row["created_at"]), "held": False}
        raise


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
