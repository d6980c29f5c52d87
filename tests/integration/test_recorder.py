"""The recorder on the real NATS and ClickHouse: rows equal messages, once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.bus.service import Service
from shared.bus.task_stream import Position
from shared.domain.workload import Cursor, generate
from shared.messages import batches, subjects
from shared.messages.batches import Batch, Envelope
from shared.messages.events import Event
from shared.messages.runs import RunRecord, RunState
from tests.integration import clickhouse_server
from tests.integration.arena import Arena, complete, eventually
from tests.integration.nats_server import free_port
from tests.integration.publishing import publish_run

TOTALS = ("time", "wait", "turnaround", "energy", "cost", "cost_cloud", "cost_electricity")


async def recorded(arena: Arena) -> None:
    """Until the recorder has acknowledged everything."""

    async def done() -> bool:
        for stream in (*_STREAMS, subjects.EVENTS, subjects.RUNS_STREAM):
            info = await arena.jetstream.consumer_info(stream, subjects.RECORDER_DURABLE)
            if info.num_pending or info.num_ack_pending:
                return False
        return True

    await eventually(done, "all recorded")


_STREAMS = (subjects.TASKS, subjects.RESULTS)


def expected_rows(found: list[Batch], names: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "run": batch.envelope.run,
            "batch": batch.envelope.batch,
            **{name: row[name] for name in names},
        }
        for batch in found
        for row in complete(batch).rows.to_pylist()
    ]


async def start_run(arena: Arena, *schedulers: str) -> RunRecord:
    spec = {"workload": {"dependencies": {"probability": 0.5}}, "name": "Größe 'x'"}
    return await arena.run(schedulers=list(schedulers), tasks=30, **spec)


async def test_rows_equal_the_messages(arena: Arena) -> None:
    run = await start_run(arena, "greedy", "oracle")
    await arena.start("recorder")
    sent = await publish_run(arena, run)
    await recorded(arena)
    names = batches.TASKS.names
    rows = arena.store.query(
        f"SELECT run, batch, {', '.join(names)} FROM tasks FINAL ORDER BY task_id"
    )
    assert rows == expected_rows(sent["tasks"], names)
    assert any(row["dependencies"] for row in rows)
    names = [name for name in batches.RESULTS.names if name not in batches.TASKS.names[1:]]
    for scheduler in ("greedy", "oracle"):
        rows = arena.store.query(
            f"SELECT run, batch, {', '.join(names)} FROM scheduler_results FINAL "
            "WHERE scheduler = {s:String} ORDER BY task_id",
            {"s": scheduler},
        )
        assert rows == expected_rows(sent[scheduler], names)
    published = arena.store.query("SELECT DISTINCT batch, published_at FROM tasks ORDER BY batch")
    assert [row["published_at"].timestamp() for row in published] == pytest.approx(
        [batch.envelope.published_at for batch in sent["tasks"]], abs=2e-6
    )


async def test_training_data_is_the_oracles(arena: Arena) -> None:
    run = await start_run(arena, "oracle", "greedy")
    await arena.start("recorder")
    sent = await publish_run(arena, run)
    await recorded(arena)
    rows = arena.store.query("SELECT * FROM training_data FINAL ORDER BY task_id")
    assert rows == [
        {
            "run": run.run,
            **{name: row[name] for name in ("task_id", "size", "compute_intensity")},
            "memory_required": row["memory_required"],
            "optimal_gpu_fraction": row["gpu_fraction"],
            "optimal_time": row["time"],
        }
        for batch in sent["oracle"]
        for row in complete(batch).rows.to_pylist()
    ]


async def test_the_last_standing_equals_the_sums_over_the_results(arena: Arena) -> None:
    run = await start_run(arena, "greedy", "oracle")
    await arena.start("recorder")
    await publish_run(arena, run, count=10, each=40)
    await recorded(arena)
    for scheduler in ("greedy", "oracle"):
        who = {"s": scheduler}
        (summed,) = arena.store.query(
            "SELECT count() AS tasks, countIf(status = 'failed') AS failed, "
            "countIf(gpu_time > 0) AS gpu_tasks, max(finish) AS makespan, "
            + ", ".join(f"sum({name}) AS total_{name}" for name in TOTALS)
            + " FROM scheduler_results FINAL WHERE scheduler = {s:String}",
            who,
        )
        of_each = ", ".join(f"sumIf(gpu_time, device = {gpu})" for gpu in range(4))
        (busy,) = arena.store.query(
            f"SELECT sum(cpu_time) AS cpu, [{of_each}] AS gpus FROM scheduler_results FINAL "
            "WHERE scheduler = {s:String}",
            who,
        )
        (last,) = arena.store.query(
            "SELECT * FROM standings FINAL WHERE scheduler = {s:String} "
            "ORDER BY batch DESC LIMIT 1",
            who,
        )
        assert (last["batch"], last["tasks"]) == (9, 400)
        for name, value in summed.items():
            assert last[name] == pytest.approx(value, rel=1e-9), name
        assert last["busy"] == pytest.approx([*busy["gpus"], busy["cpu"]], rel=1e-9)


def counts(arena: Arena) -> dict[str, int]:
    tables = ("tasks", "scheduler_results", "standings", "training_data", "runs", "events")
    return {
        table: arena.store.query(f"SELECT count() AS n FROM {table} FINAL")[0]["n"]
        for table in tables
    }


@pytest.mark.parametrize("grouping", [64, 1, 7])
async def test_a_redelivery_doubles_nothing_however_it_is_grouped(
    arena: Arena, grouping: int
) -> None:
    run = await start_run(arena, "greedy", "oracle")
    recorder = await arena.start("recorder")
    await publish_run(arena, run)
    await recorded(arena)
    before = counts(arena)
    assert before["tasks"] == 30
    assert before["scheduler_results"] == 60
    assert before["standings"] == 12
    assert before["training_data"] == 30
    standings = arena.store.query("SELECT * FROM standings FINAL ORDER BY scheduler, batch")
    await arena.stop(recorder)
    for stream in (*_STREAMS, subjects.EVENTS, subjects.RUNS_STREAM):
        await arena.jetstream.delete_consumer(stream, subjects.RECORDER_DURABLE)
    # Patient: on a busy machine a slow insert must not look like a lost one.
    patience = timedelta(seconds=30)
    again = await arena.start("recorder", record_messages=grouping, ack_wait=patience)
    await recorded(arena)
    stored = again.registry.get_sample_value
    assert stored("hybrid_stored_rows_total", {"table": "scheduler_results"}) == 60
    after = counts(arena)
    after["events"] -= 1  # of the second recorder's start
    assert after == before
    assert standings == arena.store.query("SELECT * FROM standings FINAL ORDER BY scheduler, batch")


async def test_messages_wait_while_clickhouse_is_down(arena: Arena, tmp_path: Path) -> None:
    """It is killed, messages come, it is started again on the same folder."""
    port = str(free_port())
    arena.settings = arena.settings.model_copy(
        update={"clickhouse_url": f"http://127.0.0.1:{port}"}
    )
    run = await start_run(arena, "greedy")
    with clickhouse_server.running(tmp_path, "--port", port) as server:
        recorder = await arena.start("recorder")
        await publish_run(arena, run, count=3)
        await recorded(arena)
        server.kill()
        tasks, cursor = generate(run.spec, Cursor(15, 15, 0.0), 5)
        late = Position(Cursor(), 3).next_message(run.run, tasks, cursor)
        await arena.bus.publish_batch(late)
        await eventually(lambda: "clickhouse" in recorder.report().problems)
        info = await arena.jetstream.consumer_info(subjects.TASKS, subjects.RECORDER_DURABLE)
        assert info.ack_floor.stream_seq == 3
    with clickhouse_server.running(tmp_path, "--port", port):
        await recorded(arena)
        assert counts(arena)["tasks"] == 20
        assert counts(arena)["scheduler_results"] == 15
        await arena.stop(recorder)
        arena.store.close()


async def test_a_recorder_waits_for_a_clickhouse_that_starts_later(
    arena: Arena, tmp_path: Path
) -> None:
    port = str(free_port())
    arena.settings = arena.settings.model_copy(
        update={"clickhouse_url": f"http://127.0.0.1:{port}"}
    )
    run = await start_run(arena, "greedy")
    starting = asyncio.create_task(arena.start("recorder"))
    await publish_run(arena, run, count=2)
    done, _ = await asyncio.wait([starting], timeout=0.3)
    assert not done
    with clickhouse_server.running(tmp_path, "--port", port):
        recorder = await starting
        await recorded(arena)
        assert counts(arena)["tasks"] == 10
        await arena.stop(recorder)
        arena.store.close()


async def test_nothing_is_stored_of_a_run_that_was_deleted_meanwhile(arena: Arena) -> None:
    run = await start_run(arena, "greedy")
    await arena.start("recorder")
    await publish_run(arena, run, count=2)
    await recorded(arena)
    before = counts(arena)
    await arena.runs.delete(run.run)
    tasks, cursor = generate(run.spec, Cursor(10, 10, 0.0), 5)
    await arena.bus.publish_batch(Position(Cursor(), 2).next_message(run.run, tasks, cursor))
    await recorded(arena)
    assert counts(arena)["tasks"] == before["tasks"] == 10
    (letter,) = await arena.dead_letters()
    assert letter["Hybrid-Reason"] == f"no run {run.run!r}"


def garbage(run: RunRecord, sent: dict[str, list[Batch]]) -> list[tuple[str, bytes, str]]:
    """Subject, body and what the reason must say."""
    task, result = sent["tasks"][0], sent["greedy"][0]
    subject = subjects.results(run.run, "greedy")
    stateless = replace(result.envelope, batch=99, state=None)
    timeless = replace(result.envelope, batch=99, published_at=1e300)
    elsewhere = replace(task.envelope, run="unknown")
    ancient = run.model_dump(mode="json") | {"run": "ancient", "created_at": 1e300}
    return [
        ("tasks.unknown", b"", "not an Arrow message"),
        ("tasks.unknown", batches.encode(elsewhere, task.rows), "no run 'unknown'"),
        (subjects.tasks(run.run), batches.encode(task.envelope, task.rows)[:-300], "not an Arrow"),
        (subject, batches.encode(stateless, result.rows), "without a standing"),
        (subject, batches.encode(timeless, result.rows), "is not a time"),
        ("events.x", b"\x00\xff", "not a readable event"),
        ("events.x", b'{"kind": "x", "message": 3}', "not a readable event"),
        ("events.x", Event(kind="x", message="", service="", at=1e300).model_dump_json().encode(),
         "is not a time"),
        ("$KV.runs.x", b"garbage", "not a readable run record"),
        ("$KV.runs.y", run.model_dump_json().encode(), "the record of another run"),
        ("$KV.runs.ancient", json.dumps(ancient).encode(), "is not a time"),
    ]  # fmt: skip


async def test_unreadable_messages_do_not_hold_up_the_good_ones(arena: Arena) -> None:
    """All of them wait for the recorder, so they come in one pull with good ones around them."""
    run = await start_run(arena, "greedy")
    sent = await publish_run(arena, run, count=2)
    bad = garbage(run, sent)
    for subject, body, _ in bad:
        await arena.publish_raw(subject, body)
    for number in (2, 3):
        tasks, cursor = generate(run.spec, Cursor(5 * number, 5 * number, 0.0), 5)
        await arena.bus.publish_batch(
            Position(Cursor(), number).next_message(run.run, tasks, cursor)
        )
    await arena.bus.publish_event(
        Event(kind="note", message="good", service="test"), message_id="good"
    )
    await arena.runs.change_state(run.run, RunState.PAUSED)
    await arena.start("recorder")
    await recorded(arena)
    found = counts(arena)
    assert (found["tasks"], found["scheduler_results"], found["runs"]) == (20, 10, 1)
    assert arena.store.query("SELECT message FROM events FINAL WHERE kind = 'note'") == [
        {"message": "good"}
    ]
    assert arena.store.query("SELECT state, name FROM runs FINAL") == [
        {"state": "paused", "name": "Größe 'x'"}
    ]
    letters = await arena.messages(subjects.REJECTED)
    said = {
        (letter.headers["Hybrid-Subject"], letter.data): letter.headers["Hybrid-Reason"]
        for letter in letters
    }
    assert len(letters) == len(bad)
    for subject, body, reason in bad:
        assert reason in said[subject, body]


async def test_a_value_that_no_column_takes_holds_up_nobody(arena: Arena) -> None:
    """Readable as an event, but its number is larger than the table's."""
    told = {"run": "r", "name": "hybrid_ml", "sha256": "", "format": "onnx", "trained_on": 1}
    for number, version in enumerate((1, 2**40, 2)):
        event = Event(
            kind="model",
            service="trainer",
            message=f"note {number}",
            data={"manifest": {**told, "version": version}, "shipped": True},
        )
        await arena.bus.publish_event(event, message_id=str(number))
    await arena.start("recorder")
    await eventually(
        lambda: arena.store.query("SELECT version FROM models FINAL ORDER BY version"),
        accept=lambda models: models == [{"version": 1}, {"version": 2}],
    )
    (letter,) = await arena.dead_letters()
    assert letter["Hybrid-Subject"] == "events.model"
    assert letter["Hybrid-Reason"].startswith("a value fits no column: ")


async def test_what_clickhouse_refuses_for_good_becomes_a_dead_letter(arena: Arena) -> None:
    """Retrying for ever would block everything behind it. The events about the rejected events are
    refused as well, which must come to an end."""
    recorder = await arena.start("recorder")
    run = await start_run(arena, "greedy")
    await recorded(arena)
    await arena.stop(recorder)
    arena.store.command("ALTER TABLE events DROP COLUMN data")
    note = Event(kind="note", message="cannot be stored", service="test")
    await arena.bus.publish_event(note, message_id="note")
    await publish_run(arena, run, count=2)
    await arena.start("recorder")
    await recorded(arena)
    letters = await arena.dead_letters()
    refused = [each for each in letters if each["Hybrid-Subject"] == "events.note"]
    assert len(refused) == 1
    assert "data" in refused[0]["Hybrid-Reason"]
    assert counts(arena)["tasks"] == 10
    assert arena.store.query("SELECT count() AS n FROM events WHERE kind = 'note'") == [{"n": 0}]


async def test_a_deletion_in_the_book_of_runs_is_no_dead_letter(arena: Arena) -> None:
    await arena.start("recorder")
    run = await start_run(arena, "greedy")
    await arena.runs.delete(run.run)
    await recorded(arena)
    assert await arena.dead_letters() == []


async def test_events_and_runs_are_stored_with_all_they_say(arena: Arena) -> None:
    run = await start_run(arena, "greedy")
    said = {"a": [1, 2.5, None], "ü": "ö"}
    event = Event(
        kind="note", message="läuft", service="test", run=run.run, at=1.6e9 + 0.25, data=said
    )
    await arena.bus.publish_event(event, message_id="1")
    await arena.start("recorder")
    await recorded(arena)
    (row,) = arena.store.query("SELECT * FROM events FINAL WHERE kind = 'note'")
    assert (row["message"], row["service"], row["run"]) == ("läuft", "test", run.run)
    assert row["at"].timestamp() == 1.6e9 + 0.25
    assert json.loads(row["data"]) == said
    (row,) = arena.store.query("SELECT * FROM runs FINAL")
    assert (row["run"], row["seed"], row["tasks"]) == (run.run, 42, 30)
    assert row["schedulers"] == ["greedy"]
    assert json.loads(row["spec"]) == run.spec.model_dump(mode="json")


async def test_a_bus_that_was_wiped_does_not_lose_its_first_messages(arena: Arena) -> None:
    """ClickHouse still has what the old bus brought under the same sequence numbers."""
    for _ in range(2):
        run = await start_run(arena, "greedy")
        recorder: Service = await arena.start("recorder", record_messages=1)
        await publish_run(arena, run, count=2)
        await recorded(arena)
        await arena.stop(recorder)
        for stream in (*_STREAMS, subjects.RUNS_STREAM, subjects.EVENTS):
            await arena.jetstream.delete_stream(stream)
        await arena.bus.connect()
        arena.runs._bucket = None
        await arena.runs.open()
    rows = arena.store.query("SELECT run, count() AS n FROM tasks FINAL GROUP BY run")
    assert [row["n"] for row in rows] == [10, 10]


async def test_results_of_an_envelope_are_read_once_per_batch_number(arena: Arena) -> None:
    """Two messages for the same batch (a redelivery after the window) are one set of rows."""
    run = await start_run(arena, "greedy")
    sent = await publish_run(arena, run, count=1)
    (result,) = sent["greedy"]
    again: Envelope = result.envelope
    await arena.publish_raw(again.subject, batches.encode(again, result.rows))
    await arena.start("recorder")
    await recorded(arena)
    assert counts(arena)["scheduler_results"] == 5
    assert counts(arena)["standings"] == 1
