"""Dead letters sent again: nothing is lost, nothing doubled, however often it is tried."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import nats.errors
import pyarrow.compute as pc
import pytest

from shared.bus.client import RESUME_FROM, Bus
from shared.bus.dead_letter_replay import Replays
from shared.bus.dead_letters import DeadLetterQueue
from shared.bus.task_stream import STATE_READERS
from shared.errors import NotAllowed
from shared.messages import subjects
from shared.messages.batches import Batch, encode
from shared.messages.runs import RunRecord, RunState
from tests.integration.arena import Arena, eventually, rows_of
from tests.integration.gateway import assert_problem, serving
from tests.integration.partitions import decided, in_one_batch
from tests.integration.publishing import publish_run


@pytest.fixture
def replays(arena: Arena) -> Replays:
    return Replays(arena.bus, arena.runs, DeadLetterQueue(arena.bus))


@pytest.fixture
async def gateway(arena: Arena) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(arena.settings) as client:
        yield client


async def letters(arena: Arena) -> list[int]:
    return [message.seq for message in await arena.messages(subjects.REJECTED)]


async def put_aside(arena: Arena, subject: str, stream: str, body: bytes, origin: int = 1) -> int:
    """As a reader does that cannot read it; the number of the letter."""
    await arena.bus.reject(subject, stream, origin, body, "too new")
    return (await letters(arena))[-1]


def stored(arena: Arena, run: RunRecord) -> list[dict[str, object]]:
    return arena.store.query(
        "SELECT scheduler, count() AS n, uniqExact(task_id) AS ids, sum(time) AS time "
        "FROM scheduler_results FINAL WHERE run = {run:String} GROUP BY 1 ORDER BY 1",
        {"run": run.run},
    )


async def test_decisions_that_were_rejected_hold_their_lane_until_they_are_replayed(
    arena: Arena, gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's record was lost while its decisions came, and is restored."""
    worker, *_ = await arena.schedulers("greedy")
    generator = await arena.start("generator")
    run = await arena.run(schedulers=["greedy"], tasks=500)
    subject = subjects.decisions(run.run, "greedy")
    await eventually(lambda: arena.count_of(subjects.DECISIONS, subject), equals=10)
    await arena.stop(worker, generator)
    book = await arena.jetstream.key_value(subjects.RUNS_BUCKET)
    record = (await book.get(run.run)).value
    await book.delete(run.run)
    other = await arena.run(schedulers=["greedy"], pace=1)  # so that the lane is served
    await arena.runs.change_state(other.run, RunState.STOPPED)
    await arena.start("simulator")
    await eventually(lambda: letters(arena), accept=lambda rows: len(rows) == 10)
    await book.put(run.run, record)
    await arena.start("recorder")
    await arena.start("generator")

    # The last is missing: the lane waits for it, with all the others at hand.
    for number in range(10, 1, -1):
        answer = await gateway.post(f"/api/rejected/{number}/replay")
        assert answer.status_code == 200, answer.text
        assert answer.json()["subject"] == subject
    assert await letters(arena) == [1]

    # The first attempt dies after it has published, before it removes the letter.
    async def die(self: DeadLetterQueue, sequence: int) -> bool:
        raise nats.errors.ConnectionClosedError

    with monkeypatch.context() as patched:
        patched.setattr(DeadLetterQueue, "remove", die)
        assert_problem(await gateway.post("/api/rejected/1/replay"), 503)
    await arena.completed(run)
    assert (await gateway.post("/api/rejected/1/replay")).status_code == 200
    assert_problem(await gateway.post("/api/rejected/1/replay"), 404, "no dead letter 1")

    expected = in_one_batch(run, decided(run, 1, 500))
    (row,) = stored(arena, run)
    assert (row["n"], row["ids"]) == (500, 500)
    assert row["time"] == pytest.approx(pc.sum(expected.column("time")).as_py(), rel=1e-12)
    assert await letters(arena) == []


async def test_tasks_and_results_replayed_in_mid_run_lead_nobody_back(
    arena: Arena, gateway: httpx.AsyncClient
) -> None:
    """As after a reader that could not read them, while the others have long gone on."""
    await arena.schedulers("greedy", "oracle")
    for name in ("recorder", "simulator", "generator"):
        await arena.start(name)
    run = await arena.run(schedulers=["greedy", "oracle"], tasks=1200, pace=400)
    bodies = {}

    async def first_results() -> bool:
        for subject, stream in (
            (subjects.tasks(run.run), subjects.TASKS),
            (subjects.results(run.run, "greedy"), subjects.RESULTS),
        ):
            for message in (await arena.messages(stream, subject))[:1]:
                bodies.setdefault((subject, stream), (message.data, message.seq))
        return len(bodies) == 2

    await eventually(first_results)
    await eventually(lambda: arena.tasks_sent(run), accept=lambda number: number > 200)
    for (subject, stream), (body, origin) in bodies.items():
        number = await put_aside(arena, subject, stream, body, origin)
        answer = await gateway.post(f"/api/rejected/{number}/replay")
        assert answer.status_code == 200, answer.text
    assert (await arena.runs.get(run.run)).active
    await arena.completed(run)
    rows = stored(arena, run)
    assert [(row["scheduler"], row["n"], row["ids"]) for row in rows] == [
        ("greedy", 1200, 1200),
        ("oracle", 1200, 1200),
    ]
    expected = in_one_batch(run, decided(run, 1, 1200))
    total = pc.sum(expected.column("time")).as_py()
    assert rows[0]["time"] == pytest.approx(total, rel=1e-12)
    assert await letters(arena) == []


async def test_what_a_reader_missed_is_stored_and_the_sequence_stands_where_it_stood(
    arena: Arena, gateway: httpx.AsyncClient
) -> None:
    run = await arena.run(schedulers=["greedy"], pace=1)
    sent = await publish_run(arena, run, count=4)
    places = {}
    for stream, batch in (
        (subjects.TASKS, sent["tasks"][1]),
        (subjects.RESULTS, sent["greedy"][1]),
    ):
        subject = batch.envelope.subject
        message = (await arena.messages(stream, subject))[1]
        places[subject] = stream
        await put_aside(arena, subject, stream, message.data, message.seq)
        await arena.jetstream.delete_msg(stream, message.seq)
    await arena.start("recorder")

    async def count(expected: int) -> bool:
        rows = arena.store.query("SELECT count() AS n FROM scheduler_results FINAL")
        rows += arena.store.query("SELECT count() AS n FROM tasks FINAL")
        return [row["n"] for row in rows] == [expected, expected]

    await eventually(lambda: count(15))
    for number in (1, 2):
        assert (await gateway.post(f"/api/rejected/{number}/replay")).status_code == 200
    await eventually(lambda: count(20))
    for subject, stream in places.items():
        last = await arena.bus.last_message(subject, stream, STATE_READERS[stream])
        assert last.envelope.batch == 3
        assert (await arena.messages(stream, subject))[-1].seq == last.sequence
    greedy = await arena.batches(subjects.RESULTS, subjects.results(run.run, "greedy"))
    assert [batch.envelope.batch for batch in greedy] == [0, 2, 3, 1]
    assert rows_of([greedy[0], greedy[3], *greedy[1:3]]).equals(rows_of(sent["greedy"]))


async def test_a_batch_that_is_next_goes_on_as_if_nothing_had_been(
    arena: Arena, replays: Replays
) -> None:
    run = await arena.run(schedulers=["greedy"], pace=1)
    sent = await publish_run(arena, run, count=3)
    subject = subjects.results(run.run, "greedy")
    lost = (await arena.messages(subjects.RESULTS, subject))[-1]
    await arena.jetstream.delete_msg(subjects.RESULTS, lost.seq)
    too_early = await put_aside(arena, subject, subjects.RESULTS, body_of(sent["greedy"][2], 4))
    with pytest.raises(
        NotAllowed, match="batch 2 is next, not 4; replay the batches before it first"
    ):
        await replays.replay(too_early)
    number = await put_aside(arena, subject, subjects.RESULTS, lost.data, lost.seq)
    replayed = await replays.replay(number)
    newest = (await arena.messages(subjects.RESULTS, subject))[-1]
    assert (newest.seq, newest.data) == (replayed.sequence, lost.data)
    assert RESUME_FROM not in newest.headers
    assert await letters(arena) == [too_early]


def body_of(batch: Batch, number: int) -> bytes:
    envelope = batch.envelope
    renumbered = type(envelope)(
        envelope.kind, envelope.run, number, 1e9, envelope.scheduler, envelope.state
    )
    return encode(renumbered, batch.rows)


async def test_a_stopped_run_takes_no_tasks_and_no_decisions(
    arena: Arena, replays: Replays
) -> None:
    run = await arena.run(schedulers=["greedy"], pace=1)
    (tasks,) = (await publish_run(arena, run, count=1))["tasks"]
    decision = decided(run, 2, 5)[1]
    await arena.runs.change_state(run.run, RunState.STOPPED)
    for batch, stream in ((tasks, subjects.TASKS), (decision, subjects.DECISIONS)):
        body = encode(batch.envelope, batch.rows)
        number = await put_aside(arena, batch.envelope.subject, stream, body, 1)
        with pytest.raises(NotAllowed, match=f"run {run.run} is stopped"):
            await replays.replay(number)


async def test_results_of_a_completed_run_can_still_be_stored(
    arena: Arena, replays: Replays
) -> None:
    """Its last messages have been trimmed, so no batch is next."""
    run = await arena.run(schedulers=["greedy"], pace=1)
    sent = (await publish_run(arena, run, count=2))["greedy"][1]
    await arena.jetstream.purge_stream(subjects.RESULTS)
    await arena.runs.change_state(run.run, RunState.COMPLETED)
    body = encode(sent.envelope, sent.rows)
    number = await put_aside(arena, sent.envelope.subject, subjects.RESULTS, body)
    replayed = await replays.replay(number)
    (message,) = await arena.messages(subjects.RESULTS)
    assert (message.seq, message.data) == (replayed.sequence, body)


async def test_a_record_is_written_again_only_while_nothing_newer_is_there(
    arena: Arena, replays: Replays
) -> None:
    subject = "$KV.runs.x"
    origin = await arena.publish_raw(subject, b"a record of tomorrow")
    number = await put_aside(arena, subject, subjects.RUNS_STREAM, b"a record of tomorrow", origin)
    replayed = await replays.replay(number)
    assert replayed.sequence == origin + 1
    origin = await arena.publish_raw(subject, b"an old one")
    await arena.publish_raw(subject, b"a newer one")
    number = await put_aside(arena, subject, subjects.RUNS_STREAM, b"an old one", origin)
    with pytest.raises(NotAllowed, match="the run has a newer record, which would be overwritten"):
        await replays.replay(number)
    assert await letters(arena) == [number]
    last = await arena.jetstream.get_last_msg(subjects.RUNS_STREAM, subject)
    assert last.data == b"a newer one"


async def test_tasks_that_are_still_unreadable_stay_dead_letters(
    arena: Arena, replays: Replays
) -> None:
    number = await put_aside(arena, "tasks.x", subjects.TASKS, b"garbage")
    with pytest.raises(NotAllowed, match="cannot be replayed: not an Arrow message"):
        await replays.replay(number)
    assert await letters(arena) == [number]
    assert await arena.count(subjects.TASKS) == 0


async def test_a_letter_that_was_cut_or_made_up_is_refused(
    arena: Arena, replays: Replays, bus: Bus
) -> None:
    client = bus.broker._connection
    largest = b"g" * client.max_payload
    cut = await put_aside(arena, "tasks.x", subjects.TASKS, largest)
    with pytest.raises(
        NotAllowed, match=f"of its {len(largest)} bytes are stored: it was too large"
    ):
        await replays.replay(cut)
    made_up = [
        ("$JS.API.STREAM.DELETE.TASKS", "TASKS"),
        ("tasks.x", "NOTHING"),
        ("tasks.*", "TASKS"),
        ("tasks.x.y", "TASKS"),
        ("results.a.b", "TASKS"),
        ("$KV.other.x", "KV_runs"),
        ("models.x.y", "MODELS"),
        ("", ""),
    ]
    for subject, stream in made_up:
        headers = {"Hybrid-Subject": subject, "Hybrid-Stream": stream}
        ack = await arena.jetstream.publish("rejected.x", b"?", headers=headers)
        with pytest.raises(NotAllowed, match="does not say where it came from"):
            await replays.replay(ack.seq)
    assert await arena.count(subjects.TASKS) == 0
