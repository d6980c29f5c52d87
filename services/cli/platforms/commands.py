"""`hybrid platform ...`"""

from __future__ import annotations

import math
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer import Argument, Option

from services.cli import shell_completion
from services.cli.options import DataDir, Json, Url
from services.cli.output import err, fail, out, print_json
from services.cli.tables import prose, right, table

app = typer.Typer(no_args_is_help=True)

NameOrFile = Annotated[
    str,
    Argument(
        metavar="NAME|FILE",
        help="A shipped platform, or a platform file.",
        autocompletion=shell_completion.platforms,
    ),
]


class Format(StrEnum):
    STARPU = "starpu"
    GAVEL = "gavel"
    CSV = "csv"
    PROFILE = "profile"
    ALIBABA = "alibaba"


@app.command("list")
def list_platforms(json: Json = False) -> None:
    """List the platforms that come with the arena.

    Example: `hybrid platform list`
    """
    from services.cli.platforms.description import describe
    from shared.platforms.platform_file import shipped

    described = [describe(platform) for platform in shipped().values()]
    if json:
        print_json(described)
        return
    rows = (
        (each["name"], _devices(each["types"]), escape(each["description"])) for each in described
    )
    out.print(table(("name", prose("devices"), prose("description")), rows))
    err.print("[dim]use one with `hybrid run start --platform NAME`, or your own file.yaml[/]")


@app.command()
def show(platform: NameOrFile, json: Json = False) -> None:
    """Show a platform: its device types, what was measured, and what is assumed.

    Examples: `hybrid platform show dgx`, `hybrid platform show mine.yaml --json`
    """
    from services.cli.platforms.description import describe
    from services.cli.platforms.option import platform_of
    from shared.domain.hardware.certificate import NO_CERTIFICATE
    from shared.platforms.certificate_file import find_certificate

    platform_file = platform_of(platform)
    certificate = find_certificate(platform, platform_file)
    described = describe(platform_file)
    described["certificate"] = certificate.model_dump() if certificate else None
    if json:
        print_json(described)
        return
    title = f"{described['name']}: {described['description']}"
    figures = right("count", "memory MB", "link MB/s", "speed", "watts", "idle W", "$/h")
    rows = (_type_row(each) for each in described["types"])
    out.print(table(["type", prose("nodes"), *figures], rows, title=escape(title)))
    _print_details(described)
    out.print(certificate.line if certificate else NO_CERTIFICATE, soft_wrap=True)


@app.command("import")
def import_platform(
    format: Annotated[Format, Argument(help="What the source is.")],
    source: Annotated[Path, Argument(help="The file, or StarPU's `sampling` folder.")],
    output: Annotated[Path, Option("--output", "-o", help="The platform file to write.")],
    name: Annotated[str | None, Option(help="Its name.", show_default="that of the file")] = None,
    count: Annotated[
        list[str] | None, Option(metavar="TYPE=N", help="Devices of a type. Repeatable.")
    ] = None,
    host: Annotated[str | None, Option(help="StarPU: the host, if the folder has several.")] = None,
    json: Json = False,
) -> None:
    """Make a platform file from measurements; prints what was taken, left out and assumed.

    Examples: `hybrid platform import starpu ~/.starpu/sampling --output node.yaml`,
    `hybrid platform import gavel simulation_throughputs.json -o gavel.yaml --count v100=16`,
    `hybrid platform import csv times.csv -o mine.yaml`,
    `hybrid platform import profile hardware_profile.json -o laptop.yaml`,
    `hybrid platform import alibaba openb_node_list_all_node.csv -o alibaba.yaml`
    """
    from shared.platforms.platform_file import PlatformFile

    _check_output(output)
    counts = _counts(count or [])
    imported = _import(format, source, name or output.stem, host)
    platform_file: PlatformFile = imported.with_counts(counts).write(output)
    account = {
        "took": imported.took,
        "left out": imported.left_out,
        "assumed": list(platform_file.assumed),
    }
    if json:
        print_json({"file": str(output), "name": platform_file.name, **account})
        return
    for title, lines in account.items():
        err.print(f"[bold]{title}[/]" if lines else f"[bold]{title}[/]: nothing")
        for line in lines:
            err.print(f"  {escape(line)}", soft_wrap=True)
    out.print(escape(str(output)), soft_wrap=True)


@app.command()
def check(platform: NameOrFile, json: Json = False) -> None:
    """Check a platform file, and how well its measured times predict sizes in between.

    Each measured size is left out in turn and predicted from the others of its curve: between two
    sizes by interpolation, at the first and last size by continuing the line.

    Examples: `hybrid platform check mine.yaml`, `hybrid platform check mine.yaml --json`
    """
    from services.cli.platforms.option import platform_of
    from services.lab.platforms.leave_one_out import by_kind, reproduction_error

    platform_file = platform_of(platform)
    kinds = by_kind(platform_file.times)
    worst = reproduction_error(platform_file.times)
    if json:
        print_json({"name": platform_file.name, "reproduction_error": worst, "kinds": kinds})
        return
    err.print(f"{escape(platform_file.name)}: no mistakes")
    if not platform_file.times:
        err.print("no measured times: tasks take what the formula of the physics says")
        return
    headings = right("points", "inside: median", "largest", "at the ends: median", "largest")
    rows = (
        (escape(kind["kind"]), str(kind["points"]), *map(_percent, kind["errors"]))
        for kind in kinds
    )
    out.print(table(["kind", *headings], rows, title="error of the prediction of a left-out size"))
    err.print(f"measured sizes are reproduced to within {worst:.1e}")


@app.command()
def refine(
    platform: Annotated[Path, Argument(help="The platform file to change.")],
    run: Annotated[
        list[str],
        Option(help="A real run on it. Repeatable.", autocompletion=shell_completion.runs),
    ],
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Add the task times of real runs to a platform's measured ones.

    Each result counts like one measurement of the nearest size of its kind and device. A run must
    be added once only. The platform's certificate is void then: validate it again.

    Example: `hybrid platform refine machine.yaml --run 1118-081502-6a1f`
    """
    from services.cli.settings import settings_behind_gateway
    from services.lab.calibration.refine import refined, results_of_run
    from shared.platforms.platform_file import load
    from shared.store.client import Store

    platform_file = load(platform)
    store = Store(settings_behind_gateway(url, data_dir))
    results = [result for each in run for result in results_of_run(store, each)]
    if not results:
        fail(f"no result of a real run in {', '.join(run)}")
    imported, changed = refined(platform_file, results)
    imported.write(platform)
    if json:
        print_json({"file": str(platform), "results": len(results), "curves": changed})
        return
    rows = (
        (each["kind"], each["type"], str(each["results"]), f"{each['ratio']:.3f}")
        for each in changed
    )
    headings = ["kind", "device", *right("results", "real / measured before")]
    out.print(table(headings, rows))
    err.print(f"wrote {escape(str(platform))}", soft_wrap=True)


def _import(format: Format, source: Path, name: str, host: str | None) -> Any:
    if host is not None and format is not Format.STARPU:
        fail(f"--host is for StarPU, not for {format}")
    if format is Format.STARPU:
        from services.lab.platforms.starpu import import_starpu

        return import_starpu(source, name, host)
    if format is Format.GAVEL:
        from services.lab.platforms.gavel import import_gavel

        return import_gavel(source, name)
    if format is Format.PROFILE:
        from services.lab.platforms.hardware_profile import import_profile
        from services.lab.profiling.hardware_profile import load

        return import_profile(load(source), name)
    if format is Format.ALIBABA:
        from services.lab.platforms.alibaba import import_alibaba

        return import_alibaba(source, name)
    from services.lab.platforms.times_csv import import_csv

    return import_csv(source, name)


def _counts(words: list[str]) -> dict[str, int]:
    counts = {}
    for word in words:
        name, _, number = word.partition("=")
        if not (name and number.isdecimal() and int(number) > 0):
            fail(f"--count {word}: expected TYPE=NUMBER, such as v100=4")
        counts[name] = int(number)
    return counts


def _check_output(path: Path) -> None:
    if path.suffix not in (".yaml", ".yml"):
        fail(f"--output {path}: a platform file ends in .yaml")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        fail(f"--output {path}: cannot be written there")


def _devices(types: list[dict[str, Any]]) -> str:
    return ", ".join(f"{each['count']} {escape(each['type'])}" for each in types)


def _type_row(each: dict[str, Any]) -> tuple[str, ...]:
    low, high = each["speed"]
    speed = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    # An unlimited value needs no mark.
    marked = {
        name: "*" if name in each["assumed"] and each[name] is not None else "" for name in each
    }
    return (
        escape(each["type"]),
        escape(", ".join(each["nodes"])),
        f"{each['count']:,}",
        _limit(each["memory_mb"]) + marked["memory_mb"],
        _limit(each["bandwidth_mb_s"]) + marked["bandwidth_mb_s"],
        "table" if each["measured"] else speed + marked["speed"],
        f"{each['watts']:g}{marked['watts']}",
        f"{each['idle_watts']:g}{marked['idle_watts']}",
        f"{each['dollars_per_s'] * 3600:.3g}{marked['dollars_per_s']}",
    )


def _limit(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _percent(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.1%}"


def _print_details(described: dict[str, Any]) -> None:
    out.print(
        "* not in the file: the default. Speed: from intensity 0 to 1, or in the table of times.",
        style="dim",
    )
    measured = described["measured"]
    if measured:
        out.print(
            f"measured: {measured['curves']} curves of {measured['kinds']} kinds, "
            f"{measured['points']:,} points"
        )
    else:
        out.print("measured: no task times; they come from the formula of the physics")
    for title in ("sources", "assumed"):
        if described[title]:
            out.print(f"{title}:")
        for line in described[title]:
            out.print(f"  {escape(line)}", soft_wrap=True)
