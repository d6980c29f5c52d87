"""The run book on a real bus."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from shared.bus import run_book
from shared.bus.client import Bus
from shared.bus.run_book import RunBook
from shared.domain.spec import RunSpec
from shared.errors import NotAllowed, NotFound
from shared.messages import subjects
from shared.messages.runs import RunState

R, P, S, C = RunState.RUNNING, RunState.PAUSED, RunState.STOPPED, RunState.COMPLETED
ALLOWED = {(R, P), (P, R), (R, S), (P, S), (R, C), (P, C)}
SPEC = RunSpec.parse({"schedulers": ["greedy"], "seed": 2**62, "tasks": 7, "name": "Größe"})


@pytest.fixture
async def book(bus: Bus) -> RunBook:
    book = RunBook(bus.jetstream)
    await book.open()
    return book


async def in_state(book: RunBook, state: RunState) -> str:
    run = (await book.create(SPEC)).run
    if state != R:
        await book.change_state(run, state)
    return run


async def test_a_new_run_book_is_empty(book: RunBook) -> None:
    assert await book.refresh() == []


async def test_two_runs_never_share_an_id(book: RunBook, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = iter(["1116-200000-aaaa", "1116-200000-aaaa", "1116-200000-bbbb"])
    monkeypatch.setattr(run_book, "new_run_id", lambda: next(ids))
    first, second = await book.create(SPEC), await book.create(SPEC)
    assert (first.run, second.run) == ("1116-200000-aaaa", "1116-200000-bbbb")
    assert await book.refresh() == [first, second]


async def test_a_run_is_read_as_it_was_created(book: RunBook, bus: Bus) -> None:
    created = await book.create(SPEC)
    assert (created.state, created.spec) == (R, SPEC)
    assert created.created_at == created.updated_at
    assert subjects.RUN_ID.fullmatch(created.run)
    other = RunBook(bus.jetstream)
    assert await other.get(created.run) == created
    assert await other.spec(created.run) == SPEC
    assert await other.refresh() == [created]


@pytest.mark.parametrize(("before", "after"), list(itertools.product(RunState, RunState)))
async def test_only_allowed_changes_of_state_are_made(
    book: RunBook, before: RunState, after: RunState
) -> None:
    run = await in_state(book, before)
    if before == after or (before, after) in ALLOWED:
        assert (await book.change_state(run, after)).state == after
        assert (await book.get(run)).state == after
    else:
        with pytest.raises(NotAllowed, match=f"is {before}: it cannot become {after}"):
            await book.change_state(run, after)
        assert (await book.get(run)).state == before


async def test_a_move_to_the_same_state_writes_nothing(book: RunBook, bus: Bus) -> None:
    run = await in_state(book, P)
    before = await bus.jetstream.stream_info(subjects.RUNS_STREAM)
    await book.change_state(run, P)
    after = await bus.jetstream.stream_info(subjects.RUNS_STREAM)
    assert before.state.last_seq == after.state.last_seq


async def test_when_two_end_a_run_at_once_one_wins(book: RunBook, bus: Bus) -> None:
    other = RunBook(bus.jetstream)
    for _ in range(10):
        run = (await book.create(SPEC)).run
        outcomes = await asyncio.gather(
            book.change_state(run, S), other.change_state(run, C), return_exceptions=True
        )
        won = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
        assert [type(o) for o in outcomes if isinstance(o, Exception)] == [NotAllowed]
        assert (await book.get(run)).state == won[0].state


async def test_a_stale_copy_does_not_undo_a_move(book: RunBook, bus: Bus) -> None:
    other = RunBook(bus.jetstream)
    run = (await book.create(SPEC)).run
    await other.refresh()
    await book.change_state(run, S)
    with pytest.raises(NotAllowed):
        await other.change_state(run, P)


async def test_refresh_follows_changes(book: RunBook, bus: Bus) -> None:
    other = RunBook(bus.jetstream)
    first, second = await book.create(SPEC), await book.create(SPEC)
    assert [record.run for record in await other.refresh()] == [first.run, second.run]
    await book.change_state(first.run, P)
    await book.delete(second.run)
    assert [(r.run, r.state) for r in await other.refresh()] == [(first.run, P)]
    with pytest.raises(NotFound):
        await other.get(second.run)


async def test_refresh_costs_one_request_when_nothing_has_changed(
    book: RunBook, monkeypatch: pytest.MonkeyPatch, bus: Bus
) -> None:
    for _ in range(3):
        await book.create(SPEC)
    await book.refresh()
    client = bus.broker._connection
    before = client.stats["out_msgs"]
    assert len(await book.refresh()) == 3
    assert client.stats["out_msgs"] - before == 1


@pytest.mark.parametrize("body", [b"", b"garbage", b"\xff\xfe", b"{}", b"[1]", b'{"run": "x"}'])
async def test_garbage_in_the_bucket_is_ignored(book: RunBook, bus: Bus, body: bytes) -> None:
    run = (await book.create(SPEC)).run
    await bus.jetstream.publish("$KV.runs.x", body)
    other = RunBook(bus.jetstream)
    assert [record.run for record in await other.refresh()] == [run]
    for ask in (other.get, other.spec):
        with pytest.raises(NotFound):
            await ask("x")
    with pytest.raises(NotFound):
        await other.change_state("x", P)


async def test_a_record_under_the_name_of_another_run_is_ignored(book: RunBook, bus: Bus) -> None:
    record = await book.create(SPEC)
    stopped = record.model_copy(update={"state": S})
    await bus.jetstream.publish("$KV.runs.x", stopped.model_dump_json().encode())
    assert await RunBook(bus.jetstream).refresh() == [record]
    with pytest.raises(NotFound):
        await book.get("x")


@pytest.mark.parametrize(
    "run", ["none", "", "a b", "A", "x.y", "*", ">", "a" * 65, "ö", "../x", "x\n"]
)
async def test_an_unknown_run_is_not_found(book: RunBook, run: str) -> None:
    for ask in (book.get, book.spec):
        with pytest.raises(NotFound, match="no run"):
            await ask(run)
    with pytest.raises(NotFound, match="no run"):
        await book.change_state(run, P)


async def test_a_run_book_notices_that_the_bus_was_wiped(book: RunBook, bus: Bus) -> None:
    for _ in range(3):
        await book.create(SPEC)
    assert len(await book.refresh()) == 3
    await bus.jetstream.delete_stream(subjects.RUNS_STREAM)
    await bus.connect()
    fresh = RunBook(bus.jetstream)
    assert await book.refresh() == []
    record = await fresh.create(SPEC)
    assert await book.refresh() == [record]
