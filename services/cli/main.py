"""The `hybrid` command."""

from __future__ import annotations

import typer

from services.cli import experiment, models, rejected, runs, trace
from services.cli.profile import profile
from services.cli.query import sql
from services.cli.tail import tail
from services.cli.up import up

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="An arena for CPU/GPU schedulers: one stream of tasks, many competitors, every decision "
    "priced in time, energy and money.",
)
app.command()(up)
app.command()(runs.status)
app.add_typer(runs.app, name="run")
app.add_typer(models.app, name="model")
app.add_typer(rejected.app, name="rejected")
app.add_typer(experiment.app, name="experiment")
app.add_typer(trace.app, name="trace")
app.command()(sql)
app.command()(tail)
app.command()(profile)

if __name__ == "__main__":
    app()
