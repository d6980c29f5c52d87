"""The tables and progress bar of `hybrid trace`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, TaskProgressColumn

from services.cli.output import err, number, out, progress
from services.cli.tables import FittedTable, prose, right, table
from services.lab.traces.problem_report import Report
from services.lab.traces.summary import SAMPLE
from services.lab.traces.trace import FORMATS

Update = Callable[..., None]  # share, tasks, reason for waiting

LABELS = {
    "size": "size",
    "compute_intensity": "compute intensity",
    "memory_required": "memory, MB",
    "width": "devices at once",
    "gap": "seconds between arrivals",
}


def show_summary(summary: dict[str, Any]) -> None:
    file, format = escape(summary["file"]), FORMATS[summary["format"]]
    out.print(f"{file}: {format}; [bold]{summary['tasks']:,}[/] tasks")
    out.print(_columns(summary["columns"], summary["tasks"]))
    if summary["tasks"]:
        out.print(_distributions(summary))
        _show_arrivals(summary)
        _show_load(summary)
        for warning in summary["warnings"]:
            err.print(f"[yellow]warning[/]: {escape(warning)}", soft_wrap=True)


def _columns(columns: list[dict[str, Any]], tasks: int) -> FittedTable:
    def cells(row: dict[str, Any]) -> tuple[str, ...]:
        remarks = [escape(row["note"])] if row["note"] else []
        if row["not_given"]:
            remarks.append(f"not given for {row['not_given']:,} of {tasks:,}")
        if row["limited"]:
            remarks.append(f"limited for {row['limited']:,} of {tasks:,}")
        kind = "[yellow]proxy[/]" if row["proxy"] else "as given"
        return row["task"], escape(row["from"]), kind, "; ".join(remarks)

    return table(("task", "from the trace", "", prose("remarks")), map(cells, columns))


def _distributions(summary: dict[str, Any]) -> FittedTable:
    title = None if summary["distributions_exact"] else f"median and p95 of a sample of {SAMPLE:,}"
    named = {LABELS[name]: values for name, values in summary["distributions"].items()}
    named |= {f"seconds on {name}": values for name, values in summary["seconds_on"].items()}
    rows = (
        (escape(name), *(number(value, 6) for value in values.values()))
        for name, values in named.items()
        if values is not None
    )
    return table(["", *right("min", "median", "p95", "max")], rows, title=title)


def _show_arrivals(summary: dict[str, Any]) -> None:
    arrivals, links = summary["arrivals"], summary["dependencies"]
    if arrivals["per_s"] is None:
        out.print("arrivals: all at once")
    else:
        out.print(f"arrivals: {arrivals['per_s']:.4g} per second over {arrivals['span_s']:,.6g} s")
    out.print(
        f"dependencies: {links['waiting_tasks']:,} tasks wait for {links['edges']:,} parents, "
        f"at most {links['most_parents']:,} each and {links['window']:,} tasks back"
        if links["edges"]
        else "dependencies: none"
    )


def _show_load(summary: dict[str, Any]) -> None:
    load, tasks, fit = summary["load"], summary["tasks"], summary["fit_accelerator_memory"]
    if load is not None:
        sample = " (of a sample of the tasks)" if load["sampled"] else ""
        out.print(
            f"offered load: [bold]{load['cluster']:.3g}[/] of the cluster; {load['busiest']:.3g} "
            f"in the {load['busiest_span_s']:,.4g} s in which nine of ten tasks arrive{sample}"
        )
        rows = (
            (escape(name), f"{each['tasks']:,.0f}", f"{each['load']:.3g}")
            for name, each in load["by_type"].items()
        )
        out.print(
            table(["", *right("tasks that are fastest there", "load if they ran there")], rows)
        )
    if fit < tasks:
        out.print(f"{tasks - fit:,} of {tasks:,} tasks fit the memory of no accelerator")


def show_report(report: Report) -> None:
    """On stderr: skipped records, adjusted values and notes."""
    for title, counts in (("skipped", report.skipped), ("adjusted", report.adjusted)):
        if counts:
            err.print(f"[yellow]{title}[/]: {counts.total():,}")
            for reason, count in counts.most_common():
                err.print(f"  {count:>9,}  {escape(reason)}", soft_wrap=True)
    for note in report.notes:
        err.print(f"note: {escape(note)}", soft_wrap=True)


@contextmanager
def trace_progress(quiet: bool) -> Iterator[Update]:
    """The share of the file that is read, and the number of tasks so far."""
    counts, waiting = "{task.fields[tasks]:,} tasks", "{task.fields[waiting]}"
    columns = counts, BarColumn(), TaskProgressColumn(), waiting
    with progress(*columns, quiet=quiet, transient=True) as bar:
        task = bar.add_task("", total=1.0, tasks=0, waiting="")

        def update(share: float, tasks: int, waiting: str = "") -> None:
            note = f"[yellow]{escape(waiting)}[/]" if waiting else ""
            bar.update(task, completed=share, tasks=tasks, waiting=note)

        yield update
