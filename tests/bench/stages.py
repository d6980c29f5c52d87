"""`make bench-stages`: what one run cannot spread over processes, and how large its messages are.

Everything else is shared out by adding processes; these three take turns: the generator of a run
sends batch after batch, a scheduler's virtual cluster takes batch after batch, and a stream has one
leader. CPU time where work is done, wall time where NATS or ClickHouse answers, each the best of
some rounds, since whatever else runs only adds; one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from services.recorder import rows
from services.scheduler import policy as policies
from services.scheduler.policy import check
from services.simulator.simulation import Simulation
from shared import batches, subjects
from shared.batches import Batch
from shared.bus import Bus
from shared.settings import Settings
from shared.spec import RunSpec
from shared.store.client import Store
from shared.stream import Position
from shared.workload import generate
from tests.bench import machine
from tests.e2e.arena import RULES
from tests.integration import clickhouse_server, nats_server
from tests.integration.conftest import settings_for

BATCH = int(Settings.model_fields["batch_tasks"].default)
ROUNDS = 20
PUBLISHES = 40
LANES = 8
INSERT_BATCHES = 50


def main() -> None:
    spec = RunSpec.parse({"seed": 1, "schedulers": ["greedy"]})
    found: dict[str, Any] = {"machine": machine.describe(), "batch_tasks": BATCH}
    work = measure_work(spec)
    results = work.pop("results")
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        found |= work
        found["nats"] = asyncio.run(measure_nats(Path(folder), results))
        found["clickhouse"] = measure_clickhouse(Path(folder), results)
    json.dump(found | ceilings(found), sys.stdout, indent=2)
    print()


def cpu_us(work: Callable[[], Any]) -> float:
    """Microseconds of CPU time per task."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return round(best / BATCH * 1e6, 3)


def measure_work(spec: RunSpec) -> dict[str, Any]:
    def emit() -> bytes:
        position = Position()
        made, cursor = generate(spec, position.cursor, BATCH)
        return encoded(position.next_message("bench", made, cursor))

    sent = emit()

    def decide(name: str) -> bytes:
        policy = policies.load(name)
        batch = batches.decode(sent, "tasks.bench")
        tasks = batches.tasks_of(batch.rows)
        said = check(policy.decide(tasks, spec), tasks, spec, name)
        made = batches.decision_rows(batch.rows, tasks, said, spec.cluster.gpus)
        envelope = replace(batch.envelope, kind="decisions", scheduler=name, state=None)
        return encoded(Batch(envelope, made))

    decided = decide("greedy")

    def simulate() -> bytes:
        batch = batches.decode(decided, "decisions.bench.greedy")
        made, after = Simulation.new(spec).advance(batch.rows)
        envelope = replace(batch.envelope, kind="results", state=after.state())
        return encoded(Batch(envelope, made))

    results = simulate()

    def record() -> Any:
        return rows.result_table([batches.decode(results, "results.bench.greedy")])

    return {
        "cpu_us_per_task": {
            "generate": cpu_us(emit),
            "decide": {name: cpu_us(lambda name=name: decide(name)) for name in RULES},
            "simulate": cpu_us(simulate),
            "record": cpu_us(record),
        },
        "bytes_per_task": {
            "tasks": round(len(sent) / BATCH, 1),
            "decisions": round(len(decided) / BATCH, 1),
            "results": round(len(results) / BATCH, 1),
        },
        "results": results,
    }


def encoded(batch: Batch) -> bytes:
    return batches.encode(batch.envelope, batch.rows)


async def measure_nats(folder: Path, body: bytes) -> dict[str, float]:
    """Results of one lane, each published behind the one before; then of eight lanes at once."""
    (folder / "nats").mkdir()
    with nats_server.running(folder / "nats") as server:
        settings = settings_for(server.url)
        bus = Bus(settings, "bench", CollectorRegistry(), keeps_streams=True)
        await bus.connect()
        alone = await publishing(bus, body, ["alone"])
        together = await publishing(bus, body, [f"lane{number}" for number in range(LANES)])
        await bus.broker.stop()
    return {
        "publish_ms": round(alone / PUBLISHES * 1e3, 3),
        "one_lane_mb_per_s": round(PUBLISHES * len(body) / alone / 1e6, 1),
        "eight_lanes_mb_per_s": round(PUBLISHES * LANES * len(body) / together / 1e6, 1),
    }


async def publishing(bus: Bus, body: bytes, lanes: list[str]) -> float:
    async def lane(run: str, name: str) -> None:
        last = 0
        for number in range(PUBLISHES):
            last = await bus.publish(
                subjects.results(run, name),
                body,
                stream=subjects.RESULTS,
                message_id=f"{run}.{name}.{number}",
                after=last,
            )

    best = float("inf")
    for number in range(ROUNDS):
        began = time.perf_counter()
        await asyncio.gather(*(lane(f"bench{number}", name) for name in lanes))
        best = min(best, time.perf_counter() - began)
        await bus.stream.purge_stream(subjects.RESULTS)
    return best


def measure_clickhouse(folder: Path, body: bytes) -> dict[str, int]:
    batch = batches.decode(body, "results.bench.greedy")
    (folder / "clickhouse").mkdir()
    with clickhouse_server.running(folder / "clickhouse") as server:
        store = Store(settings_for("nats://127.0.0.1:1", server.url))
        store.migrate()
        table = rows.result_table([batch] * INSERT_BATCHES)
        store.insert("scheduler_results", table, token="first")
        best = float("inf")
        for number in range(ROUNDS):
            began = time.perf_counter()
            store.insert("scheduler_results", table, token=str(number))
            best = min(best, time.perf_counter() - began)
        store.close()
    return {"rows_per_s_one_insert_at_a_time": round(table.num_rows / best)}


def ceilings(found: dict[str, Any]) -> dict[str, Any]:
    """Tasks a second that one run can have at most, by what takes turns."""
    cpu, wait = found["cpu_us_per_task"], found["nats"]["publish_ms"] * 1e3 / BATCH
    return {
        "most_tasks_per_s_of_one_run": {
            "generator": round(1e6 / (cpu["generate"] + wait)),
            "a_lane": round(1e6 / (cpu["simulate"] + wait)),
        }
    }


if __name__ == "__main__":
    main()
