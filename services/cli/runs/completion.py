"""Waits for the end of a run with a progress bar, and says what the run waits for."""

from __future__ import annotations

import time
from typing import Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from services.cli.client import DEFAULT_URL
from services.cli.interrupts import INTERRUPTED
from services.cli.output import err, fail, progress
from shared.runtime.gateway_client import GatewayClient, Pause, retry_while_unavailable

POLL_SECONDS = 0.2


STORED = "results stored"


def pretraining_line(status: dict[str, Any]) -> str | None:
    """What a run waits for before its first task; a gateway of an older version does not say."""
    waiting = status.get("pretraining")
    if not waiting:
        return None
    ready, names = status["learners"] - len(waiting), ", ".join(waiting)
    return f"pre-training the learners, {ready} of {status['learners']} ready; waiting for {names}"


def suspended_lines(run: dict[str, Any]) -> list[str]:
    """A line for each scheduler of a run (or its status) that keeps failing."""
    lines = []
    for name, each in run.get("suspended", {}).items():
        where = "" if each["batch"] is None else f" on batch {each['batch']}"
        outcome = "was left out" if each["left_out"] else "is suspended"
        lines.append(
            f"[red]{escape(name)} {outcome} in run {run['run']}: it kept failing{where}: "
            f"{escape(each['reason'])}[/]"
        )
        if not each["left_out"] and run["state"] in ("running", "paused"):
            lines[-1] += (
                f"\n  fix it, then: hybrid run retry {run['run']} {escape(name)}"
                f"\n  or go on without it: hybrid run leave-out {run['run']} {escape(name)}"
            )
    return lines


def wait_for(
    gateway: GatewayClient, run: str, tasks: int, *, quiet: bool, pause: Pause = time.sleep
) -> dict[str, Any]:
    """The run, once every scheduler has a stored result for every task. An arena that does not
    answer may be restarting, so the request is repeated. Ctrl-C ends the waiting, not the run."""
    try:
        return _poll(gateway, run, tasks, quiet, pause)
    except KeyboardInterrupt:
        _report_still_running(gateway, run)
        raise typer.Exit(INTERRUPTED) from None


def _poll(
    gateway: GatewayClient, run: str, tasks: int, quiet: bool, pause: Pause
) -> dict[str, Any]:
    # What waits for the learners is a line above the bar: beside it, the numbers would be cut.
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    printed: set[str] = set()
    with progress(*columns, TimeRemainingColumn(), quiet=quiet) as bar:
        task = bar.add_task(STORED, total=tasks)
        while True:
            status = retry_while_unavailable(lambda: gateway.get("/api/status", run=run), pause)
            waiting = pretraining_line(status)
            done = min(status["tasks_processed"], tasks)
            bar.update(task, completed=done)
            lines = suspended_lines(status)
            if waiting:
                lines.append(waiting)
            for line in [] if quiet else [line for line in lines if line not in printed]:
                printed.add(line)
                err.print(line, soft_wrap=True)  # a command on one line can be copied
            if status["state"] == "completed":
                return dict(retry_while_unavailable(lambda: gateway.get(f"/api/runs/{run}"), pause))
            if status["state"] == "stopped":
                fail(f"run {run} was stopped")
            if status.get("suspended") and not status["competing"]:
                fail(f"every scheduler of run {run} is suspended: it cannot be completed")
            pause(POLL_SECONDS)


def _report_still_running(gateway: GatewayClient, run: str) -> None:
    where = "" if gateway.url == DEFAULT_URL else f" --url {gateway.url}"
    err.print(
        f"interrupted: run [bold]{run}[/] continues without this command\n"
        f"  watch it: {gateway.url}, or hybrid status {run}{where}\n"
        f"  stop it:  hybrid run stop {run}{where}",
        soft_wrap=True,
    )
