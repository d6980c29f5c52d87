"""Every user of the bus tries everything that can be done on it.

Who may do what is stated here once more, by hand and action by action, so that a slip in
`deploy/nats/permissions.py` shows. `python -m tests.integration.permissions` prints the table.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import nats
from nats.aio.client import Client
from nats.js.api import ConsumerConfig

from shared.messages.subjects import inbox
from tests.integration import nats_server
from tests.integration.arena import connect
from tests.integration.conftest import settings_for
from tests.integration.nats_server import NatsServer, password_of
from tests.waiting import PATIENCE

SERVICES = {
    "generator", "scheduler", "simulator", "executor", "trainer", "recorder", "gateway"
}  # fmt: skip
EVERYBODY = SERVICES | {"admin"}
NOBODY: set[str] = set()
KEEPER = {"generator"}
FEEDERS = {"generator", "gateway"}

# Who may publish there. The gateway replays dead letters where they came from.
PUBLISH = {
    "tasks.r1": {"generator", "gateway"},
    "decisions.r1.greedy": {"scheduler", "gateway"},
    "results.r1.greedy": {"simulator", "executor", "gateway"},
    "decide.r1.greedy": {"executor"},
    "execution.r1.greedy": {"executor"},
    "execution.lease": {"executor"},
    "placed.r1.eft": {"scheduler"},
    "models.r1.hybrid_ml": {"trainer"},
    "events.note": SERVICES,
    "$KV.runs.r1": {"generator", "executor", "gateway"},
    "arena.rollcall": {"simulator", "gateway"},
    "arena.rollback": {"gateway"},
    "arena.suspend": {"scheduler", "trainer"},
    "arena.present.gateway.x": SERVICES,
    "anything.else": NOBODY,
    "$SYS.REQ.SERVER.PING": NOBODY,
    **{f"rejected.{service}": {service} for service in SERVICES},
    **{f"_INBOX.{user}.x": NOBODY for user in EVERYBODY},
}

# Who may subscribe there.
SUBSCRIBE = {
    "tasks.*": {"admin"},
    "decisions.*.*": {"admin"},
    "results.*.*": {"gateway", "admin"},
    "models.*.*": {"scheduler", "admin"},
    "placed.*.*": {"scheduler", "admin"},
    "decide.*.*": {"scheduler", "admin"},
    "execution.>": {"admin"},
    "events.*": {"gateway", "admin"},
    "rejected.*": {"admin"},
    "$KV.runs.*": EVERYBODY,
    "arena.rollcall": EVERYBODY,
    "arena.rollback": {"trainer", "admin"},
    "arena.suspend": {"generator", "admin"},
    "arena.present.gateway.>": {"gateway", "admin"},
    "arena.present.simulator.>": {"simulator", "admin"},
    "$JS.ACK.>": {"admin"},
    "$JS.API.>": {"admin"},
    ">": {"admin"},
    **{f"_INBOX.{user}.>": {user} for user in EVERYBODY},
}

# Calls of JetStream and who may make them.
STREAMS = ("TASKS", "DECISIONS", "RESULTS", "MODELS", "EVENTS", "REJECTED", "EXECUTION", "KV_runs")
CALLS: dict[str, dict[str, set[str]]] = {
    "STREAM.INFO": dict.fromkeys(STREAMS, SERVICES),
    "STREAM.CREATE": dict.fromkeys(STREAMS, KEEPER),
    "STREAM.UPDATE": dict.fromkeys(STREAMS, KEEPER),
    "STREAM.DELETE": {},
    "STREAM.PURGE": {
        "TASKS": {"generator", "gateway"},
        "DECISIONS": {"gateway"},
        "RESULTS": {"generator", "gateway"},
        "MODELS": {"generator", "gateway"},
        "REJECTED": {"gateway"},
        "EXECUTION": {"gateway"},
    },
    "STREAM.MSG.DELETE": {
        "TASKS": {"generator", "gateway"},
        "DECISIONS": {"generator"},
        "RESULTS": {"generator", "simulator", "executor", "gateway"},
        "REJECTED": {"gateway"},
    },
    "STREAM.MSG.GET": {
        "TASKS": {"generator", "scheduler", "executor", "gateway"},
        "DECISIONS": {"generator"},
        "RESULTS": {"generator", "scheduler", "simulator", "executor", "gateway"},
        "MODELS": {"scheduler", "trainer", "gateway"},
        "EVENTS": {"gateway"},
        "REJECTED": {"gateway"},
        "EXECUTION": {"executor"},
        "KV_runs": SERVICES,
    },
    "DIRECT.GET": {"RESULTS": {"gateway"}, "MODELS": {"scheduler", "trainer", "gateway"}},
    "STREAM.SNAPSHOT": {},
    "STREAM.RESTORE": {},
    "STREAM.LEADER.STEPDOWN": {},
    "STREAM.PEER.REMOVE": {},
    "CONSUMER.LIST": {
        **dict.fromkeys(("TASKS", "DECISIONS", "RESULTS"), FEEDERS),
        "EVENTS": {"gateway"},
        "KV_runs": {"gateway"},
    },
    "CONSUMER.NAMES": {},
    "CONSUMER.CREATE": {},
}
OF_THE_WHOLE_BUS = ("INFO", "STREAM.LIST", "STREAM.NAMES", "META.LEADER.STEPDOWN")

# The owner of each consumer: only it may fetch and acknowledge.
CONSUMERS = {
    ("TASKS", "recorder"): "recorder",
    ("TASKS", "scheduler-greedy"): "scheduler",
    ("DECISIONS", "simulator-greedy"): "simulator",
    ("RESULTS", "recorder"): "recorder",
    ("RESULTS", "trainer-hybrid_ml"): "trainer",
    ("RESULTS", "trainer-rl_agent"): "trainer",
    ("EVENTS", "recorder"): "recorder",
    ("KV_runs", "recorder"): "recorder",
}
OF_ITS_OWNER = ("DURABLE.CREATE", "MSG.NEXT", "INFO")
OF_NOBODY = ("DELETE", "PAUSE", "RESET", "LEADER.STEPDOWN", "UNPIN")


LAST = "forbidden.to.everybody"


@dataclass(frozen=True, slots=True)
class Attempt:
    user: str
    what: str  # "publish" or "subscribe"
    subject: str
    allowed: bool


def attempts() -> list[Attempt]:
    publishing = dict(PUBLISH)
    for call, allowed in CALLS.items():
        for stream in STREAMS:
            publishing[f"$JS.API.{call}.{stream}"] = allowed.get(stream, NOBODY)
    publishing |= {f"$JS.API.{call}": NOBODY for call in OF_THE_WHOLE_BUS}
    for (stream, name), owner in CONSUMERS.items():
        consumer = f"{stream}.{name}"
        publishing[f"$JS.ACK.{consumer}.1.1.1.1.0"] = {owner}
        publishing |= {f"$JS.API.CONSUMER.{call}.{consumer}": {owner} for call in OF_ITS_OWNER}
        publishing |= {f"$JS.API.CONSUMER.{call}.{consumer}": NOBODY for call in OF_NOBODY}
    for stream in ("TASKS", "RESULTS"):  # whether all is stored, so that a run is complete
        publishing[f"$JS.API.CONSUMER.INFO.{stream}.recorder"] = {"recorder", "generator"}
    return [
        Attempt(user, what, subject, user in allowed)
        for what, subjects in (("publish", publishing), ("subscribe", SUBSCRIBE))
        for subject, allowed in subjects.items()
        for user in sorted(EVERYBODY)
    ]


_REFUSAL = re.compile(r"permissions violation for (publish|subscription) to \"([^\"]+)\"")


async def make_bus(server: NatsServer) -> Client:
    """Streams with a message each, and the consumers; returns a client that may read them."""
    bus = await connect(settings_for(server.url))
    for subject in PUBLISH:
        if not subject.startswith(("_INBOX", "arena", "placed", "decide", "$SYS", "anything")):
            await bus.jetstream.publish(subject, b"{}")
    for (stream, name), _ in CONSUMERS.items():
        await bus.jetstream.add_consumer(stream, ConsumerConfig(durable_name=name))
    await bus.broker.stop()
    return await nats.connect(server.url, user=nats_server.USER, password=nats_server.PASSWORD)


async def refused(server: NatsServer, user: str, tried: list[Attempt]) -> set[tuple[str, str]]:
    """What the server refuses of what a user tries, as (what, subject)."""
    found: set[tuple[str, str]] = set()
    # nats-py gives errors in small letters, and when it gets to it: the last one ends the wait.
    written = {attempt.subject.lower(): attempt.subject for attempt in tried}
    all_received = asyncio.Event()

    async def note(error: Exception) -> None:
        refusal = _REFUSAL.search(str(error))
        if refusal is not None and refusal[2] == LAST:
            all_received.set()
        elif refusal is not None:
            found.add(("publish" if refusal[1] == "publish" else "subscribe", written[refusal[2]]))

    client = await nats.connect(
        server.url,
        user=user,
        password=password_of(user),
        inbox_prefix=inbox(user),
        error_cb=note,
        allow_reconnect=False,
    )
    for attempt in tried:
        if attempt.what == "publish":
            await client.publish(attempt.subject, b"")
        else:
            await client.subscribe(attempt.subject)
    await client.publish(LAST, b"")
    await asyncio.wait_for(all_received.wait(), PATIENCE)
    await client.close()
    return found


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder, nats_server.running(Path(folder)) as server:
        await (await make_bus(server)).close()
        forbidden = [attempt for attempt in attempts() if not attempt.allowed]
        counted: Counter[tuple[str, str]] = Counter()
        for user in sorted(EVERYBODY):
            mine = [attempt for attempt in forbidden if attempt.user == user]
            refusals = await refused(server, user, mine)
            for attempt in mine:
                done = (attempt.what, attempt.subject) not in refusals
                counted[user, "DONE" if done else "refused"] += 1
                what = f"{user:10} {attempt.what:10} {attempt.subject:56}"
                print(what, "DONE" if done else "refused")
    for user in sorted(EVERYBODY):
        print(f"{user}: {counted[user, 'refused']} refused, {counted[user, 'DONE']} done")
    print(f"forbidden actions: {len(forbidden)} tried, {counted.total()} judged")


if __name__ == "__main__":
    asyncio.run(main())
