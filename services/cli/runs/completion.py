"""Wait until a run is complete, with a progress bar."""

from __future__ import annotations

import time
from typing import Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

from services.cli.client import DEFAULT_URL
from services.cli.interrupts import INTERRUPTED
from services.cli.output import err, fail, progress
from shared.runtime.gateway_client import GatewayClient, Pause, retry_while_unavailable

POLL_SECONDS = 0.2


def wait_for(
    gateway: GatewayClient, run: str, tasks: int, *, quiet: bool, pause: Pause = time.sleep
) -> dict[str, Any]:
    """The run, once every scheduler has a stored result for every task. An arena that does not
    answer may be restarting, so the request is repeated. Ctrl-C ends the waiting, not the run."""
    try:
        return _poll(gateway, run, tasks, quiet, pause)
    except KeyboardInterrupt:
        _say_that_it_goes_on(gateway, run)
        raise typer.Exit(INTERRUPTED) from None


def _poll(
    gateway: GatewayClient, run: str, tasks: int, quiet: bool, pause: Pause
) -> dict[str, Any]:
    columns = "results stored", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with progress(*columns, quiet=quiet) as bar:
        task = bar.add_task("", total=tasks)
        while True:
            status = retry_while_unavailable(lambda: gateway.get("/api/status", run=run), pause)
            bar.update(task, completed=min(status["tasks_processed"], tasks))
            if status["state"] == "completed":
                return dict(retry_while_unavailable(lambda: gateway.get(f"/api/runs/{run}"), pause))
            if status["state"] == "stopped":
                fail(f"run {run} was stopped")
            pause(POLL_SECONDS)


def _say_that_it_goes_on(gateway: GatewayClient, run: str) -> None:
    where = "" if gateway.url == DEFAULT_URL else f" --url {gateway.url}"
    err.print(
        f"interrupted: run [bold]{run}[/] goes on without this command\n"
        f"  watch it: {gateway.url}, or hybrid status {run}{where}\n"
        f"  stop it:  hybrid run stop {run}{where}",
        soft_wrap=True,
    )
