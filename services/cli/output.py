"""What people see: data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from shared.errors import ArenaError

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

STATE_COLOURS = {"running": "green", "paused": "yellow", "stopped": "red", "completed": "cyan"}


def print_json(data: Any) -> None:
    """For programs: one JSON value on stdout, without colours or folding."""
    sys.stdout.write(json.dumps(data) + "\n")


def fail(message: str, code: int = 1) -> NoReturn:
    err.print(f"[red]error:[/] {plain(message)}", soft_wrap=True)
    raise typer.Exit(code)


@contextmanager
def explained() -> Iterator[None]:
    """Our own errors end the command with one line, not with a stack trace."""
    try:
        yield
    except ArenaError as error:
        fail(str(error))


def race_table(
    standings: dict[str, Any], title: str | None = None, bound: float | None = None
) -> Table:
    """The schedulers, fastest first; all but the makespan are averages per task. With the cluster
    bound every makespan is shown as a multiple of it as well."""
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("scheduler")
    for heading in (
        "results",
        "time ms",
        "wait s",
        "makespan s",
        "energy J",
        "cost µ$",
        "vs oracle",
    ):
        table.add_column(heading, justify="right")
    for name, row in sorted(standings.items(), key=lambda item: item[1]["avg_time"]):
        ratio = row["vs_oracle"]
        table.add_row(
            name,
            f"{row['results']:,}",
            f"{row['avg_time'] * 1e3:.1f}",
            f"{row['avg_wait']:.3f}",
            f"{row['makespan']:,.1f}"
            + (f" ({row['makespan'] / bound:.2f} × bound)" if bound else ""),
            f"{row['avg_energy']:.2f}",
            f"{row['avg_cost'] * 1e6:.2f}",
            "–" if ratio is None else f"{ratio:.3f}",
        )
    return table


def coloured(state: str) -> str:
    return f"[{STATE_COLOURS.get(state, 'white')}]{state}[/]"


def ago(seconds: float) -> str:
    past = max(time.time() - seconds, 0)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if past >= size:
            return f"{past / size:.0f} {unit} ago"
    return f"{past:.0f} s ago"


def clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%H:%M:%S")


def plain(text: str) -> str:
    return text.replace("[", r"\[")
