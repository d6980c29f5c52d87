"""`make bench-trace`: a large SWF trace replayed through an arena, as one JSON object on stdout.

Rows and seconds of the replay and of everything stored, the peak memory of the replaying process
and of every process of the arena, and what ClickHouse counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from tests.bench import report
from tests.bench.processes import processes, running_arena
from tests.counting import once
from tests.e2e.arena import HYBRID, ArenaProcess

SCHEDULERS = ("greedy", "oracle")
LOOK_SECONDS = 0.5
MEGABYTE = 2**20


def main() -> None:
    parser = report.parser("bench-trace", __doc__ or "")
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the trace")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        path = Path(folder) / "large.swf"
        report.progress(f"writing {given.megabytes} MB")
        rows = write_trace(path, given.megabytes * MEGABYTE)
        trace = {"megabytes": given.megabytes, "rows": rows}
        measured = {"trace": trace, **measure_replay(path, rows)}
    report.publish("bench-trace", measured, table(measured), write=given.write)


def table(found: dict[str, Any]) -> report.Table:
    trace, replay, peaks = found["trace"], found["replay"], found["peak_rss_mib"]
    largest = sorted(peaks, key=peaks.__getitem__, reverse=True)[:3]
    return [
        ("", ""),
        ("trace", f"{trace['megabytes']:,} MB, {trace['rows']:,} jobs"),
        (
            f"until everything is stored, {replay['schedulers']} schedulers",
            f"{replay['stored_s']:.0f} s, {replay['rows_per_s']:,} jobs/s",
        ),
        ("memory of the replaying process", f"{peaks['replay']} MiB"),
        ("the largest processes", ", ".join(f"{name} {peaks[name]} MiB" for name in largest)),
    ]


def write_trace(path: Path, size: int) -> int:
    """Jobs of all sizes; every tenth waits for another."""
    jobs = written = 0
    with path.open("w") as file:
        while written < size:
            written += file.write("".join(line(job) for job in range(jobs + 1, jobs + 10_001)))
            jobs += 10_000
    return jobs


def line(job: int) -> str:
    run, processors = 1 + job * 7919 % 5000, 1 + job % 64
    computed, memory = run * (job % 100) / 100, job * 104_729 % 400_000
    parent = job - 1 - job % 50 if job % 10 == 9 and job > 50 else -1
    return (
        f"{job} {job * 2} {job % 60} {run} {processors} {computed:.1f} {memory} {processors} "
        f"{run * 2} -1 1 {job % 300} 1 {job % 40} 1 1 {parent} -1\n"
    )


def measure_replay(path: Path, rows: int) -> dict[str, Any]:
    with running_arena("--idle") as arena:
        report.progress(f"replaying {rows:,} rows to {', '.join(SCHEDULERS)}")
        began = time.monotonic()
        command = [HYBRID, "trace", "replay", str(path), "--schedulers", ",".join(SCHEDULERS)]
        with subprocess.Popen(
            [*command, "--wait", "--json", "--data-dir", str(arena.folder)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "HYBRID_URL": ""},
        ) as replay:
            peaks = watch_memory(arena, replay)
            answer = json.loads(replay.stdout.read())
        wall = time.monotonic() - began
        run = answer["run"]
        stored = arena.counted(run)
    assert stored == once(rows, SCHEDULERS), stored
    return {
        "replay": {
            "schedulers": len(SCHEDULERS),
            "sent_s": round(answer["seconds"], 2),
            "stored_s": round(wall, 2),
            "rows_per_s": round(rows / wall),
            "skipped": answer["skipped"],
            "adjusted": answer["adjusted"],
        },
        "stored": stored,
        "peak_rss_mib": peaks,
    }


def watch_memory(arena: ArenaProcess, replay: subprocess.Popen[str]) -> dict[str, int]:
    """Peak memory of each process while the replay ran."""
    peaks: dict[str, int] = {}
    watched = {"replay": psutil.Process(replay.pid), **processes(arena)}
    while replay.poll() is None:
        for name, process in watched.items():
            try:
                resident = process.memory_info().rss // MEGABYTE
            except psutil.NoSuchProcess:
                continue
            peaks[name] = max(peaks.get(name, 0), resident)
        time.sleep(LOOK_SECONDS)
    return peaks


if __name__ == "__main__":
    main()
