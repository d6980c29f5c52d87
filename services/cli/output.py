"""Output for people and programs: data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.table import Column, Table

from shared.domain.schedulers import REFERENCES

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

RANKED_BY = "by mean turnaround (wait and execution)"
REFERENCE = "ref: a reference, which does not compete"
CHARGED = "a failed task is charged as if it had run on the slowest device type that can run it"
# Columns of the race that a narrow terminal goes without.
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
WIDEST = 1000

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


@dataclass(frozen=True, slots=True)
class RaceTable:
    """A table that leaves out columns, the least important first, where it does not fit."""

    rows: list[dict[str, str]]  # by heading
    style: dict[str, Any]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        headings = list(self.rows[0]) if self.rows else ["scheduler"]
        for heading in (None, *LEFT_OUT_FIRST):
            headings = [each for each in headings if each != heading]
            made = self._table(headings)
            if made.__rich_measure__(console, options.update(width=WIDEST)).maximum <= (
                options.max_width
            ):
                break
        yield made

    def _table(self, headings: list[str]) -> Table:
        columns = [headings[0], *right(*headings[1:])]
        cells = ([row[heading] for heading in headings] for row in self.rows)
        return table(columns, cells, **self.style)


# Execution times of tasks that take longer are shown in seconds.
LONG_TASK_S = 100


def race_table(
    standings: dict[str, Any], title: str | None = None, bound: float | None = None
) -> RaceTable:
    """The schedulers by mean turnaround. Times, energy and cost are means per task, but for the
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
    style = {"title": title, "caption": "; ".join(notes), "caption_justify": "left"}
    return RaceTable([row(*item) for item in shortest_first], style)


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
