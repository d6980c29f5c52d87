"""`make bench-scale`: what a decision costs as schedulers, devices and runs grow, as JSON.

CPU of all processes over the results that were stored, at full pace, with rules alone:

schedulers   copies of greedy in one run
devices      greedy and eft in one run, on clusters of one CPU and four GPUs for each five devices
runs         equally many tasks, divided among runs that are started at once
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.bench import report
from tests.bench.policies import devices
from tests.bench.processes import cpu_seconds, running_arena
from tests.e2e.arena import ArenaProcess

SCHEDULERS = (6, 12, 24)
DEVICES = (5, 100, 10_000)
RUNS = (1, 10, 100)

COPY = """
from services.scheduler.policies.greedy import Greedy


class Copy(Greedy):
    '''As greedy.'''

    name = "copy_{number}"
"""


def main() -> None:
    parser = report.parser("bench-scale", __doc__ or "")
    parser.add_argument("--tasks", type=int, default=100_000, help="of each measurement")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        copies = list(write_copies(Path(folder), max(SCHEDULERS)))
        added = [word for path in copies for word in ("--add", str(path))]
        with running_arena("--idle", *added) as arena:
            measured = measure(arena, [path.stem for path in copies], given.tasks)
    report.publish("bench-scale", measured, table(measured), write=given.write)


def write_copies(folder: Path, count: int) -> Iterable[Path]:
    for number in range(count):
        path = folder / f"copy_{number}.py"
        path.write_text(COPY.format(number=number))
        yield path


def measure(arena: ArenaProcess, copies: Sequence[str], tasks: int) -> dict[str, Any]:
    report.progress("warm-up")
    cost(arena, [{"schedulers": [*copies, "greedy", "eft"]}], 20_000)
    return {
        "tasks": tasks,
        "schedulers": {
            count: cost(arena, [{"schedulers": copies[:count]}], tasks) for count in SCHEDULERS
        },
        "devices": {
            count: {
                name: cost(arena, [{"schedulers": [name], **devices(count)}], tasks)
                for name in ("greedy", "eft")
            }
            for count in DEVICES
        },
        "runs": {
            count: cost(arena, [{"schedulers": copies[:6]}] * count, tasks // count)
            for count in RUNS
        },
    }


def cost(arena: ArenaProcess, specs: Sequence[dict[str, Any]], tasks: int) -> dict[str, float]:
    """Of runs with so many tasks each, that are started at once."""
    report.progress(
        f"{len(specs)} runs of {tasks:,} tasks, {len(specs[0]['schedulers'])} schedulers"
    )
    before, began = cpu_seconds(arena), time.monotonic()
    runs = [
        arena.start_run(tasks=tasks, pace="max", seed=number, **spec)
        for number, spec in enumerate(specs)
    ]
    for run in runs:
        arena.complete(run, timeout=600)
    seconds = time.monotonic() - began
    spent = sum(after - before[name] for name, after in cpu_seconds(arena).items())
    decisions = tasks * sum(len(spec["schedulers"]) for spec in specs)
    return {
        "cpu_us_per_decision": round(spent / decisions * 1e6, 2),
        "decisions_per_s": round(decisions / seconds),
    }


def table(found: dict[str, Any]) -> report.Table:
    return [
        ("", "CPU of all processes for a decision", "decisions/s"),
        *(
            _row(f"{count} schedulers in a run", each)
            for count, each in found["schedulers"].items()
        ),
        *(
            _row(f"`{name}` on {count:,} devices", each)
            for count, both in found["devices"].items()
            for name, each in both.items()
        ),
        *(
            _row(f"{count} {'run' if count == 1 else 'runs'} at once, six schedulers", each)
            for count, each in found["runs"].items()
        ),
    ]


def _row(name: str, measured: dict[str, float]) -> tuple[str, str, str]:
    return (
        name,
        f"{measured['cpu_us_per_decision']:.1f} µs",
        f"{measured['decisions_per_s']:,}",
    )


if __name__ == "__main__":
    main()
