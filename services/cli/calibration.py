"""`hybrid profile --real`: the kernels of real runs, measured on the devices of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from rich.markup import escape
from rich.progress import BarColumn, TimeElapsedColumn

from services.cli.output import err, fail, out, print_json, progress
from services.cli.tables import right, table
from services.lab.calibration.devices import devices_of, devices_of_this_machine
from services.lab.calibration.measure import Effort, measure
from services.lab.calibration.measured_platform import measured_platform, warnings
from shared.platforms.platform_file import PlatformFile, load


def profile_real(
    output: Path, devices: Path | None, seconds: float, *, quick: bool, json: bool
) -> None:
    if output.suffix not in (".yaml", ".yml"):
        fail(f"--out {output}: --real writes a platform file, so its name must end in .yaml")
    kinds = devices_of_this_machine() if devices is None else devices_of(load(devices))
    effort = Effort(seconds, sizes=3, longest_s=0.1) if quick else Effort(seconds)
    columns = "{task.description}", BarColumn(), TimeElapsedColumn()
    with progress(*columns, quiet=json, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        samples = asyncio.run(
            measure(
                kinds,
                effort,
                lambda what, share: bar.update(task, description=what, completed=share),
            )
        )
    imported = measured_platform(kinds, samples, effort, output.stem)
    platform = imported.write(output)
    if json:
        print_json(platform.model_dump(mode="json", exclude_unset=True))
    else:
        headings = ["kind", "device", *right("size", "mean ms", "spread", "measurements")]
        out.print(table(headings, _rows(platform), title=escape(platform.description)))
    for line in platform.sources:
        err.print(escape(line), soft_wrap=True)
    for warning in warnings(platform.times):
        err.print(f"[yellow]warning:[/] {escape(warning)}", soft_wrap=True)
    err.print(f"wrote {escape(str(output))}", soft_wrap=True)


def _rows(platform: PlatformFile) -> Iterator[tuple[str, ...]]:
    for curve in platform.times:
        for size, seconds, deviation, count in zip(
            curve.sizes, curve.seconds, curve.deviations, curve.counts, strict=True
        ):
            mean = f"{seconds * 1e3:,.2f}"
            yield curve.kind, curve.type, f"{size:g}", mean, f"{deviation:.1%}", str(count)
