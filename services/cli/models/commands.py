"""`hybrid model ...`"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer import Argument, Option

from services.cli import shell_completion
from services.cli.client import connect
from services.cli.models import export as exports
from services.cli.options import DataDir, Json, Limit, Url
from services.cli.output import ago, err, out, print_fields, print_json
from services.cli.tables import prose, table
from shared.domain.schedulers import LEARNERS, check_scheduler_name
from shared.errors import NotFound
from shared.runtime.gateway_client import GatewayClient, Refused

app = typer.Typer(no_args_is_help=True)


def _check_name(name: str | None) -> str | None:
    try:
        return name and check_scheduler_name(name)
    except ValueError as error:
        raise NotFound(str(error)) from None


Name = Annotated[
    str,
    Argument(
        help=f"The learner: {', '.join(LEARNERS)}, or your own.",
        callback=_check_name,
        autocompletion=shell_completion.learners,
    ),
]
Run = Annotated[
    str | None,
    Option(
        help="A run's id; default: the newest active, else the newest.",
        autocompletion=shell_completion.runs,
    ),
]
Version = Annotated[int | None, Option(min=1, help="Without it the one in service.")]


@app.command("list")
def list_models(
    run: Run = None,
    name: Annotated[
        str | None,
        Option(
            help="Only of this learner.",
            callback=_check_name,
            autocompletion=shell_completion.learners,
        ),
    ] = None,
    limit: Limit = 20,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """List the models of a run, shipped or not, newest first.

    Examples: `hybrid model list`, `hybrid model list --name hybrid_ml --limit 5 --json`
    """
    gateway = connect(url, data_dir)
    run_id = run or _newest_run(gateway)
    rows = gateway.get("/api/models", run=run_id, name=name, limit=limit)
    if not rows and run:
        gateway.get(f"/api/runs/{run}")  # refused if there is no such run
    if json:
        print_json(rows)
    elif not rows:
        err.print(f"no model in run {run_id} yet")
    else:
        headings = "name", "version", "state", "created", "trained on", "score", prose("why")
        title, left_out_first = f"models of run {run_id}", ("trained on", "created", "why")
        out.print(table(headings, map(_row, rows), title=title, left_out_first=left_out_first))


def _row(model: dict[str, Any]) -> Iterator[str]:
    yield from (model["name"], str(model["version"]))
    yield "[green]shipped[/]" if model["shipped"] else "[yellow]not shipped[/]"
    yield from (ago(_seconds(model["created_at"])), f"{model['trained_on']:,}")
    yield "–" if model["score"] is None else f"{model['score']:.4f}"
    yield escape(model["reason"])


@app.command()
def show(
    name: Name,
    run: Run = None,
    version: Version = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Show a model's manifest.

    Examples: `hybrid model show hybrid_ml`, `hybrid model show rl_agent --version 3 --json`
    """
    gateway = connect(url, data_dir)
    model = _describe(gateway, run or _newest_run(gateway), name, version)
    if json:
        print_json(model)
        return
    model["created_at"] = datetime.fromtimestamp(model["created_at"]).isoformat(" ", "seconds")
    if "metrics" in model:
        metrics = model["metrics"].items()
        model["metrics"] = ", ".join(f"{label} {number:.6g}" for label, number in metrics) or "–"
    print_fields((key.replace("_", " "), str(value)) for key, value in model.items())


@app.command()
def export(
    name: Name,
    file: Annotated[
        Path | None,
        Option("--out", help="The file to write (default: NAME-vVERSION and .pkl, .pth or .onnx)."),
    ] = None,
    run: Run = None,
    version: Version = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Write a model as a file for scikit-learn (hybrid_ml), PyTorch (tensors) or ONNX.

    `joblib.load` reads the first, a pipeline of scaler and forest; `torch.load` reads the second,
    of rl_agent the network's state_dict and the `scale` of its rewards.

    Examples: `hybrid model export hybrid_ml --out forest.pkl`,
    `hybrid model export rl_agent --version 3`
    """
    gateway = connect(url, data_dir)
    model = gateway.model(run or _newest_run(gateway), name, version)
    manifest = model.manifest
    target = file or exports.default_file(name, manifest.version, manifest.format)
    exports.write(name, model.body, target, manifest.format)
    if json:
        print_json({"file": str(target), **manifest.model_dump()})
        return
    err.print(f"version {manifest.version} of {name} in run [bold]{manifest.run}[/]")
    out.print(escape(str(target)), soft_wrap=True)


@app.command()
def rollback(
    name: Name,
    version: Annotated[int, Argument(min=1, help="The version to go back to.")],
    run: Run = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Put an older version into service again, as a new version.

    Example: `hybrid model rollback hybrid_ml 3`
    """
    gateway = connect(url, data_dir)
    run_id = run or _newest_run(gateway)
    manifest = gateway.post(f"/api/models/{run_id}/{name}/rollback", {"version": version})
    if json:
        print_json(manifest)
        return
    err.print(
        f"{name} in run [bold]{run_id}[/]: version {version} is in service again, "
        f"as version [bold]{manifest['version']}[/]"
    )


def _newest_run(gateway: GatewayClient) -> str:
    run: str | None = gateway.get("/api/status")["run"]
    if run is None:
        raise NotFound("no run yet; start one with `hybrid run start`")
    return run


def _describe(gateway: GatewayClient, run: str, name: str, version: int | None) -> dict[str, Any]:
    """From the bus while it holds the model, else from ClickHouse."""
    try:
        model = gateway.model(run, name, version)
        return {**model.manifest.model_dump(), "bytes": len(model.body), "held": True}
    except Refused as refused:
        if refused.status != 404 or version is None:
            raise
        for row in gateway.get("/api/models", run=run, name=name, version=version):
            if row["shipped"]:
                return {**row, "created_at": _seconds(row["created_at"]), "held": False}
        raise


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
