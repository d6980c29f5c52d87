"""Permissions on the bus: a NATS user for each service, and one for the command line.

This is the only source. The embedded NATS reads `users_conf`; containers mount it as
deploy/nats/users.conf, which `python -m deploy.nats` writes.

NATS has no wildcard within a name, so the workers of all schedulers share one user: permissions
separate services, but not schedulers from each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.messages import subjects
from shared.messages.subjects import (
    DECISIONS,
    EVENTS,
    EXECUTION,
    MODELS,
    RECORDER_DURABLE,
    REJECTED,
    RESULTS,
    RUNS_STREAM,
    TASKS,
)

API = "$JS.API"
STREAMS = (TASKS, DECISIONS, RESULTS, MODELS, EVENTS, REJECTED, EXECUTION, RUNS_STREAM)


@dataclass(frozen=True, slots=True)
class Rights:
    """Everything else is refused. A denied subject is refused even where a wildcard allows it."""

    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    deny_publish: tuple[str, ...] = ()
    deny_subscribe: tuple[str, ...] = ()
    respond: bool = False  # to requests, on their reply subjects

    def __add__(self, other: Rights) -> Rights:
        return Rights(
            self.publish + other.publish,
            self.subscribe + other.subscribe,
            self.deny_publish + other.deny_publish,
            self.deny_subscribe + other.deny_subscribe,
            self.respond or other.respond,
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
    """Also from any server that holds the stream, which may lag a moment behind the leader."""
    direct = publish(*(f"{API}.DIRECT.GET.{stream}.>" for stream in streams))
    return read_newest(*streams) + api("DIRECT.GET", *streams) + direct


def consume(stream: str, *durables: str) -> Rights:
    """Create or update a durable consumer, pull from it, and acknowledge."""
    calls = ("DURABLE.CREATE", "INFO", "MSG.NEXT")
    patterns = [*(f"{API}.CONSUMER.{call}.{{}}" for call in calls), "$JS.ACK.{}.>"]
    names = [f"{stream}.{durable}" for durable in durables]
    return publish(*(pattern.format(name) for name in names for pattern in patterns))


def _inbox(user: str) -> Rights:
    return subscribe(f"{subjects.inbox(user)}.>")


def _service(name: str) -> Rights:
    """Read the run book, publish events and dead letters, answer roll calls."""
    return (
        _inbox(name)
        + subscribe(subjects.ROLL_CALL, subjects.RUNS_SUBJECTS)
        + publish(f"{subjects.PRESENT}.>", subjects.event("*"), subjects.rejected(name))
        + api("STREAM.INFO", "*")
        + read_newest(RUNS_STREAM)
    )


def _send_roll_calls(name: str) -> Rights:
    return publish(subjects.ROLL_CALL) + subscribe(f"{subjects.PRESENT}.{name}.>")


_WRITE_RUN_BOOK = publish(subjects.RUNS_SUBJECTS)
_READ_LAG = api("CONSUMER.LIST", TASKS, DECISIONS, RESULTS)

GENERATOR = (
    _service("generator")
    + publish(subjects.tasks("*"))
    + _WRITE_RUN_BOOK
    + _READ_LAG
    # It creates and trims the streams, and deletes messages that cannot be read.
    + api("STREAM.CREATE", *STREAMS)
    + api("STREAM.UPDATE", *STREAMS)
    + api("STREAM.PURGE", TASKS, RESULTS, MODELS)
    + api("STREAM.MSG.DELETE", TASKS, DECISIONS, RESULTS)
    + read_newest(TASKS, DECISIONS, RESULTS)
    + api("CONSUMER.INFO", f"{TASKS}.{RECORDER_DURABLE}", f"{RESULTS}.{RECORDER_DURABLE}")
    # Workers and the trainer ask for it: they run plug-ins, and may not write the run book.
    + subscribe(subjects.SUSPEND)
    + Rights(respond=True)
)

SCHEDULER = (
    _service("scheduler")
    + publish(subjects.decisions("*", "*"))
    + consume(TASKS, "*")
    + Rights(deny_publish=consume(TASKS, RECORDER_DURABLE).publish)
    + read(MODELS)
    + subscribe(subjects.model("*", "*"))
    # Workers of cluster policies: tasks of a worker that died, the cluster in the last results,
    # and the cluster that one of them leaves to the next.
    + read_newest(TASKS, RESULTS)
    + publish(subjects.placed("*", "*"))
    + subscribe(subjects.placed("*", "*"))
    + publish(subjects.SUSPEND)
    # The executor asks for decisions of real runs.
    + subscribe(subjects.decide("*", "*"))
    + Rights(respond=True)
)

SIMULATOR = (
    _service("simulator")
    + publish(subjects.results("*", "*"))
    + consume(DECISIONS, "*")
    + read_newest(RESULTS)
    + api("STREAM.MSG.DELETE", RESULTS)
    + _send_roll_calls("simulator")
)

EXECUTOR = (
    _service("executor")
    + publish(subjects.results("*", "*"), subjects.decide("*", "*"))
    + publish(subjects.execution("*", "*"), subjects.EXECUTION_LEASE)
    + read_newest(TASKS, RESULTS, EXECUTION)
    + api("STREAM.MSG.DELETE", RESULTS)
    # It stops a run that its machine cannot execute.
    + _WRITE_RUN_BOOK
)

TRAINER = (
    _service("trainer")
    + publish(subjects.model("*", "*"))
    + consume(RESULTS, "*")
    + Rights(deny_publish=consume(RESULTS, RECORDER_DURABLE).publish)
    + read(MODELS)
    + subscribe(subjects.ROLLBACK)
    + publish(subjects.SUSPEND)
    + Rights(respond=True)
)

RECORDER = _service("recorder")
for _stream in (TASKS, RESULTS, EVENTS, RUNS_STREAM):
    RECORDER += consume(_stream, RECORDER_DURABLE)

# People read, remove and replay them; a replayed message goes to its original subject.
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
    + _WRITE_RUN_BOOK
    + _READ_LAG
    + read_newest(TASKS)
    + read(RESULTS, MODELS)
    + api("STREAM.MSG.DELETE", TASKS)
    + api("STREAM.PURGE", TASKS, DECISIONS, RESULTS, MODELS, EXECUTION)  # when a run is deleted
    + _send_roll_calls("gateway")
    + subscribe(subjects.results("*", "*"), subjects.event("*"))
)

_SERVICES = {
    "generator": GENERATOR,
    "scheduler": SCHEDULER,
    "simulator": SIMULATOR,
    "executor": EXECUTOR,
    "trainer": TRAINER,
    "recorder": RECORDER,
    "gateway": GATEWAY,
}

# The command line's user: sees every message except the replies to services.
ADMIN = _inbox("admin") + Rights(
    subscribe=(">",), deny_subscribe=tuple(f"{subjects.inbox(name)}.>" for name in _SERVICES)
)

USERS: dict[str, Rights] = {**_SERVICES, "admin": ADMIN}

# A second user of the gateway, with its password, in the account to which NATS reports clients
# that it refuses: a service with a wrong password cannot report that itself.
MONITOR = subscribe(subjects.REFUSED_CLIENTS)


def password_variable(user: str) -> str:
    """The NATS server's environment variable with a user's password."""
    return f"NATS_{user.upper()}_PASSWORD"


def password_variables(passwords: dict[str, str]) -> dict[str, str]:
    """In quotes, because NATS reads a password such as 0099 as a number."""
    return {password_variable(user): f'"{passwords[user]}"' for user in USERS}


def users_conf() -> str:
    """The users of every NATS server of the arena."""
    users = "".join(_user(name, rights) for name, rights in USERS.items())
    monitor = _user(subjects.MONITOR_USER, MONITOR, password_of="gateway")
    return (
        "# Written by `python -m deploy.nats` from deploy/nats/permissions.py: edit that file.\n"
        f"authorization {{\n  users: [\n{users}  ]\n}}\n"
        f"accounts {{\n  SYS: {{ users: [\n{monitor}  ] }}\n}}\n"
        "system_account: SYS\n"
    )


def _user(name: str, rights: Rights, password_of: str = "") -> str:
    lines = [
        f"user: {name}, password: ${password_variable(password_of or name)}",
        "permissions: {",
        *_side("publish", rights.publish, rights.deny_publish),
        *_side("subscribe", rights.subscribe, rights.deny_subscribe),
        *(["  allow_responses: true"] if rights.respond else []),
        "}",
    ]
    return "    {\n" + "".join(f"      {line}\n" for line in lines) + "    }\n"


def _side(name: str, allowed: tuple[str, ...], denied: tuple[str, ...]) -> list[str]:
    if not allowed:  # NATS reads an empty list as no limit
        return [f'  {name}: {{ deny: ">" }}']
    lines = [f"  {name}: {{", *_list("allow", allowed)]
    if denied:
        lines += _list("deny", denied)
    return [*lines, "  }"]


def _list(name: str, patterns: tuple[str, ...]) -> list[str]:
    return [f"    {name}: [", *(f'      "{pattern}"' for pattern in patterns), "    ]"]
