"""A trainer after a crash, and an older model that comes back."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

from shared import models, subjects
from shared.models import AGENT, FOREST
from shared.runs import RunState
from shared.settings import MEGABYTE
from tests.integration.arena import Arena, eventually, unchanged
from tests.integration.learning import learning, reached, rows, shipped, started, versions
from tests.integration.sending import come_to_rest


async def test_a_killed_trainer_goes_on_where_it_was(full_arena: Arena) -> None:
    arena = full_arena
    killed = arena.process("trainer")
    await started(arena, "recorder", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml", "rl_agent")
    rule = learning(forest={"window": 50_000, "tolerance": 100.0})
    names = ["oracle", FOREST, AGENT]
    run = await arena.run(schedulers=names, pace=200, learning=rule)
    for name in (FOREST, AGENT):
        await reached(arena, run, name, 3)
    killed.kill()
    killed.wait(10)
    before = {name: (await shipped(arena, run, name))[-1] for name in (FOREST, AGENT)}
    # The run goes on without it.
    sent = await arena.tasks_sent(run)

    async def more() -> bool:
        return await arena.tasks_sent(run) > sent + 50

    await eventually(more)
    await arena.start("trainer")
    for name in (FOREST, AGENT):
        held = before[name].manifest.version
        await reached(arena, run, name, held + 2)
        found = await shipped(arena, run, name)
        numbers = [model.manifest.version for model in found]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert len({model.manifest.sha256 for model in found}) == len(found)
        assert sum("pre-trained" in model.manifest.reason for model in found) <= 1
    await arena.runs.move(run.run, RunState.PAUSED)

    async def stored() -> bool:
        newest = (await shipped(arena, run, FOREST))[-1].manifest
        return newest.version in [row["version"] for row in await rows(arena, run)]

    await eventually(stored)
    told_of = [row for row in await rows(arena, run) if row["shipped"]]
    # Each once, even if the kill came between a shipment and the note about it.
    assert [row["version"] for row in told_of] == list(range(1, len(told_of) + 1))
    # Its window is that of the one before, and more. Asked here: the bus holds the newest alone.
    old = before[FOREST].manifest
    after = told_of[old.version]
    assert after["first_task"] == -1
    assert old.trained_on < after["trained_on"] <= 100 + after["last_task"] + 1


async def test_a_cold_trainer_that_was_restarted_has_its_window_back(full_arena: Arena) -> None:
    """No model was shipped yet, but 20 results were seen."""
    arena = full_arena
    await started(arena, "recorder", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    trainer = await arena.start("trainer")
    names = ["oracle", FOREST]
    run = await arena.run(schedulers=names, tasks=10**6, pace=20, learning=learning(0))

    async def seen() -> bool:
        (row,) = arena.store.query("SELECT count() AS n FROM training_data FINAL")
        return bool(row["n"] >= 20)

    await eventually(seen)
    await arena.stop(trainer)
    await arena.start("trainer")
    first = (await reached(arena, run, FOREST, 1)).manifest
    assert first.first_task == 0


async def test_a_trainer_that_is_away_holds_nobody_up(full_arena: Arena) -> None:
    """Four times as many results as the bus holds go by; ClickHouse has kept them for it."""
    arena = full_arena
    trainer = await arena.start("trainer")
    await arena.start("generator", results_max_bytes=MEGABYTE // 4)
    await started(arena, "recorder", "simulator")
    await arena.schedulers("oracle", "hybrid_ml")
    rule = learning(forest={"window": 50_000, "tolerance": 100.0})
    run = await arena.run(schedulers=["oracle", FOREST], pace=1000, learning=rule)
    before = (await reached(arena, run, FOREST, 2)).manifest
    await arena.stop(trainer)
    stream = (await arena.stream.stream_info(subjects.RESULTS)).state
    size = stream.bytes / stream.messages

    async def gone_by() -> bool:
        state = (await arena.stream.stream_info(subjects.RESULTS)).state
        return size * (state.last_seq - stream.last_seq) > MEGABYTE

    await eventually(gone_by)
    await arena.start("trainer")
    after = (await reached(arena, run, FOREST, before.version + 1)).manifest
    assert after.last_task > before.last_task
    # Most of them were gone from the bus when it came back.
    assert after.trained_on > 100 + after.last_task / 2


async def test_a_trainer_that_is_slow_misses_nothing(full_arena: Arena) -> None:
    """Results wait for it while there is room; those that it does not read do not."""
    arena = full_arena
    trainer = arena.process("trainer")
    await started(arena, "recorder", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    rule = learning(forest={"window": 50_000, "tolerance": 100.0})
    run = await arena.run(schedulers=["oracle", FOREST], pace=500, learning=rule)
    held_by = [subjects.results(run.run, name) for name in ("oracle", FOREST)]
    before = (await reached(arena, run, FOREST, 2)).manifest
    trainer.send_signal(signal.SIGSTOP)
    sent = await arena.tasks_sent(run)

    async def enough() -> bool:
        return await arena.tasks_sent(run) > sent + 2000

    await eventually(enough)
    info = await arena.stream.stream_info(subjects.RESULTS, subjects_filter=">")
    held = [(info.state.subjects or {})[subject] for subject in held_by]
    assert held[0] > 2 * held[1]
    trainer.send_signal(signal.SIGCONT)
    after = (await reached(arena, run, FOREST, before.version + 2)).manifest
    assert after.last_task > sent
    assert after.trained_on == 100 + after.last_task + 1


async def asked(arena: Arena, body: bytes) -> dict[str, Any]:
    client = arena.bus.broker._connection
    assert client is not None
    answer = await client.request(subjects.ROLLBACK, body, timeout=5)
    said: dict[str, Any] = json.loads(answer.data)
    return said


async def rolled_back(arena: Arena, run: str, version: int, name: str = FOREST) -> dict[str, Any]:
    request = {"run": run, "name": name, "version": version}
    return await asked(arena, json.dumps(request).encode())


async def test_an_older_model_comes_back_as_a_new_version(full_arena: Arena) -> None:
    arena = full_arena
    await started(arena, "recorder", "trainer", "simulator", "generator")
    await arena.schedulers("oracle", "hybrid_ml")
    rule = learning(forest={"tolerance": 100.0, "retrain_every": 150})
    run = await arena.run(schedulers=["oracle", FOREST], pace=75, learning=rule)
    await reached(arena, run, FOREST, 2)
    await arena.runs.move(run.run, RunState.PAUSED)
    await come_to_rest(arena, run)

    async def newest_version() -> int:
        return (await versions(arena, run, FOREST))[-1]

    # A fit may have been under way.
    last = int(await unchanged(newest_version, seconds=2))
    old = await models.version(arena.bus, run.run, FOREST, 1)
    said = await rolled_back(arena, run.run, 1)
    assert said["version"] == last + 1
    newest = await models.newest(arena.bus, run.run, FOREST)
    assert newest is not None
    assert newest.manifest.version == last + 1
    assert newest.manifest.reason == "rolled back to version 1"
    assert (newest.body, newest.manifest.sha256) == (old.body, old.manifest.sha256)

    async def recorded() -> bool:
        found = await rows(arena, run)
        return bool(found) and found[-1]["version"] == last + 1

    await eventually(recorded)
    row = (await rows(arena, run))[-1]
    assert (row["shipped"], row["reason"]) == (True, "rolled back to version 1")
    # Workers take it, and learning goes on behind it.
    await arena.runs.move(run.run, RunState.RUNNING)
    await reached(arena, run, FOREST, last + 2)

    async def used() -> bool:
        (row,) = arena.store.query(
            f"SELECT countIf(model_version = {last + 1}) AS n FROM scheduler_results FINAL"
        )
        return bool(row["n"])

    await eventually(used)
    found = await versions(arena, run, FOREST)
    assert found == list(range(found[0], found[0] + len(found)))


async def test_a_rollback_that_cannot_be_says_why(arena: Arena) -> None:
    await arena.start("trainer")
    run = await arena.run(schedulers=[FOREST], learning=learning())
    await reached(arena, run, FOREST, 1)
    missing = await rolled_back(arena, run.run, 7)
    assert missing["error"].startswith(f"version 7 of hybrid_ml in run {run.run} is not held")
    for stranger, name in (("nobody", FOREST), (run.run, AGENT), (run.run, "greedy")):
        said = await rolled_back(arena, stranger, 1, name)
        assert said == {"error": f"nobody learns {name} in run {stranger} now"}
    for nonsense in (b"", b"garbage", b"{}", b'{"run": "x", "name": "y", "version": "z"}'):
        assert "error" in await asked(arena, nonsense)
    assert await versions(arena, run, FOREST) == [1]


async def test_a_model_that_was_shipped_but_not_told_of_is_told_of(full_arena: Arena) -> None:
    """As when the trainer was killed between the two."""
    arena = full_arena
    await arena.start("recorder")
    trainer = await arena.start("trainer")
    run = await arena.run(schedulers=[FOREST], learning=learning())
    first = await reached(arena, run, FOREST, 1)
    await arena.stop(trainer)
    manifest = first.manifest.model_copy(update={"version": 2, "created_at": time.time()})
    await models.ship(arena.bus, manifest, first.body, after=first.sequence)
    await arena.start("trainer")

    async def recorded() -> bool:
        return [row["version"] for row in await rows(arena, run)] == [1, 2]

    await eventually(recorded)
