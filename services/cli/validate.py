"""`hybrid validate`: how far simulations of a platform are from real runs on it."""

from __future__ import annotations

import asyncio
import json as json_format
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape
from typer import Option

from deploy.local.arena import Ports
from deploy.local.stack import Plan, Stack
from services.cli.client import connect, gateway_of
from services.cli.options import DataDir, Json, Url
from services.cli.output import err, fail, out, print_json
from services.cli.settings import settings_behind_gateway, settings_of
from services.cli.tables import right, table
from services.lab.atomic_write import replace_text
from services.lab.calibration.devices import devices_of
from services.lab.calibration.refine import refined
from services.lab.validation.report import make_certificate
from services.lab.validation.validator import Compared, Validator
from services.lab.validation.workloads import SCHEDULERS, workloads
from shared.domain.hardware.certificate import Certificate
from shared.platforms.certificate_file import certificate_path
from shared.platforms.platform_file import PlatformFile, load
from shared.runtime import logs
from shared.runtime.gateway_client import GatewayClient
from shared.runtime.settings import Settings
from shared.store.client import Store

HEADINGS = right("bias", "median error", "p90", "repeat spread", "beyond it")


def validate(
    platform: Annotated[
        Path, Option(metavar="FILE", help="A platform file of `hybrid profile --real`.")
    ],
    count: Annotated[int, Option("--workloads", min=1, max=1000, help="How many.")] = 20,
    tasks: Annotated[int, Option(min=2, max=100_000, help="Of each workload.")] = 30,
    repeats: Annotated[int, Option(min=2, max=100, help="Real runs of each workload.")] = 2,
    refine: Annotated[
        int,
        Option(
            min=0,
            max=1000,
            help="First refine the platform by this many real runs of other workloads.",
        ),
    ] = 0,
    minutes: Annotated[float, Option(min=0.1, help="No workload is begun after that time.")] = 15,
    seed: Annotated[int, Option(help="Of the workloads.")] = 1,
    scheduler: Annotated[
        list[str] | None,
        Option(help="Repeatable.", show_default=", ".join(SCHEDULERS)),
    ] = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Run workloads for real and in simulation, and write the platform's certificate.

    The certificate is written beside the platform file. It has the errors of task times, of mean
    turnaround and of makespan, the spread of repeated real runs, and whether schedulers keep their
    order. Close other programs first. The command starts an arena, unless --url or --data-dir names
    a running one. If the services share cores with the devices, tasks take longer than in `hybrid
    profile --real`: --refine measures that with workloads of its own and adds it to the file.

    Examples: `hybrid validate --platform machine.yaml`,
    `hybrid validate --platform machine.yaml --refine 5`,
    `hybrid validate --platform machine.yaml --workloads 2 --tasks 20`
    """
    logs.set_up(Settings(log_level="warning", log_format="console"))
    platform_file = load(platform)
    devices_of(platform_file)  # says what is missing
    names = tuple(scheduler or SCHEDULERS)
    if len(set(names)) != len(names) or len(names) < 2:
        fail("--scheduler: at least two different ones")

    def work(
        gateway: GatewayClient, store: Store, stopping: threading.Event
    ) -> tuple[PlatformFile, list[Compared]]:
        validator = Validator(gateway, store, lambda line: err.print(line), stopping)
        judged = platform_file
        if refine:
            # Another seed than that of the workloads that are judged.
            others = workloads(platform_file, refine, tasks, seed + 2**32, names)
            imported, _ = refined(platform_file, validator.measure(others))
            judged = imported.write(platform)
        plan = workloads(judged, count, tasks, seed, names)
        return judged, validator.compare(plan, repeats, minutes * 60)

    if url is not None or data_dir is not None:
        store = Store(settings_behind_gateway(url, data_dir))
        platform_file, compared = work(connect(url, data_dir), store, _stopping())
    else:
        platform_file, compared = asyncio.run(_on_own_arena(names, work))
    if len(compared) < count:
        err.print(f"[yellow]the time was over after {len(compared)} of {count} workloads[/]")
    certificate = make_certificate(platform_file, compared)
    path = certificate_path(platform)
    replace_text(path, json_format.dumps(certificate, indent=1) + "\n")
    if json:
        print_json(certificate)
    else:
        _print(certificate)
    err.print(f"wrote {escape(str(path))}", soft_wrap=True)


async def _on_own_arena(
    names: tuple[str, ...],
    work: Callable[[GatewayClient, Store, threading.Event], tuple[PlatformFile, list[Compared]]],
) -> tuple[PlatformFile, list[Compared]]:
    stopping = threading.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stopping.set)
    with tempfile.TemporaryDirectory(prefix="hybrid-validate-") as folder:
        stack = Stack(Plan(Path(folder), Ports.free(), names))
        try:
            with err.status("starting an arena"):
                await stack.start()
            gateway, store = gateway_of(stack.arena), Store(settings_of(stack.arena))
            return await asyncio.to_thread(work, gateway, store, stopping)
        finally:
            with err.status("stopping the arena"):
                await stack.stop()


def _stopping() -> threading.Event:
    stopping = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stopping.set())
    return stopping


def _print(certificate: dict[str, Any]) -> None:
    out.print(table(["kernel", "device", *right("tasks"), *HEADINGS], _task_rows(certificate)))
    out.print(table(["measure", "scheduler", *HEADINGS], _scheduler_rows(certificate)))
    summary = Certificate.model_validate(certificate["summary"])
    out.print(summary.line, soft_wrap=True)


def _task_rows(certificate: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in certificate["task_times"]:
        yield (row["kind"], row["type"], str(row["tasks"]), *_errors(row))


def _scheduler_rows(certificate: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in certificate["schedulers"]:
        yield (row["measure"], row["scheduler"], *_errors(row))


def _errors(row: dict[str, Any]) -> tuple[str, ...]:
    shown = (f"{row[name]:.1%}" for name in ("median", "p90", "spread", "beyond"))
    return f"{row['bias']:+.1%}", *shown
