"""`make bench-compare REV=abc123`: another revision and this one, measured alternately.

Figures of a shared machine vary by a quarter from hour to hour, so revisions are compared in one
run: each round measures one of them right after the other, the first one changing from round to
round. The ratio of the two, this revision over the other, has its 95 % interval over the rounds.
Both use this revision's Python packages and are measured from outside, by the same code.
"""

from __future__ import annotations

import math
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy import stats

from tests.bench import report
from tests.bench.throughput import measure_runs, measure_start
from tests.e2e.arena import ArenaProcess

ROOT = Path(__file__).parents[2]

# What is compared, and where it stands in the measurement.
FIGURES = {
    "six rules, tasks/s": ("rules", "tasks_per_s"),
    "all schedulers of both revisions, learning, tasks/s": ("everybody", "tasks_per_s"),
    "p99 at 100 tasks/s, from the start of a run, ms": (
        *("latency", "100_tasks_per_s_from_the_start", "p99_ms"),
    ),
    "p99 at 100 tasks/s, steady, ms": ("latency", "100_tasks_per_s_steady", "p99_ms"),
    "p99 at 1,000 tasks/s, steady, ms": ("latency", "1000_tasks_per_s_steady", "p99_ms"),
    "p99 at 100 tasks/s, steady, eight schedulers, ms": (
        *("latency", "100_tasks_per_s_steady_eight_schedulers", "p99_ms"),
    ),
    "run of 20,000 tasks, rules alone, s": ("short_run_s",),
    "all schedulers at 20 tasks/s, cores": ("live_cores",),
    "healthy after `hybrid up`, s": ("start", "healthy_s"),
    "first stored result, s": ("start", "first_stored_result_s"),
    "memory of all processes after full pace, MiB": ("memory", "total_mib"),
    "the same, some seconds later, MiB": ("memory", "settled_mib"),
}


def main() -> None:
    parser = report.parser("bench-compare", __doc__ or "")
    parser.add_argument("revision", help="of git: a commit, a tag, a branch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument(
        "--options", default="", help="of `hybrid up`, for this revision alone: --options=--pack"
    )
    given = parser.parse_args()
    with checked_out(given.revision) as folder:
        programs = {"other": Program(folder), "this": Program(ROOT, tuple(given.options.split()))}
        rounds = [
            measure_both(programs, number, given.tasks, given.seconds)
            for number in range(given.rounds)
        ]
    found = {
        "revision": given.revision,
        "options": given.options,
        "rounds": rounds,
        "ratios": ratios(rounds),
    }
    report.publish("bench-compare", found, table(found), write=given.write)


@dataclass(frozen=True, slots=True)
class Program:
    folder: Path
    options: tuple[str, ...] = ()


def measure_both(
    programs: dict[str, Program], number: int, tasks: int, seconds: float
) -> dict[str, Any]:
    measured = {}
    for name in ("other", "this") if number % 2 == 0 else ("this", "other"):
        report.progress(f"round {number + 1}: {name} revision")
        with arenas_of(programs[name]):
            measured[name] = {"start": measure_start(), **measure_runs(tasks, seconds)}
    return measured


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A worktree of the revision, with this one's dashboard, which is not measured."""
    with tempfile.TemporaryDirectory(prefix="hybrid-compare-") as parent:
        folder = Path(parent) / "other"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(folder), revision], check=True)
        try:
            built = ROOT / "dashboard/dist"
            if built.exists():
                (folder / "dashboard/dist").symlink_to(built)
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


@contextmanager
def arenas_of(program: Program) -> Iterator[None]:
    """Arenas that start in this block run this program."""
    before = ArenaProcess.source, ArenaProcess.options
    ArenaProcess.source, ArenaProcess.options = program.folder, program.options
    try:
        yield
    finally:
        ArenaProcess.source, ArenaProcess.options = before


def ratios(rounds: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    found = {}
    for name, path in FIGURES.items():
        both = [(_figure(each["other"], path), _figure(each["this"], path)) for each in rounds]
        logs = [math.log(this / other) for other, this in both]
        mean = statistics.fmean(logs)
        half = 0.0
        if len(logs) > 1:
            error = statistics.stdev(logs) / math.sqrt(len(logs))
            half = error * float(stats.t.ppf(0.975, len(logs) - 1))
        found[name] = {
            "other": statistics.fmean(other for other, _ in both),
            "this": statistics.fmean(this for _, this in both),
            "ratio": math.exp(mean),
            "low": math.exp(mean - half),
            "high": math.exp(mean + half),
        }
    return found


def _figure(measured: Any, path: tuple[str, ...]) -> float:
    for step in path:
        measured = measured[step]
    return float(measured)


def table(found: dict[str, Any]) -> report.Table:
    rows = [
        (name, _number(each["other"]), _number(each["this"]), _ratio(each))
        for name, each in found["ratios"].items()
    ]
    this = " ".join(["this revision", *found["options"].split()])
    return [("mean of the rounds", found["revision"], this, "ratio"), *rows]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _ratio(each: dict[str, float]) -> str:
    return f"{each['ratio']:.2f} [{each['low']:.2f}, {each['high']:.2f}]"


if __name__ == "__main__":
    main()
