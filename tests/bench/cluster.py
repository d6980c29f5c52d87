"""`make bench-cluster`: a NATS cluster of three nodes that loses some, as one JSON object.

throughput   of one node, and of three that keep every stream three times
follower     a node that does not lead RESULTS is killed under load: the gaps between one batch of
leader       results and the next from then on; the same for the node that leads
exactly_once every result counted in ClickHouse after all that
"""

from __future__ import annotations

import asyncio
import statistics
from typing import Any

from tests.bench import report
from tests.bench.processes import running_arena
from tests.bench.throughput import measure_throughput
from tests.e2e.arena import RULES, ArenaProcess
from tests.e2e.nats_cluster import Cluster, exactly_once, pause_after_losing

PACE = 150  # tasks a second while nodes are lost: a batch every tenth of a second


def main() -> None:
    parser = report.parser("bench-cluster", __doc__ or "")
    parser.add_argument("--tasks", type=int, default=100_000, help="of each throughput run")
    parser.add_argument("--rounds", type=int, default=3, help="nodes lost of each kind")
    given = parser.parse_args()
    report.progress("one node")
    with running_arena("--idle") as alone:
        throughput = {"1 node": measure(alone, given.tasks)}
    report.progress("three nodes, three copies")
    with running_arena("--idle", "--nats-nodes", "3") as three:
        throughput["3 nodes"] = measure(three, given.tasks)
        lost = asyncio.run(lose_nodes(three, given.rounds))
    measured = {"throughput": throughput, **lost}
    report.publish("bench-cluster", measured, table(measured), write=given.write)


def table(found: dict[str, Any]) -> report.Table:
    rows = [("the six rules at full pace", "tasks/s", "CPU time of NATS for a task")]
    for nodes, run in found["throughput"].items():
        spent = sum(each for name, each in run["cpu_us_per_task"].items() if "nats" in name)
        rows.append((nodes, f"{run['tasks_per_s']:,}", f"{spent:.0f} µs"))
    for kind in ("leader", "follower"):
        pauses = sorted(found[kind]["pauses_s"])
        lost = f"no results after losing a {kind} of RESULTS, {len(pauses)} times"
        rows.append((lost, f"{pauses[0]:.1f} to {pauses[-1]:.1f} s", ""))
    counted = "yes" if found["exactly_once"] else "NO"
    return [*rows, (f"{found['tasks']:,} tasks sent meanwhile: every result once", counted, "")]


def measure(arena: ArenaProcess, tasks: int) -> dict[str, Any]:
    arena.complete(arena.start_run(tasks=20_000, pace="max"))  # warm-up
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
            report.progress(f"{kind} {number + 1} of {rounds} is lost")
            rows.append(await pause_after_losing(cluster, run, leader=kind == "leader"))
        gaps = [gap for row in rows for gap in row]
        lost[kind] = {
            "pauses_s": [round(max(row), 2) for row in rows],
            "p50_gap_s": round(statistics.median(gaps), 3),
            "max_gap_s": round(max(gaps), 2),
        }
    sent = arena.pause(run)["tasks_sent"]
    return {**lost, "tasks": sent, "exactly_once": exactly_once(arena, run, sent)}


if __name__ == "__main__":
    main()
