"""`hybrid profile`, and what `--cluster` makes of its file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from services.cli.options import Json
from services.cli.output import err, explained, out, plain, print_json
from services.lab.experiment import merged
from services.lab.profile import (
    Constant,
    Product,
    Profile,
    ProfileError,
    Transfer,
    calibrated,
    load,
)
from services.lab.writing import replace_text

DEFAULT_OUT = Path("hardware_profile.json")

ClusterOption = Annotated[
    Path | None,
    typer.Option(
        "--cluster",
        help="A file of `hybrid profile`: that machine's physics. Fields of --spec win over it.",
        show_default=False,
    ),
]


def profile(
    output: Annotated[Path, typer.Option("--out", help="Where to write it.")] = DEFAULT_OUT,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.1, max=3600, help="How long to measure, about (default 20).", show_default=False
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sizes, 3 s.")] = False,
    json: Json = False,
) -> None:
    """Measure this machine: matrix products, memory, the GPU if torch finds one.

    Close other programs first: the file says when repetitions differ too much. A run takes its
    physics from it with `--cluster`; fields of a spec file win over those of the profile.

    Examples: `hybrid profile`, `hybrid profile --quick --out laptop.json`,
    `hybrid run start --cluster hardware_profile.json --tasks 10000`
    """
    # Only here: every other command would pay for loading it.
    from services.lab.profiler import Effort, measure

    effort = Effort.quick(seconds or 3) if quick else Effort(seconds or 20)
    with explained():
        _check_writable(output)
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=err,
            transient=True,
            disable=json or not err.is_terminal,
        ) as bar:
            task = bar.add_task("", total=1.0)
            found = measure(
                effort, lambda what, share: bar.update(task, description=what, completed=share)
            )
        existed = output.exists()
        try:
            replace_text(output, found.model_dump_json(by_alias=True, indent=2) + "\n")
        except OSError as error:
            raise ProfileError(f"{output} cannot be written: {error.strerror}") from None
    if json:
        print_json(found.model_dump(mode="json", by_alias=True))
    else:
        out.print(_table(found))
    say(found)
    err.print(f"{'overwrote' if existed else 'wrote'} {plain(str(output))}", soft_wrap=True)


def over_profile(cluster: Path | None, data: dict[str, Any]) -> dict[str, Any]:
    """A spec's fields over those that the profile gives; says what was measured and assumed."""
    if cluster is None:
        return data
    found = load(cluster)
    say(found, given=data)
    return merged(calibrated(found), data)


def say(found: Profile, given: dict[str, Any] | None = None) -> None:
    """A line each: measured, assumed, what the spec says otherwise, and every doubt."""
    spec = given or {}

    def is_given(constant: Constant) -> bool:
        return constant.name in spec.get(constant.part, {})

    own = [constant for constant in found.calibration if not is_given(constant)]
    lines = {
        "measured": [f"{c.name} {c.value:g} ({c.why})" for c in own if c.measured],
        "assumed": [f"{c.name} {c.value:g}" for c in own if not c.measured],
        "from the spec": [c.name for c in found.calibration if is_given(c)],
    }
    for what, listed in lines.items():
        if listed:
            err.print(f"{what}: {plain(', '.join(listed))}", soft_wrap=True)
    if found.gpu is None:
        err.print("no GPU was measured: its speed-up, memory and transfer stay assumed")
    for warning in found.warnings:
        err.print(f"[yellow]warning:[/] {plain(warning)}", soft_wrap=True)


def _table(found: Profile) -> Table:
    machine = found.machine
    title = f"{machine.cpu}, {machine.threads} threads, {machine.blas}"
    if found.gpu is not None:
        title += f"; {found.gpu.count} × {found.gpu.name}, {found.gpu.memory_mb:,.0f} MB"
    table = Table(title=plain(title), title_justify="left", header_style="bold")
    table.add_column("measured")
    for heading in ("median ms", "spread", "repetitions", "rate"):
        table.add_column(heading, justify="right")

    for what, timing in _rows(found):
        if isinstance(timing, Product):
            rate = f"{timing.gflop_s:,.1f} GFLOP/s"
        else:
            rate = f"{timing.mb_s:,.0f} MB/s"
        median = f"{timing.median_s * 1e3:.3f}"
        table.add_row(what, median, f"{timing.spread:.1%}", str(timing.repetitions), rate)
    return table


def _rows(found: Profile) -> Iterator[tuple[str, Product | Transfer]]:
    for product in found.cpu.products:
        yield f"CPU, product of edge {product.edge}", product
    yield "memory, copy", found.cpu.copy_
    yield "memory, add", found.cpu.add
    if found.gpu is None:
        return
    for product in found.gpu.products:
        yield f"GPU, product of edge {product.edge}", product
    for transfer in found.gpu.to_device:
        yield f"to the GPU, {transfer.mb:g} MB", transfer
    for transfer in found.gpu.to_host:
        yield f"from the GPU, {transfer.mb:g} MB", transfer


def _check_writable(path: Path) -> None:
    """Before the measuring, which takes a while."""
    if path.is_dir():
        raise ProfileError(f"{path} is a folder: give --out a file")
    if not os.access(path.parent, os.W_OK):
        raise ProfileError(f"{path} cannot be written: give --out another place")
