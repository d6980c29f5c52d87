"""The bus on a real server: what is stored, what is refused, what survives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import nats.errors
import numpy as np
import pytest
from nats.aio.msg import Msg
from nats.js.api import StorageType
from nats.js.errors import NotFoundError
from prometheus_client import CollectorRegistry

from deploy.nats.permissions import users_conf
from shared.bus import streams
from shared.bus.client import Bus
from shared.domain.tasks import Tasks
from shared.errors import Conflict, Unreadable
from shared.messages import batches, subjects
from shared.messages.batches import Batch, Envelope
from shared.messages.events import ServiceReport
from shared.runtime.settings import Settings
from tests.integration import nats_server
from tests.integration.arena import Arena, as_user, connect, eventually
from tests.integration.conftest import settings_for
from tests.integration.nats_server import NatsServer
from tests.waiting import PATIENCE

SUBJECT = "tasks.r1"


def batch_of(number: int, *, count: int = 2, size: float = 100.0, state: Any = None) -> Batch:
    tasks = Tasks(
        task_id=np.arange(number * count, (number + 1) * count),
        size=np.full(count, size),
        compute_intensity=np.full(count, 0.5),
        memory_required=np.full(count, 10.0),
        arrival_time=np.zeros(count),
    )
    return Batch(Envelope("tasks", "r1", number, 1e9, state=state), batches.task_rows(tasks))


async def held(bus: Bus, stream: str) -> int:
    return int((await bus.jetstream.stream_info(stream)).state.messages)


@pytest.fixture
async def other(bus: Bus, settings: Settings) -> AsyncIterator[Bus]:
    other = await connect(settings, "other")
    yield other
    await other.broker.stop()


class LosesAnswers:
    """A connection on which the answers to the first publishes get lost."""

    def __init__(self, bus: Bus, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._publish = bus.jetstream.publish
        self.left = times
        monkeypatch.setattr(bus.jetstream, "publish", self.publish)

    async def publish(self, *args: Any, **options: Any) -> Any:
        answer = await self._publish(*args, **options)
        if self.left:
            self.left -= 1
            raise nats.errors.TimeoutError
        return answer


async def test_a_publish_whose_answer_is_lost_is_repeated_and_stored_once(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    lossy = LosesAnswers(bus, 3, monkeypatch)
    sequence = await bus.publish(SUBJECT, b"x", stream=subjects.TASKS, message_id="one")
    assert (sequence, lossy.left, await held(bus, subjects.TASKS)) == (1, 0, 1)


async def test_a_message_id_that_is_known_is_not_stored_again(bus: Bus, other: Bus) -> None:
    first = await bus.publish(SUBJECT, b"x", stream=subjects.TASKS, message_id="one")
    again = await other.publish(SUBJECT, b"x", stream=subjects.TASKS, message_id="one")
    assert first == again == await held(bus, subjects.TASKS) == 1


async def test_the_second_of_two_publishers_gets_a_conflict(bus: Bus, other: Bus) -> None:
    assert await bus.publish_batch(batch_of(0), after=0) == 1
    with pytest.raises(Conflict):
        await other.publish_batch(batch_of(0, size=7.0), after=0)
    assert await other.publish_batch(batch_of(1), after=1) == 2
    with pytest.raises(Conflict):
        await bus.publish_batch(batch_of(1, size=7.0), after=1)
    assert await held(bus, subjects.TASKS) == 2


async def test_an_equal_batch_of_another_publisher_counts_as_stored(bus: Bus, other: Bus) -> None:
    assert await bus.publish_batch(batch_of(0), after=0) == 1
    assert await other.publish_batch(batch_of(0), after=0) == 1
    assert await held(bus, subjects.TASKS) == 1


async def test_a_conditional_publish_whose_answer_is_lost_succeeds(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bus.publish_batch(batch_of(0), after=0)
    LosesAnswers(bus, 1, monkeypatch)
    assert await bus.publish_batch(batch_of(1), after=1) == 2
    assert await held(bus, subjects.TASKS) == 2


async def test_a_stored_message_is_found_although_newer_ones_follow(
    bus: Bus, other: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or its publisher would publish it again, behind the newer ones."""
    loses = LosesAnswers(bus, 1, monkeypatch)
    publish = loses.publish

    async def overtaken(*args: Any, **options: Any) -> Any:
        try:
            return await publish(*args, **options)
        except nats.errors.TimeoutError:
            await other.publish_batch(batch_of(1), after=1)
            raise

    monkeypatch.setattr(bus.jetstream, "publish", overtaken)
    assert await bus.publish_batch(batch_of(0), after=0) == 1
    assert await held(bus, subjects.TASKS) == 2


async def test_a_sequence_whose_messages_were_purged_is_a_conflict(bus: Bus) -> None:
    await bus.publish_batch(batch_of(0), after=0)
    await bus.jetstream.purge_stream(subjects.TASKS)
    with pytest.raises(Conflict):
        await bus.publish_batch(batch_of(1), after=1)


async def test_the_last_message_of_an_empty_subject_is_none(bus: Bus) -> None:
    assert await bus.last_message(SUBJECT, subjects.TASKS) is None


def with_nan() -> bytes:
    return batches.encode(batch_of(7).envelope, batch_of(7, size=float("nan")).rows)


@pytest.mark.parametrize(
    "garbage",
    [
        [b"garbage"],
        [b"", b"garbage", batches.encode(batch_of(1).envelope, batch_of(1).rows)[:-200]],
        [with_nan()],
    ],
    ids=["bytes", "several", "nan"],
)
async def test_garbage_behind_the_last_readable_message_moves_to_the_dead_letters(
    arena: Arena, garbage: list[bytes]
) -> None:
    bus = arena.bus
    await bus.publish_batch(batch_of(0), after=0)
    for body in garbage:
        await arena.publish_raw(SUBJECT, body)
    last = await bus.last_message(SUBJECT, subjects.TASKS)
    assert (last.sequence, last.envelope.batch) == (1, 0)
    assert await held(bus, subjects.TASKS) == 1
    letters = await arena.messages(subjects.REJECTED)
    assert [letter.data for letter in letters] == garbage[::-1]
    assert [letter.headers["Hybrid-Sequence"] for letter in letters] == [
        str(2 + place) for place in range(len(garbage))
    ][::-1]
    assert all(letter.headers["Hybrid-Subject"] == SUBJECT for letter in letters)
    assert all(letter.headers["Hybrid-Reason"] for letter in letters)
    # The sequence goes on behind the message that was read, as if nothing had been there.
    assert await bus.publish_batch(batch_of(1), after=1) == 2 + len(garbage)
    with pytest.raises(Conflict):
        await bus.publish_batch(batch_of(1, size=7.0), after=1)


async def test_a_subject_of_nothing_but_garbage_starts_from_the_beginning(arena: Arena) -> None:
    await arena.publish_raw(SUBJECT, b"garbage")
    assert await arena.bus.last_message(SUBJECT, subjects.TASKS) is None
    assert await arena.bus.publish_batch(batch_of(0), after=0) == 2


async def test_a_message_that_the_reader_refuses_is_garbage_too(arena: Arena) -> None:
    def check(envelope: Envelope) -> None:
        if not envelope.state:
            raise Unreadable("says nothing")

    await arena.bus.publish_batch(batch_of(0, state={"a": 1}), after=0)
    await arena.bus.publish_batch(batch_of(1), after=1)
    last = await arena.bus.last_message(SUBJECT, subjects.TASKS, check)
    assert last.envelope.state == {"a": 1}
    (letter,) = await arena.dead_letters()
    assert letter["Hybrid-Reason"] == "says nothing"


async def test_a_message_rejected_by_many_is_one_dead_letter_and_one_event(
    arena: Arena, other: Bus
) -> None:
    for bus in (arena.bus, other, arena.bus):
        await bus.reject("tasks.x", subjects.TASKS, 5, b"body", "no\nsense: ö")
    (letter,) = await arena.messages(subjects.REJECTED)
    assert (letter.subject, letter.data) == ("rejected.test", b"body")
    assert letter.headers["Hybrid-Reason"] == "no sense: ?"
    assert letter.headers["Hybrid-Stream"] == subjects.TASKS
    (event,) = await arena.events("rejected")
    assert "message 5 on tasks.x rejected" in event


async def test_garbage_of_the_largest_size_still_becomes_a_dead_letter(arena: Arena) -> None:
    client = arena.bus.broker._connection
    largest = b"g" * client.max_payload
    await arena.publish_raw(SUBJECT, largest)
    await arena.bus.reject(SUBJECT, subjects.TASKS, 1, largest, "garbage")
    (letter,) = await arena.messages(subjects.REJECTED)
    assert largest.startswith(letter.data)
    assert len(letter.data) > 0.99 * len(largest)


async def test_a_publish_waits_for_room_in_a_full_stream(settings: Settings) -> None:
    registry = CollectorRegistry()
    few_bytes = settings.model_copy(update={"tasks_max_bytes": 10_000})
    small = Bus(few_bytes, "test", registry, creates_streams=True)
    await small.connect()
    try:
        for number in range(2):
            await small.publish(SUBJECT, b"x" * 4000, stream=subjects.TASKS, message_id=str(number))
        waiting = asyncio.create_task(
            small.publish(SUBJECT, b"y" * 4000, stream=subjects.TASKS, message_id="y")
        )
        refused = "hybrid_stream_full_total", {"stream": subjects.TASKS}
        await eventually(lambda: (registry.get_sample_value(*refused) or 0) >= 2)
        assert not waiting.done()
        assert await held(small, subjects.TASKS) == 2  # what was accepted is still there
        await small.jetstream.purge_stream(subjects.TASKS, seq=2)
        await asyncio.wait_for(waiting, PATIENCE)
        last = await small.jetstream.get_last_msg(subjects.TASKS, SUBJECT)
        assert last.data == b"y" * 4000
    finally:
        await small.broker.stop()


async def test_connecting_waits_for_a_server_that_starts_later(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, nats_server.free_port())
    bus = Bus(settings_for(server.url), "test", CollectorRegistry(), creates_streams=True)
    connecting = asyncio.create_task(bus.connect())
    done, _ = await asyncio.wait([connecting], timeout=0.3)
    assert not done
    try:
        server.start()
        await asyncio.wait_for(connecting, PATIENCE)
        await bus.publish(SUBJECT, b"x", stream=subjects.TASKS, message_id="1")
        assert await held(bus, subjects.TASKS) == 1
        await bus.broker.stop()
    finally:
        server.kill()


async def test_a_publish_survives_the_death_of_the_server(tmp_path: Path) -> None:
    with nats_server.running(tmp_path) as server:
        bus = await connect(settings_for(server.url))
        stored = await bus.publish_batch(batch_of(0), after=0)
        server.kill()
        publishing = asyncio.create_task(bus.publish_batch(batch_of(1), after=stored))
        done, _ = await asyncio.wait([publishing], timeout=0.3)
        assert not done
        server.start()
        assert await asyncio.wait_for(publishing, PATIENCE) == 2
        last = await bus.last_message(SUBJECT, subjects.TASKS)
        assert (last.envelope.batch, await held(bus, subjects.TASKS)) == (1, 2)
        await bus.broker.stop()


# nats-py does not close a connection on which it was refused.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_client_that_is_refused_for_a_while_connects_again(tmp_path: Path) -> None:
    with nats_server.running(tmp_path) as server:
        bus = await connect(as_user("generator", settings_for(server.url)))
        server.reload(users_conf().replace("user: generator,", "user: somebody,"))
        await eventually(lambda: "authentication error" in (tmp_path / "nats.log").read_text())
        server.reload(users_conf())
        await eventually(lambda: bus.connected)
        await bus.publish(SUBJECT, b"x", stream=subjects.TASKS, message_id="1")
        await bus.broker.stop()


async def test_an_existing_durable_gets_a_changed_configuration(
    bus: Bus, settings: Settings
) -> None:
    patient = settings.model_copy(update={"ack_wait": timedelta(seconds=77)})
    for expected, using in ((2, settings), (77, patient)):
        durable = streams.durable("reader", "tasks.*", using, pending=expected)
        await bus.ensure_consumer(subjects.TASKS, durable)
        config = (await bus.jetstream.consumer_info(subjects.TASKS, "reader")).config
        assert (config.ack_wait, config.max_ack_pending) == (expected, expected)


async def test_connecting_changes_the_limits_of_existing_streams(
    bus: Bus, settings: Settings
) -> None:
    await bus.publish(SUBJECT, b"x", stream=subjects.TASKS, message_id="1")
    again = await connect(settings.model_copy(update={"tasks_max_bytes": 123_456}))
    info = await bus.jetstream.stream_info(subjects.TASKS)
    assert (info.config.max_bytes, info.state.messages) == (123_456, 1)
    await again.broker.stop()


async def test_a_roll_call_finds_every_service(arena: Arena) -> None:
    await arena.schedulers("greedy", "greedy", "oracle")
    await arena.start("simulator")

    async def everybody() -> list[ServiceReport]:
        reports = await arena.bus.roll_call()  # who is slow to answer is left out
        return reports if len(reports) == 4 else []

    reports = await eventually(everybody)
    assert [(report.service, report.scheduler) for report in reports] == [
        ("scheduler", "greedy"),
        ("scheduler", "greedy"),
        ("scheduler", "oracle"),
        ("simulator", ""),
    ]
    assert len({report.instance for report in reports}) == 4
    assert all(report.healthy for report in reports)


async def test_a_roll_call_ends_when_the_expected_schedulers_have_answered(arena: Arena) -> None:
    await arena.schedulers("greedy", "oracle")
    async with asyncio.timeout(PATIENCE / 2):
        reports = await arena.bus.roll_call(PATIENCE, schedulers=["greedy", "oracle"])
    assert {report.scheduler for report in reports} == {"greedy", "oracle"}


async def test_a_roll_call_that_nobody_answers_is_empty(bus: Bus) -> None:
    assert await bus.roll_call() == []


async def test_an_unreadable_answer_to_a_roll_call_is_ignored(arena: Arena) -> None:
    async def answer(request: Msg) -> None:
        await request.respond(b"here!")

    await arena.bus.listen(subjects.ROLL_CALL, answer)
    await arena.start("simulator")
    (report,) = await eventually(arena.bus.roll_call)
    assert report.service == "simulator"


async def test_an_unhealthy_service_reports_its_problems_in_the_roll_call(arena: Arena) -> None:
    simulator = await arena.start("simulator")

    async def broken() -> str | None:
        raise RuntimeError("out of order")

    simulator.checks["disk"] = broken

    async def reported() -> bool:
        problems = [report.problems for report in await arena.bus.roll_call()]
        return problems == [{"disk": "RuntimeError('out of order')"}]

    await eventually(reported)


async def test_a_batch_is_published_on_the_stream_of_its_kind(bus: Bus) -> None:
    envelope = replace(batch_of(0).envelope, kind="tasks", run="another-run")
    await bus.publish_batch(Batch(envelope, batch_of(0).rows))
    message = await bus.jetstream.get_last_msg(subjects.TASKS, "tasks.another-run")
    assert (message.headers or {})["Nats-Msg-Id"] == "tasks.another-run.0"
    with pytest.raises(NotFoundError):
        await bus.jetstream.get_last_msg(subjects.TASKS, SUBJECT)


async def test_streams_keep_the_storage_they_were_created_with(
    settings: Settings, bus: Bus
) -> None:
    """A changed setting must not keep the arena from starting."""
    in_memory = settings.model_copy(update={"nats_storage": "memory"})
    for stored, made_anew in ((StorageType.FILE, False), (StorageType.MEMORY, True)):
        if made_anew:
            for config in streams.streams(settings):
                await bus.jetstream.delete_stream(config.name)
        again = await connect(in_memory)
        for config in streams.streams(settings):
            assert (await bus.jetstream.stream_info(config.name)).config.storage == stored
        await again.broker.stop()
