"""Output for people and programs: data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

STATE_COLOURS = {"running": "green", "paused": "yellow", "stopped": "red", "completed": "cyan"}


def print_json(data: Any) -> None:
    """For programs: one JSON value on stdout, without colours or folding."""
    sys.stdout.write(json.dumps(data) + "\n")


def fail(message: str, code: int = 1) -> NoReturn:
    err.print(f"[red]error:[/] {escape(message)}", soft_wrap=True)
    raise typer.Exit(code)


def table(headings: Iterable[str | Column], rows: Iterable[Iterable[str]], **style: Any) -> Table:
    made = Table(*headings, title_justify="left", **style)
    for row in rows:
        made.add_row(*row)
    return made


def right(*headings: str) -> list[str | Column]:
    return [Column(heading, justify="right") for heading in headings]


def batch_table(rows: list[dict[str, Any]], columns: Iterable[str]) -> Table:
    cells = ([cell(row[column], 5) for column in columns] for row in rows)
    return table(columns, cells, box=None, header_style="dim")


def cell(value: object, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else escape(str(value))


def race_table(
    standings: dict[str, Any], title: str | None = None, bound: float | None = None
) -> Table:
    """The schedulers, fastest first; all but the makespan are averages per task. With the cluster
    bound, every makespan is also shown as a multiple of it."""

    def row(name: str, result: dict[str, Any]) -> Iterator[str]:
        makespan, ratio = result["makespan"], result["vs_oracle"]
        yield name
        yield f"{result['results']:,}"
        yield f"{result['avg_time'] * 1e3:.1f}"
        yield f"{result['avg_wait']:.3f}"
        yield f"{makespan:,.1f}" + (f" ({makespan / bound:.2f} × bound)" if bound else "")
        yield f"{result['avg_energy']:.2f}"
        yield f"{result['avg_cost'] * 1e6:.2f}"
        yield "–" if ratio is None else f"{ratio:.3f}"

    figures = "results", "time ms", "wait s", "makespan s", "energy J", "cost µ$", "vs oracle"
    fastest_first = sorted(standings.items(), key=lambda item: item[1]["avg_time"])
    return table(
        ["scheduler", *right(*figures)], (row(*item) for item in fastest_first), title=title
    )


def progress(*columns: str | ProgressColumn, quiet: bool, transient: bool = False) -> Progress:
    """On a terminal only."""
    from rich.progress import Progress

    hidden = quiet or not err.is_terminal
    return Progress(*columns, console=err, disable=hidden, transient=transient)


def coloured(state: str) -> str:
    return f"[{STATE_COLOURS.get(state, 'white')}]{state}[/]"


def ago(seconds: float) -> str:
    past = max(time.time() - seconds, 0)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if past >= size:
            return f"{past / size:.0f} {unit} ago"
    return f"{past:.0f} s ago"
