"""Output for people and programs: data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.markup import escape

from services.cli.tables import FittedTable, Heading, OutputConsole, right, table
from shared.domain.schedulers import REFERENCES

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

out = OutputConsole(highlight=False)
err = OutputConsole(stderr=True, highlight=False)

RANKED_BY = "by mean turnaround (wait and execution)"
REFERENCE = "ref: a reference, which does not compete"
CHARGED = "a failed task is charged as if it had run on the slowest device type that can run it"
# Columns of the race that are left out first on a narrow terminal.
LEFT_OUT_FIRST = (
    "results",
    "makespan s",
    "energy J",
    "cost µ$",
    "with idle J",
    "vs oracle",
    "× bound",
    "p95 s",
    "wait s",
)

STATE_COLOURS = {"running": "green", "paused": "yellow", "stopped": "red", "completed": "cyan"}


def print_json(data: Any) -> None:
    """For programs: one JSON value on stdout, without colours or folding."""
    sys.stdout.write(json.dumps(data) + "\n")


def fail(message: str, code: int = 1) -> NoReturn:
    err.print(f"[red]error:[/] {escape(message)}", soft_wrap=True)
    raise typer.Exit(code)


def print_fields(fields: Iterable[tuple[str, str]]) -> None:
    """A name and its value per line; long values are not wrapped, so that they can be copied."""
    pairs = list(fields)
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        out.print(f"[dim]{escape(name):<{width}}[/]  {escape(value)}", soft_wrap=True)


def batch_table(rows: list[dict[str, Any]], columns: Iterable[str]) -> FittedTable:
    headings = list(columns)
    cells = ([cell(row[column], 5) for column in headings] for row in rows)
    return table(headings, cells, box=None)


def cell(value: object, digits: int) -> str:
    """A value of a table: a float has its significant digits on a terminal, all of them in a
    pipe."""
    if isinstance(value, float) and out.is_terminal:
        return number(value, digits)
    return escape(str(value))


def number(value: float, digits: int) -> str:
    """To significant digits, but never without a digit before the point."""
    return f"{value:,.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


# Execution times of tasks that take longer are shown in seconds.
LONG_TASK_S = 100


def race_table(
    standings: dict[str, Any], title: str | None = None, bound: float | None = None
) -> FittedTable:
    """The schedulers by mean turnaround. Times, energy and cost are means per task, except for the
    95th percentile of the turnaround and the makespan. With the bound of the run, each makespan is
    also shown as a multiple of it; idle energy is shown where devices have idle power."""
    idle = any(result["idle_energy"] > 0 for result in standings.values())
    long = all(result["avg_time"] >= LONG_TASK_S for result in standings.values())
    time_column, per_second, digits = ("time s", 1, 1) if long else ("time ms", 1e3, 3)

    def row(name: str, result: dict[str, Any]) -> dict[str, str]:
        ratio, failed = result["vs_oracle"], f"{result['failed']:,}"
        share = f"[red]{failed} ({result['failed_share']:.1%})[/]"
        makespan, energy = result["makespan"], result["avg_energy"]
        return {
            "scheduler": f"{name} [dim]ref[/]" if name in REFERENCES else name,
            "results": f"{result['results']:,}",
            "failed": share if result["failed"] else failed,
            "turnaround s": f"{result['avg_turnaround']:,.{digits}f}",
            "wait s": f"{result['avg_wait']:,.{digits}f}",
            "p95 s": f"{result['turnaround_p95']:,.{digits}f}",
            time_column: f"{result['avg_time'] * per_second:,.1f}",
            "vs oracle": "–" if ratio is None else f"{ratio:.3f}",
            "makespan s": f"{makespan:,.1f}",
            **({"× bound": f"{makespan / bound:.2f}"} if bound else {}),
            "energy J": f"{energy:.2f}",
            **({"with idle J": f"{energy + result['avg_idle_energy']:.2f}"} if idle else {}),
            "cost µ$": f"{result['avg_cost'] * 1e6:.2f}",
        }

    shortest_first = sorted(standings.items(), key=lambda item: item[1]["avg_turnaround"])
    notes = [RANKED_BY]
    if any(name in REFERENCES for name in standings):
        notes.append(REFERENCE)
    if any(result["failed"] for result in standings.values()):
        notes.append(CHARGED)
    rows = [row(*item) for item in shortest_first]
    first, *figures = rows[0] if rows else ["scheduler"]
    return table(
        [Heading(first), *right(*figures)],
        (each.values() for each in rows),
        title=title,
        caption="; ".join(notes),
        left_out_first=LEFT_OUT_FIRST,
    )


def progress(*columns: str | ProgressColumn, quiet: bool, transient: bool = False) -> Progress:
    """A progress bar, shown on a terminal only."""
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
