"""`hybrid profile`, and `--cluster`, which reads the file that it writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape
from rich.progress import BarColumn, TimeElapsedColumn
from typer import Option

from services.cli.options import Json
from services.cli.output import err, out, print_json, progress
from services.cli.tables import FittedTable, right, table
from services.lab.atomic_write import replace_text
from services.lab.experiments.declaration import merged
from services.lab.platforms.hardware_profile import import_profile
from services.lab.profiling.hardware_profile import (
    Constant,
    Product,
    Profile,
    ProfileError,
    Transfer,
    calibrated,
    load,
)

DEFAULT_OUT = Path("hardware_profile.json")


def profile(
    output: Annotated[Path, Option("--out", help="Where to write it.")] = DEFAULT_OUT,
    seconds: Annotated[
        float | None, Option(min=0.1, max=3600, help="How long to measure, about (default 20).")
    ] = None,
    quick: Annotated[bool, Option("--quick", help="Fewer sizes, 3 s.")] = False,
    real: Annotated[
        bool, Option("--real", help="Measure the kernels of real runs on every device (60 s).")
    ] = False,
    devices: Annotated[
        Path | None,
        Option(metavar="FILE", help="With --real: measure the devices of this platform file."),
    ] = None,
    json: Json = False,
) -> None:
    """Measure this machine: matrix products, memory, the GPU if torch finds one.

    Close other programs first: the file says when repetitions differ too much. `--cluster` gives a
    run this machine's physics; fields of a spec file take precedence over those of the profile.
    A file that ends in .yaml is written as a platform file, for `--platform`. With --real the file
    is a platform of measured kernels (machine.yaml), for runs with `execution: real` and for
    simulations of them.

    Examples: `hybrid profile`, `hybrid profile --quick --out laptop.json`,
    `hybrid profile --out laptop.yaml`,
    `hybrid run start --cluster hardware_profile.json --tasks 10000`,
    `hybrid profile --real --out machine.yaml`
    """
    if devices is not None and not real:
        raise ProfileError("--devices is for --real")
    if real:
        from services.cli.calibration import profile_real

        if output == DEFAULT_OUT:
            output = Path("machine.yaml")
        _check_writable(output)
        profile_real(output, devices, seconds or (10 if quick else 60), quick=quick, json=json)
        return
    # Imported here because it is large, and `hybrid run start` imports this module too.
    from services.lab.profiling.measure import Effort, measure

    effort = Effort.quick(seconds or 3) if quick else Effort(seconds or 20)
    _check_writable(output)
    columns = "{task.description}", BarColumn(), TimeElapsedColumn()
    with progress(*columns, quiet=json, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        measured = measure(
            effort, lambda what, share: bar.update(task, description=what, completed=share)
        )
    existed = output.exists()
    try:
        _write(measured, output)
    except OSError as error:
        raise ProfileError(f"{output} cannot be written: {error.strerror}") from None
    if json:
        print_json(measured.model_dump(mode="json", by_alias=True))
    else:
        out.print(_table(measured))
    show_calibration(measured)
    err.print(f"{'overwrote' if existed else 'wrote'} {escape(str(output))}", soft_wrap=True)


def _write(profile: Profile, output: Path) -> None:
    if output.suffix in (".yaml", ".yml"):
        import_profile(profile, output.stem).write(output)
    else:
        replace_text(output, profile.model_dump_json(by_alias=True, indent=2) + "\n")


def merge_profile(cluster: Path | None, spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with the profile's values for the fields that it lacks."""
    if cluster is None:
        return spec
    machine = load(cluster)
    show_calibration(machine, spec)
    return merged(calibrated(machine), spec)


def show_calibration(profile: Profile, spec: dict[str, Any] | None = None) -> None:
    """On stderr: which constants were measured, assumed or replaced by the spec, and warnings."""
    fields = spec or {}

    def in_spec(constant: Constant) -> bool:
        return constant.name in fields.get(constant.part, {})

    own = [constant for constant in profile.calibration if not in_spec(constant)]
    lines = {
        "measured": [f"{c.name} {c.value:g} ({c.why})" for c in own if c.measured],
        "assumed": [f"{c.name} {c.value:g}" for c in own if not c.measured],
        "from the spec": [c.name for c in profile.calibration if in_spec(c)],
    }
    for source, constants in lines.items():
        if constants:
            err.print(f"{source}: {escape(', '.join(constants))}", soft_wrap=True)
    if profile.gpu is None:
        err.print("no GPU was measured: its speed-up, memory and transfer stay assumed")
    for warning in profile.warnings:
        err.print(f"[yellow]warning:[/] {escape(warning)}", soft_wrap=True)


def _table(profile: Profile) -> FittedTable:
    machine = profile.machine
    title = f"{machine.cpu}, {machine.threads} threads, {machine.blas}"
    if profile.gpu is not None:
        title += f"; {profile.gpu.count} × {profile.gpu.name}, {profile.gpu.memory_mb:,.0f} MB"
    headings = ["measured", *right("median ms", "spread", "repetitions", "rate")]
    return table(headings, (_row(*timing) for timing in _timings(profile)), title=escape(title))


def _timings(profile: Profile) -> Iterator[tuple[str, Product | Transfer]]:
    cpu, gpu = profile.cpu, profile.gpu
    yield from ((f"CPU, product of edge {product.edge}", product) for product in cpu.products)
    yield from (("memory, copy", cpu.copy_), ("memory, add", cpu.add))
    if gpu is not None:
        yield from ((f"GPU, product of edge {product.edge}", product) for product in gpu.products)
        yield from ((f"to the GPU, {transfer.mb:g} MB", transfer) for transfer in gpu.to_device)
        yield from ((f"from the GPU, {transfer.mb:g} MB", transfer) for transfer in gpu.to_host)


def _row(what: str, timing: Product | Transfer) -> tuple[str, ...]:
    if isinstance(timing, Product):
        rate = f"{timing.gflop_s:,.1f} GFLOP/s"
    else:
        rate = f"{timing.mb_s:,.0f} MB/s"
    median = f"{timing.median_s * 1e3:.3f}"
    return what, median, f"{timing.spread:.1%}", str(timing.repetitions), rate


def _check_writable(path: Path) -> None:
    """Before the measurement, which takes a while."""
    if path.is_dir():
        raise ProfileError(f"{path} is a folder: give --out a file")
    if not os.access(path.parent, os.W_OK):
        raise ProfileError(f"{path} cannot be written: give --out another place")
