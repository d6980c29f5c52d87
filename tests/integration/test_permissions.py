"""Users of the bus can do what their service needs, and nothing else."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import nats
import nats.errors
import pytest
from nats.aio.client import Client

from deploy.nats.permissions import USERS
from shared.messages.subjects import MONITOR_USER, REFUSED_CLIENTS, inbox
from tests.integration import nats_server
from tests.integration.arena import eventually
from tests.integration.nats_server import NatsServer, password_of
from tests.integration.permissions import EVERYBODY, STREAMS, attempts, make_bus, refused
from tests.waiting import PATIENCE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with nats_server.running(tmp_path_factory.mktemp("guarded")) as started:
        yield started


@pytest.fixture
async def observer(server: NatsServer) -> AsyncIterator[Client]:
    client = await make_bus(server)
    yield client
    await client.close()


async def contents(client: Client) -> dict[str, tuple[int, list[str]]]:
    """What each stream holds, and its consumers."""
    stream = client.jetstream()
    found = {}
    for info in await stream.streams_info():
        name = info.config.name or ""
        consumers = [consumer.name for consumer in await stream.consumers_info(name)]
        found[name] = (info.state.messages, sorted(consumers))
    return found


def test_permissions_are_stated_for_every_user() -> None:
    assert USERS.keys() == EVERYBODY


async def test_the_monitor_sees_refused_clients_and_nothing_else(server: NatsServer) -> None:
    refusals: list[str] = []

    async def note(error: Exception) -> None:
        refusals.append(str(error))

    monitor = await nats.connect(
        server.url, user=MONITOR_USER, password=password_of("gateway"), error_cb=note
    )
    reports = await monitor.subscribe(REFUSED_CLIENTS)
    for subject in ("$SYS.>", "$SYS.ACCOUNT.*.CONNECT", "tasks.*"):
        await monitor.subscribe(subject)
    await monitor.publish("$SYS.REQ.SERVER.PING", b"")
    await eventually(lambda: len(refusals) == 4)
    assert all("permissions violation" in refusal for refusal in refusals)

    login = {"user": "recorder", "pass": "wrong", "name": "a recorder", "verbose": False}
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
        connection.sendall(b"CONNECT " + json.dumps(login).encode() + b"\r\nPING\r\n")
        report = json.loads((await reports.next_msg(timeout=PATIENCE)).data)
    assert (report["client"]["name"], report["client"]["user"]) == ("a recorder", "recorder")
    await monitor.close()


async def test_what_is_forbidden_is_refused_and_changes_nothing(
    server: NatsServer, observer: Client
) -> None:
    before = await contents(observer)
    assert before.keys() == set(STREAMS)
    forbidden = [attempt for attempt in attempts() if not attempt.allowed]
    assert len(forbidden) > 1000
    for user in sorted(EVERYBODY):
        mine = [attempt for attempt in forbidden if attempt.user == user]
        refusals = await refused(server, user, mine)
        done = {(attempt.what, attempt.subject) for attempt in mine} - refusals
        assert not done, f"{user} could: {sorted(done)}"
    assert await contents(observer) == before


@pytest.mark.parametrize("user", sorted(EVERYBODY))
async def test_what_a_service_needs_is_not_refused(
    server: NatsServer, observer: Client, user: str
) -> None:
    allowed = [attempt for attempt in attempts() if attempt.user == user and attempt.allowed]
    assert allowed
    assert await refused(server, user, allowed) == set()


async def test_the_admin_sees_everything_but_the_answers_to_others(
    server: NatsServer, observer: Client
) -> None:
    admin = await nats.connect(
        server.url, user="admin", password=password_of("admin"), inbox_prefix=inbox("admin")
    )
    everything = await admin.subscribe(">")
    await admin.flush()
    seen: set[str] = set()

    async def looked() -> bool:
        """Published again each time: plain NATS guarantees no delivery."""
        for subject in ("tasks.secret", "_INBOX.gateway.answer", "_INBOX.admin.answer"):
            await observer.publish(subject, b"seen")
        await observer.flush()
        with suppress(nats.errors.TimeoutError):
            while True:
                seen.add((await everything.next_msg(timeout=0.5)).subject)
        return seen >= {"tasks.secret", "_INBOX.admin.answer"}

    try:
        await eventually(looked)
    finally:
        await admin.close()
    assert seen == {"tasks.secret", "_INBOX.admin.answer"}


@pytest.mark.parametrize(
    ("user", "password"),
    [("generator", password_of("gateway")), ("arena", "arena"), ("generator", ""), (None, None)],
    ids=["another's password", "unknown user", "no password", "nobody"],
)
def test_connecting_without_valid_credentials_is_refused(
    server: NatsServer, user: str | None, password: str | None
) -> None:
    options = {"verbose": False, "user": user, "pass": password}
    with socket.create_connection(("127.0.0.1", server.port), 20) as line:
        line.sendall(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
        answer = line.makefile().read()  # to the end: the server hangs up
    assert "-ERR 'Authorization Violation'" in answer
    assert "PONG" not in answer
