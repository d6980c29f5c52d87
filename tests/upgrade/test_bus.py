"""An older arena's bus with a run in the middle: the streams are brought up to date, it goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from shared.bus import streams
from shared.messages import subjects
from shared.messages.runs import RunState
from shared.runtime.settings import Settings
from tests.integration import nats_server
from tests.integration.arena import Arena, connect, eventually
from tests.integration.nats_server import NatsServer
from tests.upgrade.recording import Recording, publish
from tests.waiting import PATIENCE


@pytest.fixture
async def arena(
    old: Recording, impatient: None, stored: Settings, nats_process: NatsServer
) -> AsyncIterator[Arena]:
    """With the streams and readers of the older one, as it made them."""
    client = await nats.connect(
        nats_process.url, user=nats_server.USER, password=nats_server.PASSWORD
    )
    for made in old.streams:
        await _create(client, made["stream"], made["consumers"])
    await client.close()
    bus = await connect(stored)
    arena = Arena(stored, bus)
    yield arena
    await arena.close()
    await bus.broker.stop()


async def _create(client: Client, stream: dict[str, Any], consumers: list[dict[str, Any]]) -> None:
    name = stream["name"]
    await _call_jetstream(client, f"STREAM.CREATE.{name}", {**stream, "metadata": None})
    for consumer in consumers:
        config = {**consumer, "metadata": None}
        durable = consumer["durable_name"]
        request = {"stream_name": name, "config": config}
        await _call_jetstream(client, f"CONSUMER.DURABLE.CREATE.{name}.{durable}", request)


async def _call_jetstream(client: Client, call: str, request: dict[str, Any]) -> None:
    answer = await client.request(f"$JS.API.{call}", json.dumps(request).encode(), timeout=PATIENCE)
    assert "error" not in json.loads(answer.data), answer.data


async def test_a_run_goes_on_where_the_older_arena_left_it(arena: Arena, old: Recording) -> None:
    """Two of three batches were sent, one was simulated: the rest comes out as it did then."""
    left = [
        *old.of(subjects.RUNS_STREAM),
        *old.of(subjects.MODELS)[:2],
        *old.of(subjects.TASKS)[:2],
        *(message for message in old.of(subjects.RESULTS) if message.batch == 0),
        *(message for message in old.of(subjects.DECISIONS) if message.batch == 1),
    ]
    await publish(arena, left)
    for name in ("generator", "recorder", "simulator"):
        await arena.start(name)
    await arena.schedulers("greedy", "oracle", "hybrid_ml")

    async def completed() -> bool:
        (record,) = await arena.runs.refresh()
        return record.state == RunState.COMPLETED

    await eventually(completed)
    columns = [
        *("task_id", "device", "gpu_fraction", "time", "energy", "cost", "gpu_time", "cpu_time"),
    ]
    for scheduler in ("greedy", "oracle"):
        expected = [
            {name: row[name] for name in columns}
            for row in old.rows_now("scheduler_results")
            if row["scheduler"] == scheduler
        ]
        found = arena.store.query(
            f"SELECT {', '.join(columns)} FROM scheduler_results FINAL "
            "WHERE scheduler = {s:String} ORDER BY task_id",
            {"s": scheduler},
        )
        assert found == sorted(expected, key=lambda row: row["task_id"])
    assert await arena.dead_letters() == []
    wanted = {config.name: config for config in streams.streams(arena.settings)}
    for name in (made["stream"]["name"] for made in old.streams):
        config = (await arena.jetstream.stream_info(name)).config
        assert config.allow_direct == wanted[name].allow_direct
        assert config.subjects == wanted[name].subjects
