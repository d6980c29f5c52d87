"""What `hybrid trace` shows of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Column, Table

from services.cli.output import err, out, plain
from services.lab.traces.report import Report
from services.lab.traces.summary import SAMPLE
from services.lab.traces.trace import FORMATS

LABELS = {
    "size": "size",
    "compute_intensity": "compute intensity",
    "memory_required": "memory, MB",
    "cpu_seconds": "seconds on the CPU",
    "gap": "seconds between arrivals",
}


def show_summary(found: dict[str, Any]) -> None:
    out.print(
        f"{plain(found['file'])}: {FORMATS[found['format']]}; [bold]{found['tasks']:,}[/] tasks"
    )
    out.print(_columns(found["columns"], found["tasks"]))
    if found["tasks"]:
        out.print(_distributions(found))
        _show_arrivals(found)


def _columns(columns: list[dict[str, Any]], tasks: int) -> Table:
    table = Table("task", "from the trace", "", Column("", overflow="fold"))
    for row in columns:
        remarks = [plain(row["note"])] if row["note"] else []
        if row["not_given"]:
            remarks.append(f"not given for {row['not_given']:,} of {tasks:,}")
        if row["limited"]:
            remarks.append(f"limited for {row['limited']:,} of {tasks:,}")
        kind = "[yellow]proxy[/]" if row["proxy"] else "as given"
        table.add_row(row["task"], plain(row["from"]), kind, "; ".join(remarks))
    return table


def _distributions(found: dict[str, Any]) -> Table:
    title = None if found["distributions_exact"] else f"median and p95 of a sample of {SAMPLE:,}"
    table = Table("", title=title, title_justify="left")
    for heading in ("min", "median", "p95", "max"):
        table.add_column(heading, justify="right")
    for name, values in found["distributions"].items():
        if values is not None:
            table.add_row(LABELS[name], *(f"{value:,.6g}" for value in values.values()))
    return table


def _show_arrivals(found: dict[str, Any]) -> None:
    arrivals, links = found["arrivals"], found["dependencies"]
    if arrivals["per_s"] is None:
        out.print("arrivals: all at once")
    else:
        out.print(f"arrivals: {arrivals['per_s']:.4g} per second over {arrivals['span_s']:,.6g} s")
    out.print(
        f"dependencies: {links['waiting_tasks']:,} tasks wait for {links['edges']:,} parents, "
        f"at most {links['most_parents']:,} each"
        if links["edges"]
        else "dependencies: none"
    )


def show_report(report: Report) -> None:
    """On stderr: what was left out, what was mended, what else to know."""
    for title, counts in (("skipped", report.skipped), ("mended", report.adjusted)):
        if counts:
            err.print(f"[yellow]{title}[/]: {counts.total():,}")
            for reason, count in counts.most_common():
                err.print(f"  {count:>9,}  {plain(reason)}", soft_wrap=True)
    for note in report.notes:
        err.print(f"note: {plain(note)}", soft_wrap=True)


class Bar:
    """How far a file is, and how many tasks have come out of it."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=1.0, tasks=0, waiting="")

    def update(self, share: float, tasks: int, waiting: str = "") -> None:
        said = f"[yellow]{plain(waiting)}[/]" if waiting else ""
        self._bar.update(self._task, completed=share, tasks=tasks, waiting=said)


@contextmanager
def progress(quiet: bool) -> Iterator[Bar]:
    bar = Progress(
        TextColumn("{task.fields[tasks]:,} tasks"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[waiting]}"),
        console=err,
        transient=True,
        disable=quiet or not err.is_terminal,
    )
    with bar:
        yield Bar(bar)
