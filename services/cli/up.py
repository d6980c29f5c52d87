"""`hybrid up`: the whole arena on this machine, in one command."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from deploy.local.arena import DEFAULT_DATA_DIR, Arena, Ports
from deploy.local.stack import Plan, Stack, parse_scale, policy_label
from services.cli.client import gateway_of, settings_of
from services.cli.options import Json
from services.cli.output import coloured, err, explained, fail, print_json, race_table
from services.cli.profile import ClusterOption
from services.cli.runs import spec_from, wait_for
from shared import logs
from shared.cancelling import cancel
from shared.errors import ArenaError
from shared.gateway import Gateway
from shared.models import LEARNERS
from shared.settings import Settings
from shared.store.client import Store

# A policy is a file there; a service is not imported for its name.
POLICIES = Path(__file__).parents[1] / "scheduler" / "policies"
BUILT_IN = tuple(sorted(file.stem for file in POLICIES.glob("[!_]*.py")))
SCALABLE = ("generator", "simulator", "recorder")

COUNTED = """
    SELECT scheduler, count() AS results, uniqExact(task_id) AS tasks
    FROM scheduler_results FINAL WHERE run = {run:String} GROUP BY scheduler
"""


# The last fifth of the tasks: what the learners have come to.
LEARNED = """
    SELECT scheduler, sum(time) AS time FROM scheduler_results FINAL
    WHERE run = {run:String} AND task_id >= {first:Int64} GROUP BY scheduler
"""
SHIPPED = """
    SELECT name, count() AS models FROM models FINAL
    WHERE run = {run:String} AND shipped GROUP BY name
"""


def up(
    tasks: Annotated[
        int | None, typer.Option(min=1, help="Tasks of the run; none: endless.")
    ] = None,
    pace: Annotated[str | None, typer.Option(help="Tasks per second, or max (default 20).")] = None,
    seed: Annotated[int | None, typer.Option(help="Same spec and seed, same results.")] = None,
    preset: Annotated[str | None, typer.Option(help="Workload preset, such as hpc.")] = None,
    spec: Annotated[Path | None, typer.Option(help="A RunSpec, YAML or JSON.")] = None,
    cluster: ClusterOption = None,
    scale: Annotated[
        list[str] | None, typer.Option(help="Workers of a scheduler, as greedy=3. Repeatable.")
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(help="A scheduler of your own: file.py or module:Class. Repeatable."),
    ] = None,
    port: Annotated[int, typer.Option(help="The gateway's port.")] = 8000,
    nats_port: Annotated[int, typer.Option(help="NATS's port.")] = 4222,
    clickhouse_port: Annotated[int, typer.Option(help="ClickHouse's HTTP port.")] = 8123,
    nats_nodes: Annotated[
        int, typer.Option(help="NATS servers: 1, or a cluster of 3 or 5 that outlives one of them.")
    ] = 1,
    tls: Annotated[
        bool,
        typer.Option("--tls", help="Encrypt everything, with certificates made for this arena."),
    ] = False,
    auto_ports: Annotated[
        bool, typer.Option("--auto-ports", help="Take free ports, so that several can run.")
    ] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where everything is kept (default: .hybrid; with --exit a temporary folder).",
            show_default=False,
        ),
    ] = None,
    idle: Annotated[bool, typer.Option("--idle", help="Start no run.")] = False,
    exit: Annotated[
        bool, typer.Option("--exit", help="Stop when the run is complete, and print its results.")
    ] = False,
    json: Json = False,
) -> None:
    """Start the arena: NATS, ClickHouse and every service, each as a process of its own.

    Examples: `hybrid up`, `hybrid up --scale greedy=3 --tasks 10000`,
    `hybrid up --tasks 2000 --pace max --exit --json`, `hybrid up --add my_scheduler.py`
    """
    logs.set_up(Settings(log_level="warning", log_format="console"))
    added = tuple(add or ())
    with explained():
        wanted = spec_from(spec, tasks, pace, seed, preset, cluster)
        if exit and wanted.get("tasks") is None:
            fail("--exit needs a run that ends: give --tasks, or a spec with tasks")
        known = {*BUILT_IN, *SCALABLE, *map(policy_label, added)}
        workers = parse_scale(scale or [], known)
        chosen = Ports.of(port, nats_port, clickhouse_port, nats_nodes)
        ports = Ports.free(nats_nodes) if auto_ports else chosen
        temporary = exit and data_dir is None
        folder = Path(tempfile.mkdtemp(prefix="hybrid-")) if temporary else data_dir
        plan = Plan(folder or DEFAULT_DATA_DIR, ports, BUILT_IN + added, workers, tls)
        try:
            code = asyncio.run(_up(plan, None if idle else wanted, exit=exit, json=json))
        finally:
            if temporary:
                shutil.rmtree(plan.data_dir, ignore_errors=True)
    raise typer.Exit(code)


async def _up(plan: Plan, wanted: dict[str, Any] | None, *, exit: bool, json: bool) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stopping.set)
    stack = Stack(plan)
    work = asyncio.create_task(_work(stack, wanted, exit=exit, json=json))
    stopped = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
            return 0
        await cancel(work)
        # Ctrl-C is how one ends `hybrid up`; but a run that was to be waited for is not done.
        return 130 if exit else 0
    finally:
        stopped.cancel()
        with err.status("stopping"):
            await stack.stop()


async def _work(stack: Stack, wanted: dict[str, Any] | None, *, exit: bool, json: bool) -> None:
    started = time.monotonic()
    with err.status("starting NATS, ClickHouse and the services"):
        await stack.start()
    gateway = gateway_of(stack.arena)
    ports = stack.arena.ports
    err.print(
        f"[green]up[/] after {time.monotonic() - started:.1f} s: [bold]{gateway.url}[/] "
        f"(NATS {ports.nats}, ClickHouse {ports.clickhouse}, data in {stack.arena.data_dir})"
    )
    run = await asyncio.to_thread(_run, gateway, wanted) if wanted is not None else None
    if exit and run is not None:
        detail = await _completed(gateway, run, quiet=json)
        summary = await asyncio.to_thread(sum_up, stack.arena, detail)
        if json:
            print_json(summary)
        else:
            title = f"{summary['tasks']:,} tasks in {summary['seconds']:.1f} s"
            title += f": {summary['tasks_per_s']:,.0f} tasks/s"
            err.print(race_table(detail["schedulers"], title, detail["bound"]))
        return
    if json:
        print_json(
            {"url": gateway.url, "run": run and run["run"], "data_dir": stack.arena.data_dir}
        )
    await _watch(gateway)


def _run(gateway: Gateway, wanted: dict[str, Any]) -> dict[str, Any]:
    """A new run, or the one that was active when the arena went down; paused stays paused."""
    active = [run for run in gateway.get("/api/runs") if run["state"] in ("running", "paused")]
    if active and not wanted:
        run: dict[str, Any] = active[0]
        err.print(f"run [bold]{run['run']}[/] goes on: {coloured(run['state'])}")
        return run
    run = gateway.post("/api/runs", wanted)
    err.print(f"run [bold]{run['run']}[/] started")
    return run


async def _completed(gateway: Gateway, run: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """The run once it is complete. Whoever is cancelled must not leave a patient thread behind."""
    leaving = threading.Event()

    def pause(seconds: float) -> None:
        if leaving.wait(seconds):
            raise ArenaError("interrupted")

    try:
        return await asyncio.to_thread(
            wait_for, gateway, run["run"], run["spec"]["tasks"], quiet=quiet, pause=pause
        )
    finally:
        leaving.set()


def sum_up(arena: Arena, detail: dict[str, Any]) -> dict[str, Any]:
    """A run that is complete, from what ClickHouse holds."""
    name = detail["run"]
    seconds = detail["updated_at"] - detail["created_at"]
    store = Store(settings_of(arena))
    counted = {row["scheduler"]: row for row in store.query(COUNTED, {"run": name})}
    learned = _learned(store, name, detail["tasks"])
    store.close()
    for scheduler in detail["spec"]["schedulers"]:
        row = counted.get(scheduler, {"results": 0, "tasks": 0})
        if not row["results"] == row["tasks"] == detail["tasks"]:
            raise ArenaError(f"{scheduler} has {row['results']} results of {detail['tasks']} tasks")
    fields = ("total_time", "avg_time", "avg_wait", "makespan", "avg_energy", "avg_cost")
    return {
        "run": name,
        "tasks": detail["tasks"],
        "seconds": round(seconds, 3),
        "tasks_per_s": round(detail["tasks"] / seconds, 1),
        "bound": detail["bound"],
        "schedulers": {
            scheduler: {
                "results": counted[scheduler]["results"],
                **{field: standing[field] for field in fields},
                "vs_oracle": standing["vs_oracle"],
                **learned.get(scheduler, {}),
            }
            for scheduler, standing in detail["schedulers"].items()
        },
    }


def _learned(store: Store, run: str, tasks: int) -> dict[str, dict[str, Any]]:
    """What is told of the learners beside the rest."""
    shipped = {row["name"]: row["models"] for row in store.query(SHIPPED, {"run": run})}
    late = {"run": run, "first": tasks - max(tasks // 5, 1)}
    times = {row["scheduler"]: row["time"] for row in store.query(LEARNED, late)}
    oracle = times.get("oracle")
    return {
        name: {
            "models": shipped.get(name, 0),
            "vs_oracle_last": times[name] / oracle if oracle else None,
        }
        for name in LEARNERS
        if name in times
    }


async def _watch(gateway: Gateway) -> None:
    """Until Ctrl-C: the race, live, when somebody is looking."""
    if not err.is_terminal:
        await asyncio.Event().wait()
    with Live(console=err, auto_refresh=False, transient=True) as live:
        while True:
            try:
                found = await asyncio.to_thread(gateway.get, "/api/status")
                live.update(_view(gateway, found), refresh=True)
            except (ArenaError, httpx.HTTPError) as error:
                live.update(Text(str(error), style="yellow"), refresh=True)
            await asyncio.sleep(0.5)


def _view(gateway: Gateway, found: dict[str, Any]) -> Group:
    if found["run"] is None:
        return Group(Text("no run; start one with `hybrid run start`", style="dim"))
    title = f"run {found['run']}: {found['state']}, {found['tasks_processed']:,} tasks"
    hint = Text(f"{gateway.url}/docs  ·  Ctrl-C stops the arena", style="dim")
    return Group(race_table(found["schedulers"], title), hint)
