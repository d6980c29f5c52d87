"""`make chaos`: storms over an arena until so many minutes and tasks are through.

Everything that can break is broken, at random times and in random order, from a seed that is
printed: kill -9, a freeze and a graceful restart of every process, NATS and ClickHouse included; a
full disk, errors and refused connections of ClickHouse; a slow network that drops connections. In
the second half of the storms there are two generators, simulators, recorders and workers of greedy.
After each storm every stored row is checked. Progress goes to stderr, one JSON object to stdout.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from services.cli.up import BUILT_IN
from shared import logs
from shared.settings import Settings
from tests.chaos.arena import stormy
from tests.chaos.disk import Disk, NoDisk
from tests.chaos.faults import lone, possible, schedule
from tests.chaos.storm import Log, Plan, Say, storm, undisturbed

# In half of the storms: instances that compete for the same work.
TWO = {"generator": 2, "simulator": 2, "recorder": 2, "greedy": 2}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30, help="how long the storms last")
    parser.add_argument("--tasks", type=int, default=1_000_000, help="tasks of all their runs")
    parser.add_argument("--seed", type=int, default=None, help="repeats a schedule of faults")
    parser.add_argument("--keep", type=Path, default=None, help="folder to leave everything in")
    given = parser.parse_args()
    logs.set_up(Settings(log_level="error", log_format="console"))
    seed = random.randrange(10**6) if given.seed is None else given.seed
    log = Log(seed)
    with tempfile.TemporaryDirectory(prefix="hybrid-chaos-") as temporary:
        folder = given.keep or Path(temporary)
        asyncio.run(rage(folder / "data", Plan.of(given.minutes, given.tasks, seed), log))
    json.dump(log.summary(), sys.stdout, indent=2)
    print()
    sys.exit(0 if log.ok else 1)


async def rage(folder: Path, plan: Plan, log: Log) -> None:
    """All storms; Ctrl-C ends them early and what was done is reported."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", file=sys.stderr, flush=True)

    say(
        f"seed {plan.seed}: {plan.storms} storms, {plan.tasks:,} tasks in {plan.seconds:.0f} s each"
    )
    work = asyncio.create_task(all_storms(folder, plan, log, say))
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        log.left_out.append("stopped by hand: the last storm was not checked")
        say("stopped")
    except Exception as error:
        log.problems.append(f"{type(error).__name__}: {error}")
        say(f"the storms end: {error!r}")


async def all_storms(folder: Path, plan: Plan, log: Log, say: Say) -> None:
    disk = None
    try:
        disk = Disk(folder / "clickhouse")
    except NoDisk as reason:
        log.left_out.append(f"a full disk: {reason}")
        say(f"ClickHouse's disk is never filled: {reason}")
    try:
        reference = None
        alone_until = plan.storms // 2  # then everything that may compete has a competitor
        for scale, numbers in (
            ({}, range(alone_until)),
            (TWO, range(alone_until, plan.storms)),
        ):
            if not numbers:
                continue
            async with stormy(folder, BUILT_IN, disk, scale) as arena:
                say(f"{len(arena.children)} processes")
                reference = reference or await undisturbed(arena, plan, say)
                faults = possible(list(arena.children), disk=disk is not None)
                dealt = lone(plan.seed, faults, plan.storms, plan.seconds, early=list(TWO))
                for number in numbers:
                    # A storm's schedule does not depend on how far the one before it came.
                    due = schedule(plan.seed * 1000 + number, faults, alone=dealt[number])
                    await storm(arena, plan, due, reference, log, say)
    finally:
        if disk is not None:
            disk.close()


if __name__ == "__main__":
    main()
