"""`hybrid run fork` and `hybrid run compare`"""

from __future__ import annotations

from typing import Annotated, Any

from rich.markup import escape
from typer import Argument, Option

from services.cli import shell_completion
from services.cli.client import connect
from services.cli.options import DataDir, Json, Url, Wait
from services.cli.output import coloured, err, fail, out, print_json
from services.cli.tables import FittedTable, Heading, right, table

RunId = Annotated[str, Argument(help="The run's id.", autocompletion=shell_completion.runs)]
LEFT_OUT_FIRST = ("failed", "Δ cost", "Δ energy", "wait s", "first different")


def fork(
    run: RunId,
    at: Annotated[int, Option(min=0, help="The first task that the fork decides itself.")],
    change: Annotated[
        list[str] | None,
        Option("--set", metavar="PATH=VALUE", help="A field of the spec; repeat it for more."),
    ] = None,
    take_over: Annotated[
        list[str] | None,
        Option(
            metavar="NEW=OLD",
            help="Add a scheduler that continues with the cluster of one of the run's schedulers.",
        ),
    ] = None,
    wait: Wait = False,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Fork a run at a task, with something changed: what if?

    The fork shares everything before that task. With --wait, both are compared from there on.
    Values are YAML; `--set cluster.devices.2=null` removes an entry, and the number behind the last
    one adds one. A device that is removed finishes what it was given; a new one is idle.

    Examples: `hybrid run fork 1117-101500-ab12 --at 5000 --set cluster.devices.1.count=5 --wait`,
    `hybrid run fork 1117-101500-ab12 --at 5000 --set workload.arrival_rate=20`,
    `hybrid run fork 1117-101500-ab12 --at 5000 --set schedulers=greedy,eft --take-over eft=greedy`
    """
    from services.cli.runs.completion import suspended_lines, wait_for

    taken_over = _pairs(take_over or [])
    gateway = connect(url, data_dir)
    request = {"at": at, "changes": change or [], "takes_over": taken_over}
    started = gateway.post(f"/api/runs/{run}/fork", request)
    name, begins = started["run"], started["fork"]["at"]
    if begins != at:
        err.print(f"task {at} is decided together with those before it: forked at task {begins}")
    if not wait:
        if json:
            print_json(started)
            return
        err.print(f"run [bold]{name}[/], forked at task {begins}, is {coloured(started['state'])}")
        err.print(f"  compare them: hybrid run compare {name}")
        out.print(name)
        return
    tasks = started["spec"]["tasks"]
    if tasks is None:
        fail(f"--wait needs a run that ends: run {name} is endless; use `hybrid run compare`")
    done = wait_for(gateway, name, tasks, quiet=json)
    comparison = gateway.get(f"/api/runs/{name}/comparison")
    if json:
        print_json({"run": done, "comparison": comparison})
        return
    out.print(comparison_table(comparison))
    for line in suspended_lines(done):
        err.print(line)


def compare(
    run: RunId,
    other: Annotated[
        str | None,
        Argument(help="Another run's id; none: the one that it was forked from."),
    ] = None,
    first: Annotated[
        int | None, Option("--from", min=0, help="The first task; none: where the fork begins.")
    ] = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Compare a fork with its parent, or any two runs, from a task on.

    Examples: `hybrid run compare 1117-102000-cd34`,
    `hybrid run compare 1117-102000-cd34 1117-101500-ab12 --from 2000 --json`
    """
    comparison = connect(url, data_dir).get(f"/api/runs/{run}/comparison", other=other, first=first)
    if json:
        print_json(comparison)
    elif comparison["end"] == comparison["first"]:
        err.print("there is no task yet that every scheduler of both runs has a result of")
    else:
        out.print(comparison_table(comparison))


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        new, equals, old = text.partition("=")
        if not (new and equals and old):
            fail(f"--take-over: {text!r} is not NEW=OLD, such as eft=greedy")
        pairs[new.strip()] = old.strip()
    return pairs


def comparison_table(comparison: dict[str, Any]) -> FittedTable:
    """The run and the other one, scheduler by scheduler."""
    first, end = comparison["first"], comparison["end"]
    title = (
        f"run {comparison['run']} compared with {comparison['other']}, tasks {first:,} to "
        f"{end - 1:,}"
    )
    names = ("turnaround s", "was", "Δ", "p95 s", "was", "Δ", "wait s", "Δ energy", "Δ cost")
    headings = [Heading("scheduler"), *right(*names, "failed", "different", "first different")]
    rows = [_row(name, each) for name, each in _by_turnaround(comparison["schedulers"])]
    caption = "Δ: this run over the other one; different: tasks that finish at another time"
    return table(headings, rows, title=title, caption=caption, left_out_first=LEFT_OUT_FIRST)


def _by_turnaround(schedulers: dict[str, Any]) -> list[tuple[str, Any]]:
    def turnaround(item: tuple[str, Any]) -> float:
        figures = item[1]["figures"] or item[1]["other"]
        return float(figures["avg_turnaround"])

    return sorted(schedulers.items(), key=turnaround)


def _row(name: str, each: dict[str, Any]) -> list[str]:
    new, old = each["figures"], each["other"]
    different = each["different"]
    share = "–" if different is None else f"{different:,}"
    begins = each["first_different"]

    def figure(source: dict[str, Any] | None, key: str) -> str:
        return "–" if source is None else f"{source[key]:,.3f}"

    return [
        escape(name),
        *(figure(new, "avg_turnaround"), figure(old, "avg_turnaround")),
        _change(new, old, "avg_turnaround"),
        *(figure(new, "turnaround_p95"), figure(old, "turnaround_p95")),
        _change(new, old, "turnaround_p95"),
        figure(new, "avg_wait"),
        _change(new, old, "avg_energy"),
        _change(new, old, "avg_cost"),
        "–" if new is None else f"{new['failed']:,}",
        share,
        "–" if begins is None else f"{begins:,}",
    ]


def _change(new: dict[str, Any] | None, old: dict[str, Any] | None, key: str) -> str:
    if new is None or old is None or not old[key]:
        return "–"
    ratio = new[key] / old[key] - 1
    if new[key] == old[key]:
        return "same"
    colour = "green" if ratio < 0 else "red"
    return f"[{colour}]{ratio:+.1%}[/]"
