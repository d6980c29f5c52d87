"""`make chaos`: runs with faults, round after round, and a check of every stored row.

Everything that can break is broken, at random times and in random order, from a seed that is
printed: kill -9, a freeze and a graceful restart of every process, NATS and ClickHouse included; a
full disk, errors and refused connections of ClickHouse; a slow network that drops connections. In
the second half of the rounds there are two generators, simulators, recorders and workers of greedy.
Progress goes to stderr, one JSON object to stdout.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from shared.domain.schedulers import BUILT_IN
from shared.runtime import logs
from shared.runtime.settings import Settings
from tests.bench import machine, report
from tests.chaos.arena import chaos_arena
from tests.chaos.disk import Disk, DiskUnavailable
from tests.chaos.faults import faults_alone, possible_faults, schedule
from tests.chaos.rounds import Log, Plan, Say, run_round, undisturbed

# In half of the rounds: instances that compete for the same work.
TWO = {"generator": 2, "simulator": 2, "recorder": 2, "greedy": 2}


def main() -> None:
    parser = report.parser("chaos", __doc__ or "")
    parser.add_argument("--minutes", type=float, default=30, help="of all rounds together")
    parser.add_argument("--tasks", type=int, default=1_000_000, help="of all runs together")
    parser.add_argument(
        "--seed", type=int, default=None, help="repeats the faults of an earlier test"
    )
    parser.add_argument("--keep", type=Path, default=None, help="folder to leave everything in")
    given = parser.parse_args()
    logs.set_up(Settings(log_level="error", log_format="console"))
    seed = random.randrange(10**6) if given.seed is None else given.seed
    log = Log(seed)
    with tempfile.TemporaryDirectory(prefix="hybrid-chaos-") as temporary:
        folder = given.keep or Path(temporary)
        asyncio.run(run_rounds(folder / "data", Plan.of(given.minutes, given.tasks, seed), log))
    found = {"machine": machine.describe(), **log.summary()}
    report.publish("chaos", found, table(found), write=given.write)
    sys.exit(0 if log.ok else 1)


def table(found: dict[str, Any]) -> report.Table:
    checked = f"{found['results_checked']:,} results of {found['tasks']:,} tasks checked"
    wrong = ", ".join(f"{found[what]} {what}" for what in ("lost", "doubled", "different"))
    return [
        (
            f"{found['faults']} faults, seed {found['seed']}",
            "alone: median, longest",
            "among others",
        ),
        (checked, wrong, ""),
        *(
            (
                fault,
                f"{_seconds(row['p50'])}, {_seconds(row['max'])}",
                _seconds(row["max_among_others"]),
            )
            for fault, row in found["recovery_s"].items()
        ),
    ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


async def run_rounds(folder: Path, plan: Plan, log: Log) -> None:
    """Ctrl-C ends them early; what was done is reported."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", file=sys.stderr, flush=True)

    say(
        f"seed {plan.seed}: {plan.rounds} rounds, {plan.tasks:,} tasks in {plan.seconds:.0f} s each"
    )
    work = asyncio.create_task(all_rounds(folder, plan, log, say))
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        log.left_out.append("stopped by hand: the last round was not checked")
        say("stopped")
    except Exception as error:
        log.problems.append(f"{type(error).__name__}: {error}")
        say(f"stopped by an error: {error!r}")


async def all_rounds(folder: Path, plan: Plan, log: Log, say: Say) -> None:
    disk = None
    try:
        disk = Disk(folder / "clickhouse")
    except DiskUnavailable as reason:
        log.left_out.append(f"a full disk: {reason}")
        say(f"ClickHouse's disk is never filled: {reason}")
    try:
        reference = None
        first_half = plan.rounds // 2  # then everything that may compete has a competitor
        for scale, numbers in (({}, range(first_half)), (TWO, range(first_half, plan.rounds))):
            if not numbers:
                continue
            async with chaos_arena(folder, BUILT_IN, disk, scale) as arena:
                say(f"{len(arena.children)} processes")
                reference = reference or await undisturbed(arena, plan, say)
                faults = possible_faults(list(arena.children), disk=disk is not None)
                alone = faults_alone(plan.seed, faults, plan.rounds, plan.seconds, early=list(TWO))
                for number in numbers:
                    # Independent of how far the round before it came.
                    due = schedule(plan.seed * 1000 + number, faults, alone=alone[number])
                    await run_round(arena, plan, due, reference, log, say)
    finally:
        if disk is not None:
            disk.close()


if __name__ == "__main__":
    main()
