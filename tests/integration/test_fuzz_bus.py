"""Garbage on every subject while a run goes on: it becomes dead letters, and no result changes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import httpx
import nats
import numpy as np
import pytest
import websockets
from pydantic import SecretStr

from services.trainer.learners import hybrid_ml as forest
from shared.bus import model_registry
from shared.bus.dead_letters import DeadLetterQueue, Filter
from shared.domain.schedulers import FOREST
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions
from shared.domain.workload import Cursor, generate
from shared.messages import batches, signatures, subjects
from shared.messages.runs import RunRecord, RunState
from tests.e2e.arena import FINGERPRINT
from tests.fuzz import amount
from tests.fuzz.bus import STREAMS, Bombardment, Seeds, publish_all
from tests.fuzz.mutate import mutated
from tests.integration import nats_server
from tests.integration.arena import Arena, eventually
from tests.integration.gateway import serving
from tests.integration.model_messages import manifest_of
from tests.integration.watching import watching
from tests.waiting import PATIENCE

SCHEDULERS = ["greedy", "oracle"]
SUBJECTS = {*STREAMS, "models", "rejected", subjects.ROLL_CALL, subjects.ROLLBACK}
KEY = signatures.new_key()
VERSION = 1  # the only model that was ever shipped
# If there is a trainer, it ships nothing of its own.
UNTAUGHT = {"pretrain_tasks": 0, "forest": {"retrain_every": 10**9}}
# Readers are slow beside a flood.
LIMIT = PATIENCE + amount.MESSAGES / 4


def spec(**more: Any) -> dict[str, Any]:
    """The watched run is slow enough to go on for as long as the flood does."""
    return {"schedulers": SCHEDULERS, "seed": 7, "tasks": 200 + 2 * amount.MESSAGES, **more}


async def ship(arena: Arena, run: RunRecord) -> tuple[bytes, str]:
    """A model as the trainer would ship it; gives it and its manifest."""
    tree = RunSpec.parse({"learning": {"forest": {"trees": 1}}})
    tasks, _ = generate(tree, Cursor(), 10)
    body = forest.fit(forest.LabelledTasks(tasks, np.full(10, 0.25)), tree)
    manifest = manifest_of(body, VERSION, run.run)
    arena.bus.settings = arena.bus.settings.model_copy(update={"model_key": SecretStr(KEY)})
    await model_registry.ship(arena.bus, manifest, body, after=0)
    return body, manifest.model_dump_json()


async def seeds(
    arena: Arena, live: RunRecord, stopped: RunRecord, model: tuple[bytes, str]
) -> Seeds:
    """Real messages of both runs."""
    found: dict[str, list[bytes]] = {}
    for run in (live, stopped):
        for subject, stream in (
            (subjects.tasks(run.run), subjects.TASKS),
            (subjects.results(run.run, "greedy"), subjects.RESULTS),
        ):
            bodies = [message.data for message in await arena.messages(stream, subject)]
            found[subject] = bodies[-3:]
    return Seeds(live.run, stopped.run, found, live.model_dump_json().encode(), *model, KEY)


def fingerprints(arena: Arena, run: RunRecord) -> list[dict[str, Any]]:
    """Those of schedulers whose decisions do not depend on when a model arrives."""
    found = arena.store.query(FINGERPRINT.format(run=run.run))
    return [row for row in found if row["scheduler"] != FOREST]


def versions(arena: Arena, run: RunRecord) -> set[int]:
    """The versions of the models that decided in the run."""
    query = "SELECT DISTINCT model_version AS version FROM scheduler_results WHERE run = '{}' "
    found = arena.store.query(query.format(run.run) + f"AND scheduler = '{FOREST}'")
    return {int(row["version"]) for row in found}


async def send_garbage(http: httpx.AsyncClient, run: str, count: int) -> int:
    """A client of the WebSocket that sends garbage, and still gets the standings."""
    random = Random(amount.SEED)
    sent = 0
    while sent < count:
        async with watching(http, run) as watcher:
            try:
                for _ in range(count - sent):
                    whole = json.dumps({"type": "weights", "time": 1, "energy": 0.5}).encode()
                    body = mutated(whole, random)
                    sent += 1
                    text = body.decode(errors="replace")
                    await watcher.connection.send(text if random.random() < 0.7 else body)
                    if len(body) > 4096:
                        break  # it hangs up on those
            except websockets.ConnectionClosed:
                continue
    async with watching(http, run) as watcher:
        first = await watcher.next()
        assert first.get("run") == run, first
    return sent


@pytest.mark.timeout(10 * LIMIT)
async def test_garbage_on_every_subject_changes_no_result(arena: Arena) -> None:
    amount.announce()
    await arena.schedulers(*SCHEDULERS)
    await arena.start("scheduler", policy=FOREST, model_public_key=signatures.public_key(KEY))
    others = ("trainer",) if amount.LARGE else ()  # it takes seconds to start
    for name in ("simulator", "recorder", "generator", *others):
        await arena.start(name)
    quiet = await arena.run(**spec())
    await arena.completed(quiet, seconds=LIMIT)
    expected = fingerprints(arena, quiet)
    assert [row["tasks"] for row in expected] == [quiet.spec.tasks] * len(SCHEDULERS)

    stopped = await arena.run(**spec(tasks=100_000, pace=200))
    live = await arena.run(**spec(pace=100, schedulers=[*SCHEDULERS, FOREST], learning=UNTAUGHT))
    model = await ship(arena, live)

    async def under_way() -> bool:
        counts = [
            await arena.count_of(subjects.RESULTS, subjects.results(run.run, "greedy"))
            for run in (live, stopped)
        ]
        return min(counts) > 0 and VERSION in versions(arena, live)

    await eventually(under_way, seconds=LIMIT)
    await arena.runs.change_state(stopped.run, RunState.STOPPED)
    # Decisions are gone as soon as they are simulated: a worker's are made from the tasks.
    given = await seeds(arena, live, stopped, model)
    given.batches |= await decisions(arena, given)
    bombardment = Bombardment(given, amount.SEED)

    client = await nats.connect(
        arena.settings.nats_url, user=nats_server.USER, password=nats_server.PASSWORD
    )
    before = (await arena.jetstream.stream_info(subjects.REJECTED)).state.last_seq
    async with serving(arena.settings) as http:
        await publish_all(client, bombardment.model_messages(amount.MESSAGES))
        await eventually(
            lambda: arena.count_of(subjects.EVENTS, subjects.event("model_refused")),
            "forged models refused",
            seconds=LIMIT,
            accept=lambda events: events >= len(bombardment.forged) > amount.MESSAGES // 20,
        )
        await publish_all(client, bombardment.stream_messages(amount.MESSAGES))
        unreadable = bombardment.sent.unreadable
        garbage = Counter({stream: unreadable[kind] for kind, stream in STREAMS.items()})

        async def rejected() -> bool:
            state = (await arena.jetstream.stream_info(subjects.REJECTED)).state
            if state.last_seq - before < garbage.total():
                return False
            return garbage <= await letters(arena)

        await eventually(rejected, f"{garbage} as letters", seconds=LIMIT)
        await publish_all(client, bombardment.other_messages(amount.MESSAGES))
        sent = await send_garbage(http, live.run, amount.MESSAGES)
        assert (await http.get("/api/rejected", params={"limit": 500})).status_code == 200
        await eventually(  # a busy service may answer the roll call too late
            lambda: http.get("/api/health"), accept=lambda answer: answer.status_code == 200
        )
    await client.close()
    amount.report("messages", {**bombardment.sent.all, "WebSocket": sent})
    assert set(bombardment.sent.all) == SUBJECTS
    assert min(sent, *bombardment.sent.all.values()) >= amount.MESSAGES

    await arena.completed(live, seconds=LIMIT)
    assert fingerprints(arena, live) == expected
    assert versions(arena, live) <= {0, VERSION}  # 0: before the model had come
    after = await arena.run(**spec())
    await arena.completed(after, seconds=LIMIT)
    assert fingerprints(arena, after) == expected


async def letters(arena: Arena) -> Counter[str]:
    """How many messages of each stream are among the dead letters, each counted once."""
    box, before = DeadLetterQueue(arena.bus), None
    origins: set[tuple[str, int]] = set()
    while True:
        page = await box.page(Filter(), 500, before)
        origins |= {(letter.stream, letter.origin) for letter in page.letters}
        before = page.next_before
        if before is None:
            return Counter(stream for stream, _ in origins)


async def decisions(arena: Arena, given: Seeds) -> dict[str, list[bytes]]:
    """As a worker of greedy would make them of the tasks."""
    made = {}
    for run in (given.live, given.stopped):
        bodies = []
        for body in given.batches[subjects.tasks(run)]:
            batch = batches.decode(body, subjects.tasks(run))
            tasks = batches.tasks_of(batch.rows)
            decided = Decisions(gpu_fraction=tasks.compute_intensity)
            rows = batches.decision_rows(batch.rows, tasks, decided, RunSpec().platform)
            envelope = replace(batch.envelope, kind="decisions", scheduler="greedy", state=None)
            bodies.append(batches.encode(envelope, rows))
        made[subjects.decisions(run, "greedy")] = bodies
    return made
