"""A trainer after a restart, and rollbacks to an older model."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

from shared.bus import model_registry
from shared.domain.schedulers import AGENT, FOREST
from shared.messages import subjects
from shared.messages.models import Manifest
from shared.messages.runs import RunState
from shared.runtime.settings import MEGABYTE
from tests.integration.arena import Arena, eventually, unchanged
from tests.integration.learning import (
    learning,
    model_rows,
    start,
    stored_models,
    versions,
    wait_for_version,
)
from tests.integration.sending import come_to_rest


async def test_a_killed_trainer_resumes_where_it_was(arena: Arena) -> None:
    killed = arena.process("trainer")
    await start(arena, "recorder", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml", "rl_agent")
    rule = learning(forest={"window": 50_000, "tolerance": 100.0})
    names = ["oracle", FOREST, AGENT]
    run = await arena.run(schedulers=names, pace=200, learning=rule)
    for name in (FOREST, AGENT):
        await wait_for_version(arena, run, name, 3)
    killed.kill()
    killed.wait(60)
    before = {name: (await stored_models(arena, run, name))[-1] for name in (FOREST, AGENT)}
    # The run continues without it.
    sent = await arena.tasks_sent(run)
    await eventually(lambda: arena.tasks_sent(run), accept=lambda number: number > sent + 50)
    await arena.start("trainer")
    for name in (FOREST, AGENT):
        last = before[name].manifest.version
        await wait_for_version(arena, run, name, last + 2)
        models = await stored_models(arena, run, name)
        numbers = [model.manifest.version for model in models]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert len({model.manifest.sha256 for model in models}) == len(models)
        assert sum("pre-trained" in model.manifest.reason for model in models) <= 1
    await arena.runs.change_state(run.run, RunState.PAUSED)

    async def stored() -> bool:
        newest = (await stored_models(arena, run, FOREST))[-1].manifest
        return newest.version in [row["version"] for row in await model_rows(arena, run)]

    await eventually(stored)
    published = [row for row in await model_rows(arena, run) if row["shipped"]]
    # Each once, even if the trainer was killed between publishing a model and its event.
    assert [row["version"] for row in published] == list(range(1, len(published) + 1))
    # Its window includes that of the one before. From the store: the bus has the newest only.
    old = before[FOREST].manifest
    after = published[old.version]
    assert after["first_task"] == -1
    assert old.trained_on < after["trained_on"] <= 100 + after["last_task"] + 1


async def test_a_trainer_without_a_model_restores_its_window_on_restart(arena: Arena) -> None:
    """After 20 results."""
    await start(arena, "recorder", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    trainer = await arena.start("trainer")
    names = ["oracle", FOREST]
    run = await arena.run(schedulers=names, tasks=10**6, pace=20, learning=learning(0))

    async def enough_results() -> bool:
        (row,) = arena.store.query("SELECT count() AS n FROM training_data FINAL")
        return bool(row["n"] >= 20)

    await eventually(enough_results)
    await arena.stop(trainer)
    await arena.start("trainer")
    first = (await wait_for_version(arena, run, FOREST, 1)).manifest
    assert first.first_task == 0


async def test_a_stopped_trainer_does_not_delay_the_run(arena: Arena) -> None:
    """Four times as many results as the bus can hold; it reads them from ClickHouse."""
    trainer = await arena.start("trainer")
    await arena.start("generator", results_max_bytes=MEGABYTE // 4)
    await start(arena, "recorder", "simulator")
    await arena.schedulers("oracle", "hybrid_ml")
    rule = learning(forest={"window": 50_000, "tolerance": 100.0})
    run = await arena.run(schedulers=["oracle", FOREST], pace=1000, learning=rule)
    before = (await wait_for_version(arena, run, FOREST, 2)).manifest
    await arena.stop(trainer)
    stream = (await arena.jetstream.stream_info(subjects.RESULTS)).state
    size = stream.bytes / stream.messages

    async def enough_results() -> bool:
        state = (await arena.jetstream.stream_info(subjects.RESULTS)).state
        return size * (state.last_seq - stream.last_seq) > MEGABYTE

    await eventually(enough_results)
    await arena.start("trainer")
    after = (await wait_for_version(arena, run, FOREST, before.version + 1)).manifest
    assert after.last_task > before.last_task
    # Most of them were trimmed from the bus when it restarted.
    assert after.trained_on > 100 + after.last_task / 2


async def test_a_slow_trainer_misses_nothing(arena: Arena) -> None:
    """Its results are kept on the bus while there is room, but not those of other schedulers."""
    trainer = arena.process("trainer")
    await start(arena, "recorder", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml", "greedy")
    rule = learning(forest={"window": 50_000, "tolerance": 100.0})
    run = await arena.run(schedulers=["oracle", FOREST, "greedy"], pace=500, learning=rule)
    both = [subjects.results(run.run, name) for name in ("oracle", "greedy")]
    before = (await wait_for_version(arena, run, FOREST, 2)).manifest
    trainer.send_signal(signal.SIGSTOP)
    sent = await arena.tasks_sent(run)
    await eventually(lambda: arena.tasks_sent(run), accept=lambda number: number > sent + 2000)

    async def stored() -> list[int]:
        info = await arena.jetstream.stream_info(subjects.RESULTS, subjects_filter=">")
        return [(info.state.subjects or {})[subject] for subject in both]

    # Streams are trimmed every few seconds: right after that, few of greedy's are left.
    await eventually(stored, accept=lambda counts: counts[0] > 2 * counts[1])
    trainer.send_signal(signal.SIGCONT)

    async def caught_up() -> Manifest | None:
        newest = (await wait_for_version(arena, run, FOREST, before.version + 1)).manifest
        return newest if newest.last_task > sent else None

    after = await eventually(caught_up)
    assert after.trained_on == 100 + after.last_task + 1


async def request_rollback(arena: Arena, body: bytes) -> dict[str, Any]:
    client = arena.bus.broker._connection
    answer = await client.request(subjects.ROLLBACK, body, timeout=60)
    reply: dict[str, Any] = json.loads(answer.data)
    return reply


async def roll_back(arena: Arena, run: str, version: int, name: str = FOREST) -> dict[str, Any]:
    request = {"run": run, "name": name, "version": version}
    return await request_rollback(arena, json.dumps(request).encode())


async def test_a_rollback_publishes_the_older_model_as_a_new_version(arena: Arena) -> None:
    await start(arena, "recorder", "trainer", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    rule = learning(forest={"tolerance": 100.0, "retrain_every": 150})
    run = await arena.run(schedulers=["oracle", FOREST], pace=75, learning=rule)
    await wait_for_version(arena, run, FOREST, 2)
    await arena.runs.change_state(run.run, RunState.PAUSED)
    await come_to_rest(arena, run)
    # A fit may have been in progress.
    last = (await unchanged(lambda: versions(arena, run, FOREST), seconds=2))[-1]
    old = await model_registry.read_version(arena.bus, run.run, FOREST, 1)
    reply = await roll_back(arena, run.run, 1)
    assert reply["version"] == last + 1
    newest = await model_registry.read_newest(arena.bus, run.run, FOREST)
    assert newest.manifest.version == last + 1
    assert newest.manifest.reason == "rolled back to version 1"
    assert (newest.body, newest.manifest.sha256) == (old.body, old.manifest.sha256)
    await eventually(
        lambda: model_rows(arena, run),
        accept=lambda rows: bool(rows) and rows[-1]["version"] == last + 1,
    )
    row = (await model_rows(arena, run))[-1]
    assert (row["shipped"], row["reason"]) == (True, "rolled back to version 1")
    # Workers use it, and training continues after it.
    await arena.runs.change_state(run.run, RunState.RUNNING)
    await wait_for_version(arena, run, FOREST, last + 2)

    async def used() -> bool:
        (row,) = arena.store.query(
            f"SELECT countIf(model_version = {last + 1}) AS n FROM scheduler_results FINAL"
        )
        return bool(row["n"])

    await eventually(used)
    stored = await versions(arena, run, FOREST)
    assert stored == list(range(stored[0], stored[0] + len(stored)))


async def test_an_impossible_rollback_says_why(arena: Arena) -> None:
    await arena.start("trainer")
    run = await arena.run(schedulers=[FOREST], learning=learning())
    await wait_for_version(arena, run, FOREST, 1)
    missing = await roll_back(arena, run.run, 7)
    assert missing["error"].startswith(f"version 7 of hybrid_ml in run {run.run} is not stored")
    for other, name in (("unknown", FOREST), (run.run, AGENT), (run.run, "greedy")):
        reply = await roll_back(arena, other, 1, name)
        assert reply == {"error": f"run {other} has no active learner {name}"}
    for garbage in (b"", b"garbage", b"{}", b'{"run": "x", "name": "y", "version": "z"}'):
        assert "error" in await request_rollback(arena, garbage)
    assert await versions(arena, run, FOREST) == [1]


async def test_the_missing_event_of_a_published_model_is_published(arena: Arena) -> None:
    """As when the trainer was killed between publishing the two."""
    await arena.start("recorder")
    trainer = await arena.start("trainer")
    run = await arena.run(schedulers=[FOREST], learning=learning())
    first = await wait_for_version(arena, run, FOREST, 1)
    await arena.stop(trainer)
    manifest = first.manifest.model_copy(update={"version": 2, "created_at": time.time()})
    await model_registry.ship(arena.bus, manifest, first.body, after=first.sequence)
    await arena.start("trainer")
    await eventually(
        lambda: model_rows(arena, run),
        accept=lambda rows: [row["version"] for row in rows] == [1, 2],
    )
