"""Who may do what on the bus: a NATS user for each service, and one for the command line.

This is the only place that says so. `users_conf` is read by the embedded NATS, and in the
containers as deploy/nats/users.conf, which `python -m deploy.nats` writes.

NATS has no wildcard within a name, so the workers of all schedulers are one user: they cannot be
kept from each other's messages, only from those of other services.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared import subjects
from shared.models import LEARNERS
from shared.subjects import (
    DECISIONS,
    EVENTS,
    MODELS,
    RECORDER_DURABLE,
    REJECTED,
    RESULTS,
    RUNS_STREAM,
    TASKS,
)

API = "$JS.API"
STREAMS = (TASKS, DECISIONS, RESULTS, MODELS, EVENTS, REJECTED, RUNS_STREAM)


@dataclass(frozen=True, slots=True)
class Rights:
    """Everything else is refused; what is denied is refused even where a wildcard allows it."""

    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    deny_publish: tuple[str, ...] = ()
    deny_subscribe: tuple[str, ...] = ()
    answer: bool = False  # on the inbox that a request to it names

    def __add__(self, other: Rights) -> Rights:
        return Rights(
            self.publish + other.publish,
            self.subscribe + other.subscribe,
            self.deny_publish + other.deny_publish,
            self.deny_subscribe + other.deny_subscribe,
            self.answer or other.answer,
        )


def publish(*patterns: str) -> Rights:
    return Rights(publish=patterns)


def subscribe(*patterns: str) -> Rights:
    return Rights(subscribe=patterns)


def api(call: str, *streams: str) -> Rights:
    return publish(*(f"{API}.{call}.{stream}" for stream in streams))


def read_newest(*streams: str) -> Rights:
    """Single messages, from the stream's leader."""
    return api("STREAM.MSG.GET", *streams)


def read(*streams: str) -> Rights:
    """The same, and from any server that holds the stream: may be a moment old."""
    direct = publish(*(f"{API}.DIRECT.GET.{stream}.>" for stream in streams))
    return read_newest(*streams) + api("DIRECT.GET", *streams) + direct


def consume(stream: str, *durables: str) -> Rights:
    """Make a durable consumer, or bring it up to date; take from it; acknowledge."""
    return publish(*(right for durable in durables for right in _consumer(stream, durable)))


def _consumer(stream: str, durable: str) -> tuple[str, ...]:
    calls = ("DURABLE.CREATE", "INFO", "MSG.NEXT")
    return (
        *(f"{API}.CONSUMER.{call}.{stream}.{durable}" for call in calls),
        f"$JS.ACK.{stream}.{durable}.>",
    )


def _inbox(user: str) -> Rights:
    return subscribe(f"{subjects.inbox(user)}.>")


def _service(name: str) -> Rights:
    """What every service does: read the book of runs, tell events, reject, answer roll calls."""
    return (
        _inbox(name)
        + subscribe(subjects.ROLL_CALL)
        + publish(f"{subjects.PRESENT}.>", subjects.event("*"), subjects.rejected(name))
        + api("STREAM.INFO", "*")
        + read_newest(RUNS_STREAM)
    )


def _call_the_roll(name: str) -> Rights:
    return publish(subjects.ROLL_CALL) + subscribe(f"{subjects.PRESENT}.{name}.>")


_BOOK = publish(subjects.RUNS_SUBJECTS)  # write it
_LAG = api("CONSUMER.LIST", TASKS, DECISIONS, RESULTS)

GENERATOR = (
    _service("generator")
    + publish(subjects.tasks("*"))
    + _BOOK
    + _LAG
    # It keeps the streams: makes them, trims them, and takes out what cannot be read.
    + api("STREAM.CREATE", *STREAMS)
    + api("STREAM.UPDATE", *STREAMS)
    + api("STREAM.PURGE", TASKS, RESULTS, MODELS)
    + api("STREAM.MSG.DELETE", TASKS, DECISIONS, RESULTS)
    + read_newest(TASKS, DECISIONS, RESULTS)
    + api("CONSUMER.INFO", f"{TASKS}.{RECORDER_DURABLE}", f"{RESULTS}.{RECORDER_DURABLE}")
)

SCHEDULER = (
    _service("scheduler")
    + publish(subjects.decisions("*", "*"))
    + consume(TASKS, "*")
    + Rights(deny_publish=consume(TASKS, RECORDER_DURABLE).publish)
    + read(MODELS)
    + subscribe(subjects.model("*", "*"))
)

SIMULATOR = (
    _service("simulator")
    + publish(subjects.results("*", "*"))
    + consume(DECISIONS, "*")
    + read_newest(RESULTS)
    + api("STREAM.MSG.DELETE", RESULTS)
    + _call_the_roll("simulator")
)

TRAINER = (
    _service("trainer")
    + publish(subjects.model("*", "*"))
    + consume(RESULTS, *map(subjects.trainer_durable, LEARNERS))
    + read(MODELS)
    + subscribe(subjects.ROLLBACK)
    + Rights(answer=True)
)

RECORDER = _service("recorder")
for _stream in (TASKS, RESULTS, EVENTS, RUNS_STREAM):
    RECORDER += consume(_stream, RECORDER_DURABLE)

# People read, remove and replay them: a replayed message goes to where it came from.
_DEAD_LETTERS = (
    read_newest(REJECTED, EVENTS, RESULTS)
    + api("STREAM.MSG.DELETE", REJECTED, RESULTS)
    + api("STREAM.PURGE", REJECTED)
    + publish(subjects.decisions("*", "*"), subjects.results("*", "*"))
)

GATEWAY = (
    _service("gateway")
    + _DEAD_LETTERS
    + api("CONSUMER.LIST", EVENTS, RUNS_STREAM)
    + publish(subjects.tasks("*"), subjects.ROLLBACK)
    + _BOOK
    + _LAG
    + read_newest(TASKS)
    + read(RESULTS, MODELS)
    + api("STREAM.MSG.DELETE", TASKS)
    + api("STREAM.PURGE", TASKS, DECISIONS, RESULTS, MODELS)  # of a run that is deleted
    + _call_the_roll("gateway")
    + subscribe(subjects.results("*", "*"), subjects.event("*"))
)

_SERVICES = {
    "generator": GENERATOR,
    "scheduler": SCHEDULER,
    "simulator": SIMULATOR,
    "trainer": TRAINER,
    "recorder": RECORDER,
    "gateway": GATEWAY,
}

# The person at the command line: sees everything that passes, but no answers to others.
ADMIN = _inbox("admin") + Rights(
    subscribe=(">",), deny_subscribe=tuple(f"{subjects.inbox(name)}.>" for name in _SERVICES)
)

USERS: dict[str, Rights] = {**_SERVICES, "admin": ADMIN}


def password_variable(user: str) -> str:
    """Where the NATS server finds a user's password."""
    return f"NATS_{user.upper()}_PASSWORD"


def password_variables(passwords: dict[str, str]) -> dict[str, str]:
    """In quotes, or NATS reads a password such as 0099 as a number."""
    return {password_variable(user): f'"{passwords[user]}"' for user in USERS}


def users_conf() -> str:
    """The `authorization` of every NATS server of the arena."""
    users = "".join(_user(name, rights) for name, rights in USERS.items())
    return (
        "# Written by `python -m deploy.nats` from deploy/nats/permissions.py: change that.\n"
        f"authorization {{\n  users: [\n{users}  ]\n}}\n"
    )


def _user(name: str, rights: Rights) -> str:
    lines = [
        f"user: {name}, password: ${password_variable(name)}",
        "permissions: {",
        *_side("publish", rights.publish, rights.deny_publish),
        *_side("subscribe", rights.subscribe, rights.deny_subscribe),
        *(["  allow_responses: true"] if rights.answer else []),
        "}",
    ]
    return "    {\n" + "".join(f"      {line}\n" for line in lines) + "    }\n"


def _side(name: str, allowed: tuple[str, ...], denied: tuple[str, ...]) -> list[str]:
    if not allowed:  # NATS takes an empty list for no limit
        return [f'  {name}: {{ deny: ">" }}']
    lines = [f"  {name}: {{", *_list("allow", allowed)]
    if denied:
        lines += _list("deny", denied)
    return [*lines, "  }"]


def _list(name: str, patterns: tuple[str, ...]) -> list[str]:
    return [f"    {name}: [", *(f'      "{pattern}"' for pattern in patterns), "    ]"]
