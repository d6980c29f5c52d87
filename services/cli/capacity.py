"""`hybrid capacity`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from typer import Option

from services.cli.client import connect
from services.cli.interrupts import INTERRUPTED
from services.cli.options import DataDir, Json, Platform, Preset, Seed, SpecFile, Url
from services.cli.output import err, fail, number, out, print_json
from services.cli.tables import Heading, right, table

if TYPE_CHECKING:
    from services.lab.capacity.capacity import CapacitySearch, Origin, Trial
    from services.lab.capacity.search import Answer
    from shared.runtime.gateway_client import GatewayClient


def capacity(
    vary: Annotated[str, Option(metavar="PATH=FIRST..LAST", help="The field of the spec to vary.")],
    target: Annotated[
        str, Option(metavar="FIGURE<=NUMBER", help="The figure to reach: p95_turnaround<=2.")
    ],
    scheduler: Annotated[str, Option(help="The scheduler whose figures count.")] = "eft",
    spec: SpecFile = None,
    tasks: Annotated[int | None, Option(help="How many tasks a run has.")] = None,
    seed: Seed = None,
    preset: Preset = None,
    platform: Platform = None,
    run: Annotated[str | None, Option(help="Vary this run, instead of a spec.")] = None,
    at: Annotated[int, Option(min=0, help="With --run: from this task on.")] = 0,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Find how much of something a target needs, such as GPUs.

    Bisection: about log2 of the values are tried, each with a run of the arena. It assumes that
    more is never worse, checks this at the neighbours of the answer, and reports contradictions.
    Figures: mean_turnaround, p50_turnaround, p95_turnaround, p99_turnaround, mean_wait, mean_time,
    mean_energy, mean_cost, makespan, failed.

    After Ctrl-C the same command continues with the runs that exist already.

    Examples: `hybrid capacity --vary "cluster.gpus=1..64" --target "p95_turnaround<=2" --tasks
    5000`,
    `hybrid capacity --spec my.yaml --vary "cluster.devices.1.count=1..64" --target
    "p95_turnaround<=2" --scheduler eft`,
    `hybrid capacity --run 1117-101500-ab12 --at 5000 --vary "workload.arrival_rate=1..100" --target
    "mean_wait<=0.5"`
    """
    # Imported here because numpy and pydantic would slow down other commands' help.
    from services.lab.capacity.capacity import CapacitySearch
    from services.lab.capacity.question import Target, Variation

    goal, variation = Target.parse(target), Variation.parse(vary)
    if run is not None and (spec or tasks or preset or platform or seed is not None):
        fail("--run has a spec already: leave out --spec, --tasks, --seed, --preset and --platform")
    if run is None and at:
        fail("--at needs --run: the run that is varied from that task on")
    with connect(url, data_dir) as gateway:
        origin = _origin_of_run(gateway, run, at) if run else None
        if origin is None:
            origin = _origin_of_spec(spec, tasks, seed, preset, platform)
        shown = (lambda trial: None) if json else _show
        search = CapacitySearch(gateway, origin, variation, goal, scheduler, shown)
        if not json:
            err.print(f"{variation.path}: {len(variation.values):,} values; target: {goal}")
        try:
            answer = search.answer()
        except KeyboardInterrupt:
            err.print("interrupted: the same command continues with the runs that exist already")
            raise typer.Exit(INTERRUPTED) from None
    if json:
        print_json(_summary(search, answer, str(goal), variation.path, len(variation.values)))
    else:
        _print(search, answer, str(goal), variation.path, len(variation.values))
    if answer.value is None:
        raise typer.Exit(1)


def _origin_of_spec(
    spec: SpecFile, tasks: int | None, seed: Seed, preset: Preset, platform: Platform
) -> Origin:
    from services.cli.runs.spec import spec_from
    from services.lab.capacity.capacity import Origin
    from shared.domain.spec import RunSpec

    return Origin(RunSpec.parse(spec_from(spec, tasks, "max", seed, preset, None, platform)))


def _origin_of_run(gateway: GatewayClient, run: str, at: int) -> Origin:
    from services.lab.capacity.capacity import Origin
    from shared.domain.spec import RunSpec

    return Origin(RunSpec.parse(gateway.get(f"/api/runs/{run}")["spec"]), run, at)


def _show(trial: Trial) -> None:
    outcome = "[green]met[/]" if trial.met else "[yellow]not met[/]"
    err.print(f"  {trial.value}: {number(trial.figure, 4)}, {outcome} (run {trial.run})")


def _print(search: CapacitySearch, answer: Answer, target: str, path: str, values: int) -> None:
    rows = [
        (str(each.value), number(each.figure, 5), "yes" if each.met else "no", each.run)
        for each in sorted(search.trials.values(), key=lambda each: each.value)
    ]
    headings = [*right(path, target.split()[0]), Heading("met"), Heading("run")]
    caption = (
        f"{len(rows)} of {values:,} values tried; assumed: the answer changes once in the range"
    )
    out.print(table(headings, rows, caption=caption))
    if answer.contradicting:
        err.print(
            f"[yellow]not monotone: {escape(', '.join(map(str, answer.contradicting)))} contradicts"
            " the assumption, so a value that was not tried may do as well; try them with `hybrid "
            "run start`[/]"
        )
    if answer.value is None:
        err.print(f"[red]no tried value meets {escape(target)}[/]")
    else:
        out.print(f"{path} = {answer.value} for {target}")


def _summary(
    search: CapacitySearch, answer: Answer, target: str, path: str, values: int
) -> dict[str, Any]:
    return {
        "path": path,
        "target": target,
        "answer": answer.value,
        "values": values,
        "monotone": answer.monotone,
        "contradicting": list(answer.contradicting),
        "tried": [
            {"value": each.value, "figure": each.figure, "met": each.met, "run": each.run}
            for each in sorted(search.trials.values(), key=lambda each: each.value)
        ],
    }
