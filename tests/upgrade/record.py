"""Write down what this version of the arena puts on the bus and into ClickHouse.

    python -m tests.upgrade.record tests/upgrade/0.1

Run once for each version, before its release, with that version's code: newer ones are tested
against the files (see test_messages.py, test_bus.py and test_tables.py). A short run goes through
real services; every message that it left on the bus, and every table, is written as it is.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from shared.messages import subjects
from shared.store.client import Store
from shared.store.schema import TABLES
from tests.integration import clickhouse_server, nats_server
from tests.integration.arena import Arena, connect, eventually
from tests.integration.conftest import settings_for

SPEC: dict[str, Any] = {
    "name": "written down",
    "schedulers": ["greedy", "oracle", "hybrid_ml"],
    "tasks": 60,
    "pace": "max",
    "workload": {"dependencies": {"probability": 0.3}},
    "learning": {
        "pretrain_tasks": 200,
        "forest": {"trees": 2, "retrain_every": 20, "window": 50, "judge_on": 5},
    },
}
BATCH_TASKS = 20
STREAMS = (
    subjects.RUNS_STREAM,
    subjects.TASKS,
    subjects.DECISIONS,
    subjects.RESULTS,
    subjects.MODELS,
    subjects.EVENTS,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        places = [Path(scratch) / name for name in ("nats", "clickhouse")]
        for place in places:
            place.mkdir()
        with nats_server.running(places[0]) as nats, clickhouse_server.running(places[1]) as store:
            asyncio.run(record(nats.url, store.url, folder))


async def record(nats_url: str, clickhouse_url: str, folder: Path) -> None:
    settings = settings_for(nats_url, clickhouse_url).model_copy(
        update={"batch_tasks": BATCH_TASKS}
    )
    bus = await connect(settings)
    arena = Arena(settings, bus)
    await arena.runs.open()
    # The decisions are written down before anybody takes them off their work queue.
    await arena.start("recorder")
    trainer = await arena.start("trainer")
    await arena.schedulers(*SPEC["schedulers"])
    generator = await arena.start("generator")
    run = await arena.run(**SPEC)
    batches = len(SPEC["schedulers"]) * SPEC["tasks"] // BATCH_TASKS
    await eventually(lambda: arena.count(subjects.DECISIONS), "all tasks decided", equals=batches)
    # It would trim the streams and finish the run.
    await arena.stop(generator)
    messages = await _messages(arena, subjects.DECISIONS)
    await arena.start("simulator")

    async def priced() -> bool:
        results = await arena.count_of(subjects.RESULTS, subjects.results(run.run, "*"))
        rows = arena.store.query("SELECT count() AS n FROM standings FINAL")
        return bool(results == batches == rows[0]["n"])

    await eventually(priced, "all results stored")
    await arena.stop(trainer)

    async def events_stored() -> bool:
        rows = arena.store.query("SELECT count() AS n FROM events FINAL")
        return bool(await arena.count(subjects.EVENTS) == rows[0]["n"])

    await eventually(events_stored, "all events stored")
    for stream in STREAMS:
        if stream != subjects.DECISIONS:
            messages += await _messages(arena, stream)
    streams = [await _stream(arena, stream) for stream in STREAMS]
    await arena.close()
    await bus.broker.stop()
    (folder / "streams.json").write_text(json.dumps(streams, indent=1) + "\n")
    (folder / "messages.json").write_text(json.dumps(messages, indent=1) + "\n")
    store = Store(settings)
    _write_tables(store, folder)
    store.close()


async def _messages(arena: Arena, stream: str) -> list[dict[str, Any]]:
    return [
        {
            "stream": stream,
            "subject": message.subject,
            "headers": message.headers or {},
            "body": base64.b64encode(message.data).decode(),
        }
        for message in await arena.messages(stream)
    ]


async def _stream(arena: Arena, name: str) -> dict[str, Any]:
    """How a stream and its readers were set up."""
    info = await arena.jetstream.stream_info(name)
    consumers = await arena.jetstream.consumers_info(name)
    return {
        "stream": info.config.as_dict(),
        "consumers": [each.config.as_dict() for each in consumers if each.config.durable_name],
    }


def _write_tables(store: Store, folder: Path) -> None:
    statements = {}
    for table in (*TABLES, "schema_migrations"):
        (row,) = store.query(f"SHOW CREATE TABLE {table}")
        (statements[table],) = row.values()
        pq.write_table(store.table(f"SELECT * FROM {table} FINAL"), folder / f"{table}.parquet")
    (folder / "tables.json").write_text(json.dumps(statements, indent=1) + "\n")


if __name__ == "__main__":
    main()
