"""Recorded workloads through a whole arena, the way a user replays them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.counting import once
from tests.e2e.arena import HYBRID, ArenaProcess, hybrid
from tests.waiting import PATIENCE, until

SAMPLES = Path(__file__).parents[2] / "docs" / "traces"
TASKS = 6000


@pytest.fixture
def long_trace(tmp_path: Path) -> Path:
    """Every tenth line is broken; each sound task waits for the one before it."""
    path = tmp_path / "long.csv"
    with path.open("w") as file:
        file.write("task_id,size,compute_intensity,memory_required,arrival_time,dependencies\n")
        for n in range(TASKS):
            file.write(f"t{n},{100 + n % 7},0.5,64,{n / 100},{f't{n - 1}' if n else ''}\n")
            if n % 10 == 9:
                file.write("this is no task\n")
    return path


@contextmanager
def replaying(arena: ArenaProcess, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    command = [HYBRID, "trace", "replay", *map(str, arguments), "--data-dir", str(arena.folder)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HYBRID_URL": ""},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def some_sent(arena: ArenaProcess, name: str, more_than: int) -> str:
    """The run of a replay, once it has so many tasks."""

    def started() -> list[str]:
        runs = arena.http.get("/api/runs").json()
        return [run["run"] for run in runs if run["name"].startswith(name)]

    (run,) = until(started)
    arena.wait_for(run, lambda status: status["tasks_sent"] > more_than)
    return run


def settled_tasks_sent(arena: ArenaProcess, run: str) -> int:
    """Once it does not change any more. The gateway answers from a cache for a second."""
    counts: list[int] = []

    def settled() -> bool:
        counts.append(arena.status(run)["tasks_sent"])
        time.sleep(1.5)
        return counts[-1:] == counts[-2:-1]

    until(settled)
    return counts[-1]


def replay(arena: ArenaProcess, path: Path, *options: str) -> dict[str, Any]:
    done = hybrid(
        "trace", "replay", str(path), *options, "--wait", "--json", "--data-dir", str(arena.folder)
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_killed_replay_goes_on_where_it_was_and_no_task_is_lost_or_doubled(
    shared_arena: ArenaProcess, long_trace: Path
) -> None:
    arena = shared_arena
    slowly = ("--pace", "100")  # a minute: it must not be over before it is interrupted
    with replaying(arena, long_trace, "--schedulers", "greedy,oracle", *slowly) as process:
        run = some_sent(arena, "long.csv", more_than=100)
        process.kill()
        assert process.wait(PATIENCE) == -signal.SIGKILL
    killed_at = arena.status(run)["tasks_sent"]
    with replaying(arena, long_trace, "--resume", run, *slowly) as process:
        # More than what the killed one had on its way, so that it is this one that sends.
        some_sent(arena, "long.csv", more_than=killed_at + 300)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert f"--resume {run}" in errors
    assert "Traceback" not in errors
    stopped_at = settled_tasks_sent(arena, run)
    assert killed_at < stopped_at < TASKS

    found = replay(arena, long_trace, "--resume", run)
    assert (found["state"], found["tasks"]) == ("completed", TASKS)
    assert found["sent"] == TASKS - stopped_at
    assert found["skipped"] == {"too few columns": TASKS // 10}
    assert arena.counted(run) == once(TASKS, ["greedy", "oracle"])
    (row,) = arena.sql(
        "SELECT countIf(size != 100 + task_id % 7 OR arrival_time != task_id / 100 OR "
        "dependencies != if(task_id = 0, [], [task_id - 1])) AS wrong "
        f"FROM tasks FINAL WHERE run = '{run}'"
    )
    assert row["wrong"] == 0


def test_a_sample_takes_as_long_on_the_cpus_as_where_it_was_recorded(
    shared_arena: ArenaProcess, tmp_path: Path
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("cluster: {devices: [{type: cpu, count: 32}]}")
    options = ("--schedulers", "cpu_only", "--spec", str(spec))
    found = replay(shared_arena, SAMPLES / "cluster.swf", *options)
    assert (found["state"], found["tasks"]) == ("completed", 97)
    assert shared_arena.counted(found["run"]) == once(97, ["cpu_only"])
    (row,) = shared_arena.sql(
        "SELECT max(time) AS longest, sum(time) AS total FROM scheduler_results FINAL "
        f"WHERE run = '{found['run']}'"
    )
    lines = (SAMPLES / "cluster.swf").read_text().splitlines()
    jobs = [line.split() for line in lines if not line.startswith(";")]
    seconds = [int(job[3]) for job in jobs if job[10] != "5" and int(job[3]) > 0]
    assert row["longest"] == pytest.approx(max(seconds), rel=1e-9)
    assert row["total"] == pytest.approx(sum(seconds), rel=1e-9)
