"""`make bench-stages`: what one run cannot spread over processes, and how large its messages are.

Everything else is shared out by adding processes; these three take turns: the generator of a run
sends batch after batch, a scheduler's virtual cluster takes batch after batch, and a stream has one
leader. CPU time where work is done, wall time where NATS or ClickHouse answers, each the best of
some rounds, since whatever else runs only adds; one JSON object.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from services.recorder import contents
from services.scheduler import policy as policies
from services.scheduler.policy import check
from services.simulator.simulation import Simulation
from shared.bus.client import Bus
from shared.bus.task_stream import Position
from shared.domain.spec import RunSpec
from shared.domain.workload import generate
from shared.messages import batches, subjects
from shared.messages.batches import Batch
from shared.runtime.settings import Settings
from shared.store.client import Store
from tests.bench import report
from tests.bench.throughput import SIX_RULES
from tests.integration import clickhouse_server, nats_server
from tests.integration.conftest import settings_for

BATCH = int(Settings.model_fields["batch_tasks"].default)
ROUNDS = 20
PUBLISHES = 40
SCHEDULERS = 8
INSERT_BATCHES = 50


def main() -> None:
    given = report.parser("bench-stages", __doc__ or "").parse_args()
    spec = RunSpec.parse({"seed": 1, "schedulers": ["greedy"]})
    found: dict[str, Any] = {"batch_tasks": BATCH}
    work = measure_work(spec)
    results = work.pop("results")
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        found |= work
        found["nats"] = asyncio.run(measure_nats(Path(folder), results))
        found["clickhouse"] = measure_clickhouse(Path(folder), results)
    found |= ceilings(found)
    report.publish("bench-stages", found, table(found), write=given.write)


def table(found: dict[str, Any]) -> report.Table:
    cpu, size, most = (
        found[name] for name in ("cpu_us_per_task", "bytes_per_task", "most_tasks_per_s_of_one_run")
    )
    nats, inserted = found["nats"], found["clickhouse"]["rows_per_s_one_insert_at_a_time"]
    deciding = ", ".join(f"{name} {spent:.2f}" for name, spent in cpu["decide"].items())
    return [
        (f"batches of {BATCH:,} tasks", ""),
        ("generate a task", f"{cpu['generate']:.2f} µs of CPU"),
        ("decide a task", f"µs of CPU: {deciding}"),
        ("simulate a decision", f"{cpu['simulate']:.2f} µs of CPU"),
        ("turn a result into a row", f"{cpu['record']:.2f} µs of CPU"),
        ("on the bus", ", ".join(f"{each:.0f} bytes in {name}" for name, each in size.items())),
        ("publish a batch of results", f"{nats['publish_ms']:.1f} ms"),
        ("results of one scheduler into NATS", f"{nats['one_scheduler_mb_per_s']:,.0f} MB/s"),
        (
            f"results of {SCHEDULERS} schedulers at once into NATS",
            f"{nats['eight_schedulers_mb_per_s']:,.0f} MB/s",
        ),
        ("results into ClickHouse, one insert at a time", f"{inserted:,} rows/s"),
        ("most that one generator can send", f"{most['generator']:,} tasks/s"),
        ("most that one virtual cluster can take", f"{most['a_scheduler']:,} tasks/s"),
    ]


def cpu_us(work: Callable[[], Any]) -> float:
    """Microseconds of CPU time per task."""
    return round(best_of(work, time.process_time) / BATCH * 1e6, 3)


def best_of(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        began = clock()
        work()
        best = min(best, clock() - began)
    return best


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
        decisions = check(policy.decide(tasks, spec), tasks, spec, name)
        made = batches.decision_rows(batch.rows, tasks, decisions, spec.platform)
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
        return contents.result_tables([batches.decode(results, "results.bench.greedy")])

    return {
        "cpu_us_per_task": {
            "generate": cpu_us(emit),
            "decide": {name: cpu_us(lambda name=name: decide(name)) for name in SIX_RULES},
            "simulate": cpu_us(simulate),
            "record": cpu_us(record),
        },
        "bytes_per_task": {
            name: round(len(body) / BATCH, 1)
            for name, body in (("tasks", sent), ("decisions", decided), ("results", results))
        },
        "results": results,
    }


def encoded(batch: Batch) -> bytes:
    return batches.encode(batch.envelope, batch.rows)


async def measure_nats(folder: Path, body: bytes) -> dict[str, float]:
    """Results of one scheduler, each published after the one before; then of eight at once."""
    (folder / "nats").mkdir()
    with nats_server.running(folder / "nats") as server:
        settings = settings_for(server.url)
        bus = Bus(settings, "bench", CollectorRegistry(), creates_streams=True)
        await bus.connect()
        alone = await publishing(bus, body, ["alone"])
        together = await publishing(bus, body, [f"s{number}" for number in range(SCHEDULERS)])
        await bus.broker.stop()
    return {
        "publish_ms": round(alone / PUBLISHES * 1e3, 3),
        "one_scheduler_mb_per_s": round(PUBLISHES * len(body) / alone / 1e6, 1),
        "eight_schedulers_mb_per_s": round(PUBLISHES * SCHEDULERS * len(body) / together / 1e6, 1),
    }


async def publishing(bus: Bus, body: bytes, schedulers: list[str]) -> float:
    async def one(run: str, name: str) -> None:
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
        await asyncio.gather(*(one(f"bench{number}", name) for name in schedulers))
        best = min(best, time.perf_counter() - began)
        await bus.jetstream.purge_stream(subjects.RESULTS)
    return best


def measure_clickhouse(folder: Path, body: bytes) -> dict[str, int]:
    batch = batches.decode(body, "results.bench.greedy")
    (folder / "clickhouse").mkdir()
    with clickhouse_server.running(folder / "clickhouse") as server:
        store = Store(settings_for("nats://127.0.0.1:1", server.url))
        store.migrate()
        table = contents.result_tables([batch] * INSERT_BATCHES)["scheduler_results"]
        store.insert("scheduler_results", table, token="first")
        tokens = map(str, count())
        best = best_of(
            lambda: store.insert("scheduler_results", table, token=next(tokens)), time.perf_counter
        )
        store.close()
    return {"rows_per_s_one_insert_at_a_time": round(table.num_rows / best)}


def ceilings(found: dict[str, Any]) -> dict[str, Any]:
    """The highest rate of one run that each sequential stage allows."""
    cpu, wait = found["cpu_us_per_task"], found["nats"]["publish_ms"] * 1e3 / BATCH
    return {
        "most_tasks_per_s_of_one_run": {
            "generator": round(1e6 / (cpu["generate"] + wait)),
            "a_scheduler": round(1e6 / (cpu["simulate"] + wait)),
        }
    }


if __name__ == "__main__":
    main()
