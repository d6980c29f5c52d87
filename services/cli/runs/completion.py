"""Wait until a run is complete, with a progress bar."""

from __future__ import annotations

import time
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

from services.cli.output import fail, progress
from shared.runtime.gateway_client import GatewayClient, Pause, retry_while_unavailable

POLL_SECONDS = 0.2


def wait_for(
    gateway: GatewayClient, run: str, tasks: int, *, quiet: bool, pause: Pause = time.sleep
) -> dict[str, Any]:
    """The run, once every scheduler has a stored result for every task. An arena that does not
    answer may be restarting, so the request is repeated."""
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
