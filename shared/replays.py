"""A dead letter sent again, when what could not read it has been mended.

The message goes back to where it came from; only then its letter is removed. Whatever is
interrupted in between may be repeated:

- a decision is simulated once, by its batch number, however often it comes;
- a batch of tasks or results whose sequence has gone on is sent behind it, and carries along where
  the sequence stands, so that whoever goes on from the newest message is not led back. Readers
  store and decide a batch again as they would after a redelivery;
- a record of a run is written only while it is still the newest one;
- an event is looked for behind its first place before it is told again.

All but the last hold for ever; the bus itself recognises a repeated replay only for as long as it
remembers message ids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import nats.errors
from nats.js.api import Header
from nats.js.errors import NotFoundError

from shared import batches, subjects
from shared.batches import Batch
from shared.bus import GO_ON_FROM, Bus
from shared.deadletters import Letter, LetterBox
from shared.errors import Conflict, NotAllowed, NotFound, Unavailable, Unreadable
from shared.runs import RunBook, RunRecord, RunState
from shared.standing import standing_of
from shared.stream import STATE

# Somebody may put the next batch on the sequence between a look at it and the publish.
ATTEMPTS = 20

# A letter says itself where it came on: nothing else may be written to on its word.
_TOKEN = r"[A-Za-z0-9_-]{1,64}"
PLACES = {
    subjects.TASKS: re.compile(rf"tasks\.{_TOKEN}"),
    subjects.DECISIONS: re.compile(rf"decisions\.{_TOKEN}\.{_TOKEN}"),
    subjects.RESULTS: re.compile(rf"results\.{_TOKEN}\.{_TOKEN}"),
    subjects.EVENTS: re.compile(rf"events\.{_TOKEN}"),
    subjects.RUNS_STREAM: re.compile(rf"\$KV\.{subjects.RUNS_BUCKET}\.{_TOKEN}"),
}


@dataclass(frozen=True, slots=True)
class Replayed:
    subject: str
    sequence: int | None  # in its stream; None: what it would do was done already
    note: str


class _Done(Exception):
    """What the letter would do has been done."""


def hindrance(letter: Letter) -> str | None:
    """Why a letter can never be replayed, if so."""
    if letter.cut:
        return f"only {len(letter.body)} of its {letter.size} bytes are kept: it was too large"
    place = PLACES.get(letter.stream)
    if place is None or not place.fullmatch(letter.subject):
        return "it does not say where it came from"
    return None


class Replays:
    def __init__(self, bus: Bus, runs: RunBook, letters: LetterBox) -> None:
        self._bus = bus
        self._runs = runs
        self._letters = letters

    async def replay(self, sequence: int) -> Replayed:
        letter = await self._letters.get(sequence)
        if problem := hindrance(letter):
            raise NotAllowed(f"dead letter {sequence} cannot be replayed: {problem}")
        try:
            place: int | None = await self._send(letter)
            note = f"sent again on {letter.subject}"
        except _Done as done:
            place, note = None, str(done)
        except nats.errors.MaxPayloadError:
            raise NotAllowed(f"dead letter {sequence} cannot be replayed: too large") from None
        await self._letters.remove(sequence)
        return Replayed(letter.subject, place, note)

    async def _send(self, letter: Letter) -> int:
        if letter.stream == subjects.RUNS_STREAM:
            return await self._send_record(letter)
        if letter.stream == subjects.EVENTS:
            await self._look_for_event(letter)
        else:
            batch = _read(letter)
            record = await self._record(batch)
            # What cannot be read still becomes a dead letter again.
            if batch is not None and record is not None:
                if letter.stream == subjects.DECISIONS:
                    await self._check_decision(batch, record)
                else:
                    return await self._send_batch(letter, batch, record)
        return await self._publish(letter)

    async def _publish(
        self, letter: Letter, after: int | None = None, headers: dict[str, str] | None = None
    ) -> int:
        return await self._bus.publish(
            letter.subject,
            letter.body,
            stream=letter.stream,
            message_id=_message_id(letter) if after is None else f"{_message_id(letter)}.{after}",
            after=after,
            headers=headers,
        )

    async def _record(self, batch: Batch | None) -> RunRecord | None:
        try:
            return None if batch is None else await self._runs.get(batch.envelope.run)
        except NotFound:
            return None

    async def _check_decision(self, batch: Batch, record: RunRecord) -> None:
        """The simulator waits for the batch that is next, and for no other."""
        said = batch.envelope
        name = f"batch {said.batch} of {said.scheduler} in run {said.run}"
        subject = subjects.results(said.run, said.scheduler)
        last = await self._bus.last(subject, subjects.RESULTS, standing_of)
        trimmed = last is None and record.state == RunState.COMPLETED
        if trimmed or (last and last.envelope.batch >= said.batch):
            raise _Done(f"{name} has its results already")
        if last is None and said.batch > 0 and not record.active:
            raise NotAllowed(f"{name}: the run is {record.state}, and the bus has forgotten it")

    async def _send_batch(self, letter: Letter, batch: Batch, record: RunRecord) -> int:
        said, stream = batch.envelope, letter.stream
        if stream == subjects.TASKS and not record.active:
            raise NotAllowed(f"run {said.run} is {record.state}: nobody decides its tasks any more")
        for _ in range(ATTEMPTS):
            last = await self._bus.last(letter.subject, stream, STATE[stream])
            next_batch = last.envelope.batch + 1 if last else 0
            headers = {}
            if last and said.batch < next_batch:
                headers[GO_ON_FROM] = batches.describe(last.envelope)
            elif said.batch > next_batch and record.active:
                raise NotAllowed(
                    f"{letter.subject}: batch {next_batch} is next, not {said.batch}; "
                    "replay those before it first"
                )
            try:
                return await self._publish(letter, last.sequence if last else 0, headers)
            except Conflict:
                continue
        raise Unavailable(f"{letter.subject} does not hold still; try again, or pause the run")

    async def _send_record(self, letter: Letter) -> int:
        try:
            return await self._publish(letter, after=letter.origin)
        except Conflict:
            run = letter.subject.rpartition(".")[2]
            raise NotAllowed(f"run {run} has a newer record, which would be overwritten") from None

    async def _look_for_event(self, letter: Letter) -> None:
        sequence, wanted = letter.origin, _message_id(letter)
        while True:
            try:
                message = await self._bus.stream.get_msg(
                    letter.stream, seq=sequence + 1, subject=letter.subject, next=True
                )
            except NotFoundError:
                return
            if (message.headers or {}).get(Header.MSG_ID) == wanted:
                raise _Done("the event was told again already")
            sequence = message.seq or 0


def _message_id(letter: Letter) -> str:
    """Not the message's own: the bus may still remember that one, and would drop the replay.

    With the time: a bus that was wiped counts its letters from 1 again.
    """
    return f"replay.{letter.sequence}.{letter.at:.6f}"


def _read(letter: Letter) -> Batch | None:
    try:
        batch = batches.decode(letter.body, letter.subject)
        if letter.stream in STATE:
            STATE[letter.stream](batch.envelope)
    except Unreadable:
        return None
    return batch
