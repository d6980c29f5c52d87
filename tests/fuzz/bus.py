"""Garbage for every subject of the bus.

What a message becomes:

- on the streams that services read (tasks, decisions, results, events, the book of runs): what
  cannot be read is a dead letter;
- what can still be read after a mutation is a forgery that only rights can prevent. It is sent to a
  run that has been stopped, and never to the one that is watched;
- `rejected.*` is where garbage belongs, and nobody reads it but people;
- models are read by workers, which refuse what is not signed or does not match its hash, and say so
  in an event;
- a roll call is answered whatever it says, a wrong request for a rollback with an error.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from nats.aio.client import Client

from shared.domain.schedulers import FOREST
from shared.errors import ModelRefused
from shared.messages import models, signatures, subjects
from shared.messages.events import Event
from shared.messages.models import MANIFEST, SIGNATURE
from tests.fuzz.mutate import headers, is_readable, mutated
from tests.waiting import PATIENCE

# Where letters come from, by the first token of a subject.
STREAMS = {
    "tasks": subjects.TASKS,
    "decisions": subjects.DECISIONS,
    "results": subjects.RESULTS,
    "events": subjects.EVENTS,
    "$KV": subjects.RUNS_STREAM,
}
STRANGER = "nobody-knows"  # a run that does not exist
STRANGERS_KEY = "01" * 32
KEPT = 100  # readable forgeries of decisions: a batch that never comes due waits for ever


@dataclass
class Seeds:
    """Valid messages of the watched run and of a stopped one."""

    live: str
    stopped: str
    batches: dict[str, list[bytes]]  # by subject
    record: bytes
    model: bytes  # of the run that is watched, as it was shipped
    manifest: str
    key: str  # with which it was signed


@dataclass
class Sent:
    unreadable: Counter[str] = field(default_factory=Counter)
    readable: Counter[str] = field(default_factory=Counter)

    @property
    def all(self) -> Counter[str]:
        return self.unreadable + self.readable


class Bombardment:
    """As many messages on each subject as wanted, from one seed."""

    def __init__(self, seeds: Seeds, seed: int) -> None:
        self._seeds = seeds
        self._random = Random(seed)
        self.sent = Sent()
        self.forged: set[str] = set()  # hashes of models for the worker of the run that is watched

    def stream_messages(self, count: int) -> Iterator[tuple[str, bytes, dict[str, str] | None]]:
        """For the streams that services read: unreadable messages, and readable forgeries."""
        for kind in ("tasks", "decisions", "results"):
            for _ in range(count):
                yield self._batch(kind)
        for _ in range(count):
            yield self._event()
        for number in range(count):
            yield self._record(number)

    def model_messages(self, count: int) -> Iterator[tuple[str, bytes, dict[str, str] | None]]:
        """A shipped model with its manifest, its signature or its body changed."""
        given = self._seeds
        public_key = signatures.public_key(given.key)
        signature = signatures.sign(given.key, given.manifest)
        while self.sent.unreadable["models"] < count:
            run = self._random.choice((given.live, given.live, given.live, "x"))
            subject = subjects.model(run, self._random.choice((FOREST, FOREST, "rl_agent", "x")))
            body, manifest, signed = given.model, given.manifest, signature
            what = self._random.choice(("body", "signature", "manifest", "signed manifest", "all"))
            if what == "body":
                body = mutated(body, self._random)
            elif what == "signature":
                signed = self._text(signed)
            elif what == "all":  # nothing is wrong with it but who made it
                newer = {"version": self._random.randint(2, 10**6)}
                manifest = json.dumps(json.loads(manifest) | newer)
                signed = self._random.choice((signed, signatures.sign(STRANGERS_KEY, manifest), ""))
            else:
                manifest = self._text(manifest)
                if what == "signed manifest":  # so that it is looked at
                    signed = signatures.sign(given.key, manifest)
            forged = {MANIFEST: manifest, SIGNATURE: signed}
            try:
                models.read_model(subject, forged, body, public_key=public_key)
            except ModelRefused:
                _, _, more = self._note(subject, body, readable=False)
                if subject == subjects.model(given.live, FOREST):
                    self.forged.add(models.digest(body))
                yield subject, body, {**(more or {}), **forged}

    def _text(self, original: str) -> str:
        """Changed, but still valid in a header: one line of printable characters."""
        text = mutated(original.encode(), self._random).decode(errors="replace")
        return "".join(letter if letter.isprintable() else "?" for letter in text).strip()

    def other_messages(self, count: int) -> Iterator[tuple[str, bytes, dict[str, str] | None]]:
        """For subjects that are no stream of the data plane."""
        for number in range(count):
            body = mutated(b"a dead letter", self._random)
            yield self._note(f"rejected.x{number % 5}", body, readable=False)
        for subject in (subjects.ROLL_CALL, subjects.ROLLBACK):
            request = b'{"run": "x", "name": "hybrid_ml", "version": 1}'
            for _ in range(count):
                yield self._note(subject, mutated(request, self._random), readable=False)

    def _note(
        self, subject: str, body: bytes, *, readable: bool
    ) -> tuple[str, bytes, dict[str, str] | None]:
        kind = subject.partition(".")[0] if subject[0] != "$" else "$KV"
        kind = subject if kind == "arena" else kind
        (self.sent.readable if readable else self.sent.unreadable)[kind] += 1
        return subject, body, headers(self._random)

    def _batch(self, kind: str) -> tuple[str, bytes, dict[str, str] | None]:
        mine = [subject for subject in self._seeds.batches if subject.startswith(f"{kind}.")]
        while True:
            subject = self._random.choice(mine)
            run = subjects.run_of(subject)
            body = mutated(self._random.choice(self._seeds.batches[subject]), self._random)
            if not is_readable(body, subject):
                if self._random.random() < 0.1:  # on a subject that is not its own either
                    subject = subject.replace(run, STRANGER)
                return self._note(subject, body, readable=False)
            if run == self._seeds.stopped and self.sent.readable[kind] < KEPT:
                return self._note(subject, body, readable=True)

    def _event(self) -> tuple[str, bytes, dict[str, str] | None]:
        whole = Event(kind="fuzz", service="fuzz", message="a note", data={"a": [1]})
        body = mutated(whole.model_dump_json().encode(), self._random)
        return self._note("events.fuzz", body, readable=_is_event(body))

    def _record(self, number: int) -> tuple[str, bytes, dict[str, str] | None]:
        """On other keys than those of real runs."""
        body = mutated(self._seeds.record, self._random)
        deletes = self._random.random() < 0.1  # says so: what else it says is not read
        subject = f"$KV.{subjects.RUNS_BUCKET}.x{number}"
        self._note(subject, body, readable=deletes)
        operation = {"KV-Operation": self._random.choice(("DEL", "PURGE", "x"))}
        return subject, body, operation if deletes else None


def _is_event(body: bytes) -> bool:
    try:
        Event.model_validate_json(body)
    except ValueError:
        return False
    return True


async def publish_all(
    client: Client, messages: Iterator[tuple[str, bytes, dict[str, str] | None]]
) -> None:
    """Without waiting for an answer to each."""
    for place, (subject, body, given) in enumerate(messages):
        reply = client.new_inbox() if subject.startswith("arena.") else ""
        await client.publish(subject, body, reply=reply, headers=given)
        if place % 100 == 99:
            await client.flush(int(PATIENCE))
    await client.flush(int(PATIENCE))
