"""Conduct an experiment: on an arena of its own or on a running one, with progress on stderr."""

from __future__ import annotations

import asyncio
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from deploy.local.arena import Ports
from deploy.local.stack import Plan, Stack
from services.cli.client import gateway_of, settings_of
from services.cli.output import err
from services.cli.peaks import PeakWatch
from services.cli.up import BUILT_IN
from services.lab.experiment import Experiment
from services.lab.journal import Folder
from services.lab.runner import Progress as Reached
from services.lab.runner import Runner
from shared.gateway import Gateway
from shared.store.client import Store


async def embedded(folder: Folder, *, quiet: bool) -> None:
    """On an arena of its own, which lives in the experiment's folder until that is done."""
    stopping = threading.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stopping.set)
    stack = Stack(Plan(_home(folder), Ports.free(), _competitors(folder.experiment)))
    watch = PeakWatch(stack)
    try:
        with err.status("starting an arena for the experiment"):
            await stack.start()
        watch.start()
        store = Store(settings_of(stack.arena))
        work = asyncio.to_thread(
            _run, folder, gateway_of(stack.arena), store, stopping=stopping, quiet=quiet
        )
        await work
    finally:
        folder.journal.note_peaks(watch.stop())
        folder.save()
        with err.status("stopping the arena"):
            await stack.stop()
    clear(folder)


def clear(folder: Folder) -> None:
    """Nobody needs the arena of an experiment that is done."""
    shutil.rmtree(_home(folder), ignore_errors=True)


def _home(folder: Folder) -> Path:
    return folder.path / "arena"


def _competitors(experiment: Experiment) -> tuple[str, ...]:
    """The policies to deploy: all, unless every variant says who competes."""
    named = [
        experiment.run_spec(each, experiment.seeds[0]).schedulers for each in experiment.variants
    ]
    if not all(named):
        return BUILT_IN + experiment.plugins
    wanted = {name for names in named for name in names}
    return tuple(name for name in BUILT_IN if name in wanted) + experiment.plugins


def on_arena(folder: Folder, gateway: Gateway, store: Store, *, quiet: bool) -> None:
    stopping = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stopping.set())
    _run(folder, gateway, store, stopping=stopping, quiet=quiet)


def _run(
    folder: Folder, gateway: Gateway, store: Store, *, stopping: threading.Event, quiet: bool
) -> None:
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeRemainingColumn(),
        console=err,
        disable=quiet or not err.is_terminal,
    )
    with bars:
        Runner(folder, gateway, store, _teller(folder, bars, quiet), stopping).run()


def _teller(folder: Folder, bars: Progress, quiet: bool) -> Callable[[Reached], None]:
    """Progress bars on a terminal, a line per run elsewhere."""
    experiment = folder.experiment
    whole: TaskID = bars.add_task(f"[bold]{experiment.name}", total=1.0, count="")
    told: list[str] = []
    held_up: list[str] = []

    def tell(reached: Reached) -> None:
        share = min(reached.processed / reached.tasks, 1.0)
        count = f"run {min(reached.done + 1, reached.runs)} of {reached.runs}: {reached.label}"
        note = f" ({reached.note})" if reached.note else ""
        bars.update(whole, completed=(reached.done + share) / reached.runs, count=count + note)
        if note and held_up[-1:] != [count]:
            held_up.append(count)  # once a run is enough
            if not quiet and not err.is_terminal:
                err.print(count + note)
        if reached.label and told[-1:] != [reached.label]:
            told.append(reached.label)
            if not quiet and not err.is_terminal:
                err.print(count)

    return tell
