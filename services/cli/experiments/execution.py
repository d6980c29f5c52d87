"""Run an experiment on an arena of its own or on a running one, with progress on stderr."""

from __future__ import annotations

import asyncio
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from rich.progress import BarColumn, Progress, TimeRemainingColumn

from deploy.local.arena import Ports
from deploy.local.stack import Plan, Stack
from services.cli.client import gateway_of
from services.cli.experiments.peak_memory import sampling
from services.cli.output import err, progress
from services.cli.settings import settings_of
from services.lab.experiments.declaration import Experiment
from services.lab.experiments.journal import Folder
from services.lab.experiments.runner import Progress as RunProgress
from services.lab.experiments.runner import Runner
from shared.domain.schedulers import BUILT_IN
from shared.runtime.gateway_client import GatewayClient
from shared.store.client import Store


async def run_on_own_arena(folder: Folder, *, quiet: bool) -> None:
    """The arena's data is in the experiment's folder until the experiment is complete."""
    stopping = threading.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stopping.set)
    stack = Stack(Plan(_arena_folder(folder), Ports.free(), _schedulers(folder.experiment)))
    peaks: dict[str, float] = {}
    try:
        with err.status("starting an arena for the experiment"):
            await stack.start()
        gateway, store = gateway_of(stack.arena), Store(settings_of(stack.arena))
        with sampling(stack, peaks):
            await asyncio.to_thread(_run, folder, gateway, store, stopping=stopping, quiet=quiet)
    finally:
        folder.journal.note_peaks(dict(sorted(peaks.items())))
        folder.save()
        with err.status("stopping the arena"):
            await stack.stop()
    remove_arena(folder)


def remove_arena(folder: Folder) -> None:
    shutil.rmtree(_arena_folder(folder), ignore_errors=True)


def _arena_folder(folder: Folder) -> Path:
    return folder.path / "arena"


def _schedulers(experiment: Experiment) -> tuple[str, ...]:
    """The policies to deploy: all, unless every variant lists its schedulers."""
    seed = experiment.seeds[0]
    lists = [experiment.run_spec(variant, seed).schedulers for variant in experiment.variants]
    listed = BUILT_IN if not all(lists) else set().union(*lists)
    return tuple(name for name in BUILT_IN if name in listed) + experiment.plugins


def run_on_arena(folder: Folder, gateway: GatewayClient, store: Store, *, quiet: bool) -> None:
    stopping = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stopping.set())
    _run(folder, gateway, store, stopping=stopping, quiet=quiet)


def _run(
    folder: Folder, gateway: GatewayClient, store: Store, *, stopping: threading.Event, quiet: bool
) -> None:
    columns = "{task.description}", BarColumn(), "{task.fields[count]}", TimeRemainingColumn()
    with progress(*columns, quiet=quiet) as bars:
        Runner(folder, gateway, store, _reporter(folder, bars, quiet), stopping).run()


def _reporter(folder: Folder, bars: Progress, quiet: bool) -> Callable[[RunProgress], None]:
    """Progress bars on a terminal; elsewhere a line per run, and one for its first note."""
    bar = bars.add_task(f"[bold]{folder.experiment.name}", total=1.0, count="")
    printed: set[str] = set()

    def print_once(line: str, key: str) -> None:
        if key not in printed and not quiet and not err.is_terminal:
            printed.add(key)
            err.print(line)

    def report(status: RunProgress) -> None:
        share = min(status.processed / status.tasks, 1.0)
        number = min(status.done + 1, status.runs)
        count = f"run {number} of {status.runs}: {status.label}"
        note = f" ({status.note})" if status.note else ""
        bars.update(bar, completed=(status.done + share) / status.runs, count=count + note)
        if note:
            print_once(count + note, f"note {count}")
        if status.label:
            print_once(count, count)

    return report
