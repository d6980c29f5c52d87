"""Dead letters sent again: nothing is lost, nothing doubled, however often it is tried."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import nats.errors
import pyarrow.compute as pc
import pytest

from shared import subjects
from shared.batches import Batch, encode
from shared.bus import GO_ON_FROM, Bus
from shared.deadletters import LetterBox
from shared.errors import NotAllowed
from shared.replays import STATE, Replays
from shared.runs import RunRecord, RunState
from tests.integration.arena import Arena, eventually, rows_of
from tests.integration.gateway import assert_problem, serving
from tests.integration.lanes import decided, in_one_piece
from tests.integration.publishing import publish_run


@pytest.fixture
def replays(arena: Arena) -> Replays:
    return Replays(arena.bus, arena.runs, LetterBox(arena.bus))


@pytest.fixture
async def gateway(full_arena: Arena) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(full_arena.settings) as client:
        yield client


async def letters(arena: Arena) -> list[int]:
    return [message.seq for message in await arena.messages(subjects.REJECTED)]


async def put_aside(arena: Arena, subject: str, stream: str, body: bytes, origin: int = 1) -> int:
    """As a reader does that cannot read it; the number of the letter."""
    await arena.bus.reject(subject, stream, origin, body, "too new")
    return (await letters(arena))[-1]


async def until_complete(arena: Arena, run: RunRecord) -> None:
    await arena.completed(run, seconds=90)


def stored(arena: Arena, run: RunRecord) -> list[dict[str, object]]:
    return arena.store.query(
        "SELECT scheduler, count() AS n, uniqExact(task_id) AS ids, sum(time) AS time "
        "FROM scheduler_results FINAL WHERE run = {run:String} GROUP BY 1 ORDER BY 1",
        {"run": run.run},
    )


async def test_decisions_that_were_rejected_hold_their_lane_until_they_are_replayed(
    full_arena: Arena, gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's record was lost while its decisions came, and is restored."""
    arena = full_arena
    worker, *_ = await arena.schedulers("greedy")
    generator = await arena.start("generator")
    run = await arena.run(schedulers=["greedy"], tasks=500)
    subject = subjects.decisions(run.run, "greedy")

    async def all_decided() -> bool:
        return await arena.count_of(subjects.DECISIONS, subject) == 10

    await eventually(all_decided)
    await arena.stop(worker, generator)
    book = await arena.stream.key_value(subjects.RUNS_BUCKET)
    record = (await book.get(run.run)).value
    await book.delete(run.run)
    other = await arena.run(schedulers=["greedy"], pace=1)  # so that the lane is served
    await arena.runs.move(other.run, RunState.STOPPED)
    await arena.start("simulator")

    async def all_rejected() -> bool:
        return len(await letters(arena)) == 10

    await eventually(all_rejected)
    assert record is not None
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
    async def die(self: LetterBox, sequence: int) -> bool:
        raise nats.errors.ConnectionClosedError

    with monkeypatch.context() as patched:
        patched.setattr(LetterBox, "remove", die)
        assert_problem(await gateway.post("/api/rejected/1/replay"), 503)
    await until_complete(arena, run)
    answer = await gateway.post("/api/rejected/1/replay")
    assert answer.json()["stored_as"] is None
    assert "has its results already" in answer.json()["note"]
    assert_problem(await gateway.post("/api/rejected/1/replay"), 404, "no dead letter 1")

    expected = in_one_piece(run, decided(run, 1, 500))
    (row,) = stored(arena, run)
    assert (row["n"], row["ids"]) == (500, 500)
    assert row["time"] == pytest.approx(pc.sum(expected.column("time")).as_py(), rel=1e-12)
    assert await letters(arena) == []


async def test_tasks_and_results_replayed_in_mid_run_lead_nobody_back(
    full_arena: Arena, gateway: httpx.AsyncClient
) -> None:
    """As after a reader that could not read them, while the others have long gone on."""
    arena = full_arena
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

    async def under_way() -> bool:
        return await arena.tasks_sent(run) > 200

    await eventually(under_way)
    for (subject, stream), (body, origin) in bodies.items():
        number = await put_aside(arena, subject, stream, body, origin)
        answer = await gateway.post(f"/api/rejected/{number}/replay")
        assert answer.status_code == 200, answer.text
    assert (await arena.runs.get(run.run)).active
    await until_complete(arena, run)
    rows = stored(arena, run)
    assert [(row["scheduler"], row["n"], row["ids"]) for row in rows] == [
        ("greedy", 1200, 1200),
        ("oracle", 1200, 1200),
    ]
    expected = in_one_piece(run, decided(run, 1, 1200))
    total = pc.sum(expected.column("time")).as_py()
    assert rows[0]["time"] == pytest.approx(total, rel=1e-12)
    assert await letters(arena) == []


async def test_what_a_reader_missed_is_stored_and_the_sequence_stands_where_it_stood(
    full_arena: Arena, gateway: httpx.AsyncClient
) -> None:
    arena = full_arena
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
        await arena.stream.delete_msg(stream, message.seq)
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
        last = await arena.bus.last(subject, stream, STATE[stream])
        assert last is not None
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
    await arena.stream.delete_msg(subjects.RESULTS, lost.seq)
    too_early = await put_aside(arena, subject, subjects.RESULTS, body_of(sent["greedy"][2], 4))
    with pytest.raises(NotAllowed, match="batch 2 is next, not 4; replay those before it first"):
        await replays.replay(too_early)
    number = await put_aside(arena, subject, subjects.RESULTS, lost.data, lost.seq)
    replayed = await replays.replay(number)
    newest = (await arena.messages(subjects.RESULTS, subject))[-1]
    assert (newest.seq, newest.data) == (replayed.sequence, lost.data)
    assert GO_ON_FROM not in newest.headers
    assert await letters(arena) == [too_early]


def body_of(batch: Batch, number: int) -> bytes:
    envelope = batch.envelope
    renumbered = type(envelope)(
        envelope.kind, envelope.run, number, 1e9, envelope.scheduler, envelope.state
    )
    return encode(renumbered, batch.rows)


async def test_a_finished_run_takes_no_tasks_and_needs_no_decisions(
    arena: Arena, replays: Replays
) -> None:
    run = await arena.run(schedulers=["greedy"], pace=1)
    decision = decided(run, 2, 5)[1]
    subject = decision.envelope.subject
    await arena.runs.move(run.run, RunState.STOPPED)
    number = await put_aside(
        arena, subject, subjects.DECISIONS, encode(decision.envelope, decision.rows), 1
    )
    with pytest.raises(NotAllowed, match="is stopped, and the bus has forgotten it"):
        await replays.replay(number)
    sent = await publish_run(arena, run, count=1)
    tasks = encode(sent["tasks"][0].envelope, sent["tasks"][0].rows)
    number = await put_aside(arena, subjects.tasks(run.run), subjects.TASKS, tasks, 2)
    with pytest.raises(NotAllowed, match="nobody decides its tasks any more"):
        await replays.replay(number)


async def test_an_event_is_told_once_more_and_not_twice(
    arena: Arena, replays: Replays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the bus has forgotten the id under which it was first replayed."""
    origin = await arena.publish_raw("events.note", b"an event of tomorrow")
    number = await put_aside(arena, "events.note", subjects.EVENTS, b"an event of tomorrow", origin)

    async def die(self: LetterBox, sequence: int) -> bool:
        raise nats.errors.ConnectionClosedError

    with monkeypatch.context() as patched:
        patched.setattr(LetterBox, "remove", die)
        with pytest.raises(nats.errors.ConnectionClosedError):
            await replays.replay(number)
    config = (await arena.stream.stream_info(subjects.EVENTS)).config
    config.duplicate_window = 0.1
    await arena.stream.update_stream(config)
    await arena.publish_raw("events.note", b"another")
    replayed = await replays.replay(number)
    assert replayed.sequence is None
    bodies = [message.data for message in await arena.messages(subjects.EVENTS, "events.note")]
    assert bodies == [b"an event of tomorrow", b"an event of tomorrow", b"another"]
    assert await letters(arena) == []


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
    with pytest.raises(NotAllowed, match="run x has a newer record, which would be overwritten"):
        await replays.replay(number)
    assert await letters(arena) == [number]
    last = await arena.stream.get_last_msg(subjects.RUNS_STREAM, subject)
    assert last.data == b"a newer one"


async def test_what_is_still_unreadable_is_a_new_letter(arena: Arena, replays: Replays) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(schedulers=["greedy"], pace=1)
    await arena.publish_raw(subjects.tasks(run.run), b"garbage")
    for number in (1, 2, 3):

        async def one(expected: int = number) -> bool:
            return await letters(arena) == [expected]

        await eventually(one)
        await replays.replay(number)
    (body,) = {message.data for message in await arena.messages(subjects.TASKS)}
    assert body == b"garbage"


async def test_a_letter_that_was_cut_or_made_up_is_refused(
    arena: Arena, replays: Replays, bus: Bus
) -> None:
    client = bus.broker._connection
    assert client is not None
    largest = b"g" * client.max_payload
    cut = await put_aside(arena, "tasks.x", subjects.TASKS, largest)
    with pytest.raises(NotAllowed, match=f"of its {len(largest)} bytes are kept: it was too large"):
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
        ack = await arena.stream.publish("rejected.x", b"?", headers=headers)
        with pytest.raises(NotAllowed, match="does not say where it came from"):
            await replays.replay(ack.seq)
    assert await arena.count(subjects.TASKS) == 0
