"""`hybrid up`: the complete arena on this machine, in one command."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text
from typer import Option

from deploy.local.arena import DEFAULT_DATA_DIR, Ports
from deploy.local.plugins import installed_policies
from deploy.local.stack import Plan, Stack, parse_scale, policy_label
from services.cli.client import gateway_of
from services.cli.options import EXPERIMENTS_DIR, Cluster, Json, Platform, Preset, Seed, SpecFile
from services.cli.output import coloured, err, fail, print_json, race_table
from services.cli.runs.completion import pretraining_line, suspended_lines, wait_for
from services.cli.runs.spec import spec_from
from services.cli.runs.summary import learned_lines, summarise
from shared.domain.schedulers import BUILT_IN
from shared.errors import ArenaError
from shared.runtime import logs
from shared.runtime.cancellation import cancel
from shared.runtime.gateway_client import GatewayClient
from shared.runtime.settings import Settings

SCALABLE = ("generator", "simulator", "recorder")


def up(
    tasks: Annotated[int | None, Option(min=1, help="Tasks of the run; none: endless.")] = None,
    pace: Annotated[str | None, Option(help="Tasks per second, or max (default 20).")] = None,
    seed: Seed = None,
    preset: Preset = None,
    spec: SpecFile = None,
    cluster: Cluster = None,
    platform: Platform = None,
    scale: Annotated[
        list[str] | None, Option(help="Workers of a scheduler: greedy=3. Repeatable.")
    ] = None,
    pack: Annotated[
        bool,
        Option("--pack", help="One process for all built-in rules: less CPU and memory."),
    ] = False,
    add: Annotated[
        list[str] | None,
        Option(help="Your own scheduler: file.py, policy.onnx or module:Class. Repeatable."),
    ] = None,
    port: Annotated[int | None, Option(help="The gateway's port (default 8000).")] = None,
    nats_port: Annotated[int | None, Option(help="NATS's port (default 4222).")] = None,
    clickhouse_port: Annotated[int | None, Option(help="ClickHouse's port (default 8123).")] = None,
    nats_nodes: Annotated[
        int, Option(help="NATS servers: 1, or a cluster of 3 or 5 that survives losing one.")
    ] = 1,
    tls: Annotated[
        bool, Option("--tls", help="Encrypt everything, with certificates made for this arena.")
    ] = False,
    auto_ports: Annotated[
        bool,
        Option("--auto-ports", help="Use free ports unless given, so that several arenas can run."),
    ] = False,
    data_dir: Annotated[
        Path | None, Option(help="Folder for data (default .hybrid, with --exit a temporary one).")
    ] = None,
    idle: Annotated[bool, Option("--idle", help="Start no run.")] = False,
    exit: Annotated[bool, Option("--exit", help="Stop after the run, print its results.")] = False,
    json: Json = False,
) -> None:
    """Start the arena: NATS, ClickHouse and every service, each as a process of its own.

    Examples: `hybrid up`, `hybrid up --scale greedy=3 --tasks 10000`,
    `hybrid up --tasks 2000 --pace max --exit --json`, `hybrid up --add my_scheduler.py`,
    `hybrid up --auto-ports --port 8100`, `hybrid up --platform rack`
    """
    logs.set_up(Settings(log_level="warning", log_format="console"))
    installed, problems = installed_policies()
    for problem in problems:
        err.print(problem)
    plugins = (*installed, *(each for each in add or () if each not in installed))
    run_spec = spec_from(spec, tasks, pace, seed, preset, cluster, platform)
    if exit and run_spec.get("tasks") is None:
        fail("--exit needs a run that ends: give --tasks, or a spec with tasks")
    workers = parse_scale(scale or [], {*BUILT_IN, *SCALABLE, *map(policy_label, plugins)})
    ports = choose_ports(auto_ports, nats_nodes, port, nats_port, clickhouse_port)
    temporary = exit and data_dir is None
    folder = Path(tempfile.mkdtemp(prefix="hybrid-")) if temporary else data_dir
    reports = (Settings().reports_dir or EXPERIMENTS_DIR).resolve()
    settings = {"HYBRID_REPORTS_DIR": str(reports)}
    plan = Plan(folder or DEFAULT_DATA_DIR, ports, BUILT_IN + plugins, workers, pack, tls, settings)
    try:
        code = asyncio.run(_up(plan, None if idle else run_spec, exit=exit, json=json))
    finally:
        if temporary:
            shutil.rmtree(plan.data_dir, ignore_errors=True)
    raise typer.Exit(code)


def choose_ports(
    auto: bool, nats_nodes: int, gateway: int | None, nats: int | None, clickhouse: int | None
) -> Ports:
    """The ports that are given; the others are free ones with `--auto-ports`, else the defaults."""
    options = {"gateway": gateway, "nats": nats, "clickhouse": clickhouse}
    fixed = {name: port for name, port in options.items() if port is not None}
    return Ports.free(nats_nodes, **fixed) if auto else Ports.of(nats_nodes, **fixed)


async def _up(plan: Plan, spec: dict[str, Any] | None, *, exit: bool, json: bool) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stopping.set)
    stack = Stack(plan)
    work = asyncio.create_task(_work(stack, spec, exit=exit, json=json))
    stopped = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
            return 0
        await cancel(work)
        # Ctrl-C is the normal end of `hybrid up`, but with --exit the run is not complete.
        return 130 if exit else 0
    finally:
        stopped.cancel()
        with err.status("stopping"):
            await stack.stop()


async def _work(stack: Stack, spec: dict[str, Any] | None, *, exit: bool, json: bool) -> None:
    started = time.monotonic()
    with err.status("starting NATS, ClickHouse and the services"):
        await stack.start()
    gateway = gateway_of(stack.arena)
    ports = stack.arena.ports
    err.print(
        f"[green]up[/] after {time.monotonic() - started:.1f} s: [bold]{gateway.url}[/] "
        f"(NATS {ports.nats}, ClickHouse {ports.clickhouse}, data in {stack.arena.data_dir})"
    )
    run = await asyncio.to_thread(_start_run, gateway, spec) if spec is not None else None
    if exit and run is not None:
        run = await _completed(gateway, run, quiet=json)
        summary = await asyncio.to_thread(summarise, stack.arena, run)
        if json:
            print_json(summary)
        else:
            title = f"{summary['tasks']:,} tasks in {summary['seconds']:.1f} s"
            title += f": {summary['tasks_per_s']:,.0f} tasks/s"
            err.print(race_table(run["schedulers"], title, run["bound"]))
            for line in [*learned_lines(summary), *suspended_lines(run)]:
                err.print(line)
        return
    if json:
        name = run and run["run"]
        print_json({"url": gateway.url, "run": name, "data_dir": stack.arena.data_dir})
    await _watch(gateway)


def _start_run(gateway: GatewayClient, spec: dict[str, Any]) -> dict[str, Any]:
    """Without a spec, a run that was active when the arena stopped is continued."""
    active = [run for run in gateway.get("/api/runs") if run["state"] in ("running", "paused")]
    if active and not spec:
        run, change = active[0], f"continues: {coloured(active[0]['state'])}"
    else:
        run, change = gateway.post("/api/runs", spec), "started"
    err.print(f"run [bold]{run['run']}[/] {change}")
    return dict(run)


async def _completed(gateway: GatewayClient, run: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """The run once it is complete. Cancelling this also ends the thread that polls."""
    cancelled = threading.Event()

    def pause(seconds: float) -> None:
        if cancelled.wait(seconds):
            raise ArenaError("interrupted")

    try:
        wait = partial(wait_for, gateway, run["run"], run["spec"]["tasks"], quiet=quiet)
        return await asyncio.to_thread(wait, pause=pause)
    finally:
        cancelled.set()


async def _watch(gateway: GatewayClient) -> None:
    """Show the race on a terminal until Ctrl-C."""
    if not err.is_terminal:
        await asyncio.Event().wait()
    with Live(console=err, auto_refresh=False, transient=True) as live:
        while True:
            try:
                status = await asyncio.to_thread(gateway.get, "/api/status")
                live.update(_view(gateway, status), refresh=True)
            except (ArenaError, httpx.HTTPError) as error:
                live.update(Text(str(error), style="yellow"), refresh=True)
            await asyncio.sleep(0.5)


def _view(gateway: GatewayClient, status: dict[str, Any]) -> Group:
    if status["run"] is None:
        return Group(Text("no run; start one with `hybrid run start`", style="dim"))
    title = f"run {status['run']}: {status['state']}, {status['tasks_processed']:,} tasks"
    hint = Text(f"{gateway.url}/docs  ·  Ctrl-C stops the arena", style="dim")
    problems = [Text.from_markup(line) for line in suspended_lines(status)]
    if line := pretraining_line(status):
        problems.append(Text(line, style="cyan"))
    race = race_table(status["schedulers"], title) if status["schedulers"] else Text(title)
    return Group(*problems, race, hint)
