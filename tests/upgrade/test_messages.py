"""Messages of other versions on the real bus: older ones are read, newer ones if possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from nats.js.errors import NotFoundError

from shared.messages import batches, subjects
from shared.messages.formats import FORMATS, Kind
from tests.integration.arena import Arena, complete, eventually
from tests.upgrade.recording import FOLDERS, Message, Recording, extended, newer, publish

# What does not depend on the cluster's queues: version 0.1 let a part that waits block others.
PRICED = [
    *("task_id", "device", "gpu_fraction", "time", "energy", "cost", "cost_cloud"),
    *("cost_electricity", "gpu_time", "cpu_time", "status"),
]
STORED = ("runs", "tasks", "scheduler_results", "standings", "training_data", "models", "events")


# Not the device: since 0.2 hybrid_ml takes the one that ends first.
DECIDED = ["task_id", "size", "dependencies", "gpu_fraction", "model_version", "probability"]


def as_it_is(message: Message) -> Message:
    return message


def rows_of(arena: Arena, old: Recording, table: str) -> list[dict[str, Any]]:
    """In the columns that the old table had; of the events only those of that time."""
    names = old.rows_now(table)[0]
    known = len(old.of(subjects.EVENTS))
    only = f"WHERE sequence <= {known}" if table == "events" else ""
    sql = f"SELECT {', '.join(names)} FROM {table} FINAL {only} ORDER BY ALL"
    rows: list[dict[str, Any]] = arena.store.table(sql).to_pylist()
    return rows


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(list(row.values())))


@pytest.mark.parametrize("seen", [as_it_is, extended])
async def test_the_recorder_stores_what_the_old_one_did(
    arena: Arena, old: Recording, seen: Callable[[Message], Message]
) -> None:
    await publish(arena, [seen(message) for message in old.messages])
    await arena.start("recorder")
    await eventually(
        lambda: {table: len(rows_of(arena, old, table)) for table in STORED},
        accept=lambda counted: counted == {table: old.rows(table).num_rows for table in STORED},
    )
    for table in STORED:
        found = in_order(rows_of(arena, old, table))
        expected = in_order([{name: row[name] for name in found[0]} for row in old.rows_now(table)])
        if table == "runs":  # its spec has got the fields that are new
            found, expected = without(found, "spec"), without(expected, "spec")
        assert found == expected, table
    assert await arena.dead_letters() == []


def without(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != column} for row in rows]


@pytest.mark.parametrize("seen", [as_it_is, extended])
async def test_the_simulator_goes_on_from_an_old_checkpoint(
    arena: Arena, old: Recording, seen: Callable[[Message], Message]
) -> None:
    results = old.of(subjects.RESULTS, subjects.results(old.run, "greedy"))
    decisions = old.of(subjects.DECISIONS, subjects.decisions(old.run, "greedy"))
    assert len(results) == len(decisions) > 2
    before = [*old.of(subjects.RUNS_STREAM), *results[:2], *decisions[2:]]
    await publish(arena, [seen(message) for message in before])
    await arena.start("simulator")
    await eventually(lambda: arena.count(subjects.RESULTS), equals=len(results))
    for found, message in zip(
        (await arena.batches(subjects.RESULTS, ">"))[2:], results[2:], strict=True
    ):
        expected = complete(batches.decode(message.body, message.subject))
        assert found.rows.select(PRICED).equals(expected.rows.select(PRICED))
        finish, before = (batches.column(rows, "finish") for rows in (found.rows, expected.rows))
        assert (finish <= before).all()
        assert replace(found.envelope, state=None) == replace(expected.envelope, state=None)


@pytest.mark.parametrize("seen", [as_it_is, extended])
async def test_a_worker_decides_with_an_old_model(
    arena: Arena, old: Recording, seen: Callable[[Message], Message]
) -> None:
    """All tasks had been decided by the first model before the second was shipped."""
    model = old.of(subjects.MODELS, subjects.model(old.run, "hybrid_ml"))[0]
    decided = old.of(subjects.DECISIONS, subjects.decisions(old.run, "hybrid_ml"))
    before = [*old.of(subjects.RUNS_STREAM), model, *old.of(subjects.TASKS)]
    await publish(arena, [seen(message) for message in before])
    await arena.schedulers("hybrid_ml")
    await eventually(lambda: arena.count(subjects.DECISIONS), equals=len(decided))
    found = await arena.batches(subjects.DECISIONS, ">")
    expected = [complete(batches.decode(message.body, message.subject)) for message in decided]
    decided_now = {batch.envelope.batch: batch.rows.select(DECIDED) for batch in found}
    decided_then = {batch.envelope.batch: batch.rows.select(DECIDED) for batch in expected}
    assert decided_now == decided_then
    assert expected[0].rows.column("model_version")[0].as_py() == 1


async def test_the_gateway_shows_an_old_run(http: httpx.AsyncClient, arena: Arena) -> None:
    old = Recording(FOLDERS[0])
    await publish(arena, old.messages)
    assert [run["run"] for run in (await http.get("/api/runs")).json()] == [old.run]
    tasks = old.rows("tasks").num_rows

    async def shown() -> Any:
        found = (await http.get(f"/api/runs/{old.run}")).json()
        results = {name: standing["results"] for name, standing in found["schedulers"].items()}
        return results == {"greedy": tasks, "oracle": tasks, "hybrid_ml": tasks}

    await eventually(shown)


async def test_messages_of_a_newer_format_become_dead_letters_with_the_reason(
    arena: Arena, old: Recording
) -> None:
    later = subjects.RUNS_STREAM, subjects.TASKS, subjects.RESULTS, subjects.EVENTS
    unknown = [newer(message) for stream in later for message in old.of(stream)]
    await publish(arena, [*old.of(subjects.RUNS_STREAM), *unknown[1:]])
    await publish(arena, [unknown[0]])
    await arena.start("recorder")
    await eventually(lambda: arena.dead_letters(), accept=lambda rows: len(rows) == len(unknown))
    kinds: dict[str, Kind] = {"$KV": "run", "tasks": "batch", "results": "batch"}
    for letter in await arena.dead_letters():
        kind = kinds.get(letter["Hybrid-Subject"].partition(".")[0], "event")
        known = FORMATS[kind]
        reason = f"{kind} format {known + 1} is newer than the {known} that this version reads"
        assert letter["Hybrid-Reason"].endswith(f"{reason}: upgrade it")
    # And it goes on.
    await publish(arena, [*old.of(subjects.RUNS_STREAM), *old.of(subjects.TASKS)])
    await eventually(lambda: len(rows_of(arena, old, "tasks")) == old.rows("tasks").num_rows)


async def test_a_run_of_a_newer_format_is_left_alone(arena: Arena, old: Recording) -> None:
    """Its tasks would be decided by a spec that is not understood."""
    (record,) = old.of(subjects.RUNS_STREAM)
    await publish(arena, [newer(record), *old.of(subjects.TASKS)])
    await arena.schedulers("greedy")
    await eventually(
        lambda: arena.dead_letters(), accept=lambda rows: len(rows) == len(old.of(subjects.TASKS))
    )
    assert await arena.count(subjects.DECISIONS) == 0
    assert await arena.runs.refresh() == []
    (reason,) = {letter["Hybrid-Reason"] for letter in await arena.dead_letters()}
    known = FORMATS["run"]
    newest = f"run format {known + 1} is newer than the {known} that this version reads"
    assert reason.endswith(f"{newest}: upgrade it")


async def test_a_newer_checkpoint_is_kept_for_a_version_that_can_read_it(
    arena: Arena, old: Recording
) -> None:
    """Decisions wait on the bus; the newer results are neither moved away nor overwritten."""
    results = old.of(subjects.RESULTS, subjects.results(old.run, "greedy"))[:2]
    decisions = old.of(subjects.DECISIONS, subjects.decisions(old.run, "greedy"))[2:]
    unknown = [newer(message) for message in results]
    await publish(arena, [*old.of(subjects.RUNS_STREAM), *unknown, *decisions])
    await arena.start("simulator")
    await arena.start("generator")
    durable = subjects.simulator_durable("greedy")

    async def tried_twice() -> bool:
        try:
            info = await arena.jetstream.consumer_info(subjects.DECISIONS, durable)
        except NotFoundError:
            return False
        return bool(info.num_redelivered)

    await eventually(tried_twice)
    held = await arena.messages(subjects.RESULTS)
    assert [message.data for message in held] == [message.body for message in unknown]
    assert await arena.count(subjects.DECISIONS) == len(decisions)
    assert await arena.dead_letters() == []


async def test_a_model_of_a_newer_format_is_refused(arena: Arena, old: Recording) -> None:
    model = old.of(subjects.MODELS, subjects.model(old.run, "hybrid_ml"))[0]
    before = [*old.of(subjects.RUNS_STREAM), newer(model), *old.of(subjects.TASKS)]
    await publish(arena, before)
    await arena.schedulers("hybrid_ml")
    await eventually(lambda: arena.count(subjects.DECISIONS), equals=len(old.of(subjects.TASKS)))
    (note,) = await arena.events("model_refused")
    assert "model format 2 is newer than the 1 that this version reads" in note
    (batch, *_) = await arena.batches(subjects.DECISIONS, ">")
    assert batch.rows.column("model_version")[0].as_py() == 0
