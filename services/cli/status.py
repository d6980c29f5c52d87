"""`hybrid status`"""

from __future__ import annotations

from collections import Counter
from typing import Any

import typer
from rich.markup import escape

from services.cli.client import connect
from services.cli.options import DataDir, Json, Run, Url
from services.cli.output import coloured, out, print_json, race_table
from services.cli.runs.completion import pretraining_line, suspended_lines
from services.cli.tables import right, table

NOT_ON_THE_BUS = "it does not run, or does not reach NATS; its log says which"


def status(run: Run = None, url: Url = None, data_dir: DataDir = None, json: Json = False) -> None:
    """Show the services, the race between the schedulers, and who lags behind.

    Ends with 1 when a part of the arena does not answer, or a scheduler is suspended in the run.

    Examples: `hybrid status`, `hybrid status --url http://127.0.0.1:8000 --json`
    """
    with connect(url, data_dir) as gateway:
        health = gateway.get("/api/health")
        status = gateway.get("/api/status", run=run)
    if json:
        print_json({"health": health, "status": status})
    else:
        for line in suspended_lines(status):
            out.print(line, soft_wrap=True)
        _show_health(gateway.url, health)
        _show_run(status)
        _show_bus(status)
    suspended = status.get("suspended", {}).values()
    undecided = [each for each in suspended if not each["left_out"]]
    if health["status"] != "ok" or (undecided and status["state"] in ("running", "paused")):
        raise typer.Exit(1)


def _show_health(url: str, health: Any) -> None:
    colour = "green" if health["status"] == "ok" else "red"
    out.print(f"arena at {url}: [{colour}]{health['status']}[/]")
    counts: Counter[str] = Counter()
    for report in health["services"]:
        name = " ".join(filter(None, (report["service"], report["scheduler"])))
        counts[name] += 1
        for part, problem in report["problems"].items():
            out.print(f"  [red]{name}: {part}: {problem}[/]")
    refused = health.get("refused", [])
    for client in refused:
        out.print(
            f"  [red]refused: {escape(client['client'])}: NATS refuses its user "
            f"{escape(client['user'])} or its password (from {escape(client['address'])})[/]"
        )
    known = {client["client"] for client in refused}
    for missing in health["missing"]:
        if missing not in known:
            out.print(f"  [red]missing: {missing}: {NOT_ON_THE_BUS}[/]")
    services = [f"{name} ×{n}" if n > 1 else name for name, n in sorted(counts.items())]
    out.print(f"services: {', '.join(services)}")


def _show_run(status: Any) -> None:
    if status["run"] is None:
        out.print("no run yet; start one with `hybrid run start`")
        return
    title = (
        f"run {status['run']}: {coloured(status['state'])}, {status['tasks_sent']:,} tasks sent, "
        f"{status['tasks_processed']:,} finished by all"
    )
    if line := pretraining_line(status):
        out.print(line)
    out.print(race_table(status["schedulers"], title) if status["schedulers"] else title)


def _show_bus(status: Any) -> None:
    headings = ["consumer", *right("messages behind")]
    lags = sorted(status["lag"].items())
    rows = ((escape(name), f"[yellow]{lag:,}[/]" if lag else "0") for name, lag in lags)
    out.print(table(headings, rows, title="lag on the bus"))
    counts = [f"{service} {n:,}" for service, n in status["rejected_by"].items() if n]
    if counts:
        total = f"[yellow]dead letters: {status['rejected']:,}[/]"
        out.print(f"{total} ({', '.join(counts)}); `hybrid rejected list`")
    else:
        out.print("dead letters: none")
