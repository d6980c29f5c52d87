"""`make bench-cluster`: a NATS cluster of three nodes that loses some, as one JSON object.

throughput   of one node, and of three that keep every stream three times
follower     a node that does not lead RESULTS is killed under load: the gaps between one batch of
leader       results and the next from then on; the same for the node that leads
exactly_once every result counted in ClickHouse after all that
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench import machine
from tests.bench.__main__ import measure_throughput, say
from tests.e2e.arena import RULES, ArenaProcess
from tests.e2e.nats_cluster import Cluster, exactly_once, pause_after_losing

PACE = 150  # tasks a second while nodes are lost: a batch every tenth of a second


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-cluster", description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=100_000, help="of each throughput run")
    parser.add_argument("--rounds", type=int, default=3, help="nodes lost of each kind")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        say("one node")
        alone = ArenaProcess(Path(folder) / "alone", "--idle")
        try:
            throughput = {"1 node": measure(alone, given.tasks)}
        finally:
            alone.stop()
        say("three nodes, three copies")
        three = ArenaProcess(Path(folder) / "three", "--idle", "--nats-nodes", "3")
        try:
            throughput["3 nodes"] = measure(three, given.tasks)
            lost = asyncio.run(lose_nodes(three, given.rounds))
        finally:
            three.stop()
    measured = {"machine": machine.describe(), "throughput": throughput, **lost}
    json.dump(measured, sys.stdout, indent=2)
    print()


def measure(arena: ArenaProcess, tasks: int) -> dict[str, Any]:
    arena.complete(arena.start_run(tasks=20_000, pace="max"), timeout=300)  # warm-up
    found = measure_throughput(arena, tasks, RULES)
    return {name: found[name] for name in ("tasks", "seconds", "tasks_per_s", "cpu_us_per_task")}


async def lose_nodes(arena: ArenaProcess, rounds: int) -> dict[str, Any]:
    cluster = Cluster(arena)
    run = arena.start_run(pace=PACE, seed=5)
    arena.wait_for(run, lambda status: status["tasks_processed"] > 0)
    lost: dict[str, Any] = {}
    for kind in ("follower", "leader"):
        rows = []
        for number in range(rounds):
            say(f"{kind} {number + 1} of {rounds} is lost")
            rows.append(await pause_after_losing(cluster, run, leader=kind == "leader"))
        gaps = [gap for row in rows for gap in row]
        lost[kind] = {
            "pauses_s": [round(max(row), 2) for row in rows],
            "p50_gap_s": round(statistics.median(gaps), 3),
            "max_gap_s": round(max(gaps), 2),
        }
    return {**lost, **finish(arena, run)}


def finish(arena: ArenaProcess, run: str) -> dict[str, Any]:
    """No more tasks; those that were sent get their results, and these are counted."""
    arena.http.post("/api/simulation/pause", params={"run": run}).raise_for_status()
    sent: list[int] = []

    def at_rest(status: dict[str, Any]) -> bool:
        sent.append(status["tasks_sent"])
        time.sleep(1)
        return sent[-2:] == [status["tasks_processed"]] * 2

    arena.wait_for(run, at_rest, timeout=120)
    deadline = time.monotonic() + 60  # until the last of them are stored
    while not (counted := exactly_once(arena, run, sent[-1])) and time.monotonic() < deadline:
        time.sleep(1)
    return {"tasks": sent[-1], "exactly_once": counted}


if __name__ == "__main__":
    main()
