"""`hybrid adversary`: where one scheduler loses most to another."""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape
from rich.progress import BarColumn
from typer import Option

from deploy.local.arena import Ports
from deploy.local.stack import Plan, Stack
from services.cli.client import connect, gateway_of
from services.cli.offline_run import run_offline
from services.cli.options import EXPERIMENTS_DIR, DataDir, Json, Platform, Url
from services.cli.output import err, fail, out, print_json, progress
from services.cli.platforms.option import merge_platform
from services.cli.runs.completion import wait_for
from services.cli.tables import right, table
from services.lab.adversary.report import write_report
from services.lab.adversary.search import MEASURES, Pair, Search, SearchResult
from services.lab.adversary.space import Space
from shared.domain.schedulers import BUILT_IN
from shared.domain.spec import RunSpec, read_mapping
from shared.runtime import logs
from shared.runtime.gateway_client import GatewayClient
from shared.runtime.settings import Settings


def adversary(
    victim: Annotated[str | None, Option(help="The scheduler that is to lose; none: each.")] = None,
    rival: Annotated[str | None, Option(help="The scheduler to lose to; none: each.")] = None,
    minutes: Annotated[float, Option(min=0.01, help="How long to search.")] = 5,
    measure: Annotated[str, Option(help=f"{', '.join(MEASURES)}.")] = "turnaround",
    bounds: Annotated[
        Path | None, Option(help="YAML: gene: [low, high], or a number; see docs/adversary.md.")
    ] = None,
    platform: Platform = None,
    seed: Annotated[int, Option(min=0, help="Of the search.")] = 1,
    replay: Annotated[
        Path | None,
        Option(help="Instead of a search: run a stored instance in an arena, compare every bit."),
    ] = None,
    out_dir: Annotated[
        Path | None, Option("--out", help="Folder of the report.", show_default="experiments/...")
    ] = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Search small workloads on which a scheduler loses most to another.

    Writes the matrix of ratios, and each instance as a spec that any run can replay.

    Examples: `hybrid adversary --victim eft --rival predictive --minutes 5`,
    `hybrid adversary`, `hybrid adversary --replay experiments/adversary-1/instances/eft-heft.yaml`
    """
    logs.set_up(Settings(log_level="warning", log_format="console"))
    if replay is not None:
        _replay(replay, url, data_dir, json)
        return
    if measure not in MEASURES:
        fail(f"--measure {measure}: choose {', '.join(MEASURES)}")
    for name in filter(None, (victim, rival)):
        if name not in BUILT_IN:
            fail(f"no scheduler {name!r}; built in: {', '.join(BUILT_IN)}")
    fixed = merge_platform(platform, {}) if platform else None
    space = Space(read_mapping(bounds) if bounds else None, fixed)
    pairs = _pairs(victim, rival)
    names = tuple(name for name in BUILT_IN if any(name in pair for pair in pairs))
    result = _search(space, names, pairs, measure, seed, minutes, json)
    folder = out_dir or EXPERIMENTS_DIR / f"adversary-{datetime.now():%m%d-%H%M%S}"
    command = shlex.join(["hybrid", *sys.argv[1:]])
    files = write_report(result, space, names, measure, folder, command)
    _print(result, pairs, files, json)


def _pairs(victim: str | None, rival: str | None) -> list[Pair]:
    victims = BUILT_IN if victim is None else (victim,)
    rivals = BUILT_IN if rival is None else (rival,)
    pairs = [(one, other) for one in victims for other in rivals if one != other]
    if not pairs:
        fail("a scheduler cannot lose to itself: give another --rival")
    return pairs


def _search(
    space: Space,
    names: tuple[str, ...],
    pairs: list[Pair],
    measure: str,
    seed: int,
    minutes: float,
    quiet: bool,
) -> SearchResult:
    with progress("{task.description}", BarColumn(), quiet=quiet) as bars:
        bar = bars.add_task("adversary", total=1.0)

        def report(share: float, text: str) -> None:
            bars.update(bar, completed=share, description=escape(text))

        return Search(space, names, run_offline, measure, seed, report).run(pairs, 60 * minutes)


def _print(result: SearchResult, pairs: list[Pair], files: list[Path], json: bool) -> None:
    worst = sorted((p for p in pairs if p in result.best), key=lambda p: -(result.ratio(p) or 0.0))
    if json:
        ratios = [{"victim": p[0], "rival": p[1], "ratio": result.ratio(p)} for p in worst]
        print_json({"pairs": ratios, "files": [str(file) for file in files]})
        return
    rows = ((*pair, f"{result.ratio(pair):.3g}") for pair in worst[:15])
    out.print(table(("victim", "rival", *right("ratio")), rows))
    for file in files:
        if file.suffix in (".html", ".pdf"):
            out.print(escape(str(file)), soft_wrap=True)
    err.print(f"instances are in {files[0].parent / 'instances'}", soft_wrap=True)


def _replay(file: Path, url: str | None, data_dir: Path | None, json: bool) -> None:
    spec = RunSpec.load(file)
    if url is not None or data_dir is not None:
        record = _run(connect(url, data_dir), spec, json)
    else:
        record = asyncio.run(_on_own_arena(spec, json))
    rows: list[dict[str, Any]] = []
    for name in spec.schedulers:
        offline, stored = run_offline(spec, name), record["schedulers"][name]
        values = {
            "turnaround": offline.total_turnaround / offline.tasks,
            "makespan": offline.makespan,
        }
        arena = {"turnaround": stored["avg_turnaround"], "makespan": stored["makespan"]}
        rows.append({"scheduler": name, "search": values, "arena": arena, "equal": values == arena})
    equal = all(row["equal"] for row in rows)
    if json:
        print_json({"run": record["run"], "equal": equal, "schedulers": rows})
    else:
        for row in rows:
            word = "[green]equal[/]" if row["equal"] else f"[red]not[/] {row['search']}"
            turnaround = row["arena"]["turnaround"]
            out.print(f"{row['scheduler']}: mean turnaround {turnaround!r} s, to the bit: {word}")
    if not equal:
        fail("the arena's results are not those of the search")


async def _on_own_arena(spec: RunSpec, quiet: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="hybrid-") as folder:
        stack = Stack(Plan(Path(folder), Ports.free(), spec.schedulers))
        try:
            with err.status("starting an arena"):
                await stack.start()
            return await asyncio.to_thread(_run, gateway_of(stack.arena), spec, quiet)
        finally:
            await stack.stop()


def _run(gateway: GatewayClient, spec: RunSpec, quiet: bool) -> dict[str, Any]:
    run = str(gateway.post("/api/runs", spec.model_dump(mode="json"))["run"])
    return dict(wait_for(gateway, run, spec.tasks or 0, quiet=quiet))
