"""Publishing a dead letter again, once the reason for its rejection is fixed.

The letter is removed only after the message is stored, so an interrupted replay can be repeated.
Consumers handle a replay like a redelivery: by its batch number, a decision is simulated and a row
is stored once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import nats.errors

from shared.bus.client import RESUME_FROM, Bus
from shared.bus.dead_letters import DeadLetterQueue, Letter
from shared.bus.run_book import RunBook
from shared.bus.task_stream import STATE_READERS
from shared.errors import Conflict, NotAllowed, NotFound, Unavailable, Unreadable
from shared.messages import batches, subjects
from shared.messages.runs import ACTIVE, RunState

# Another instance may publish the next batch between reading the last message and publishing.
ATTEMPTS = 20

# The letter itself says where it came from, so these are all the subjects that a replay may use.
_TOKEN = r"[A-Za-z0-9_-]{1,64}"
REPLAYABLE = {
    subjects.TASKS: re.compile(rf"tasks\.{_TOKEN}"),
    subjects.DECISIONS: re.compile(rf"decisions\.{_TOKEN}\.{_TOKEN}"),
    subjects.RESULTS: re.compile(rf"results\.{_TOKEN}\.{_TOKEN}"),
    subjects.EVENTS: re.compile(rf"events\.{_TOKEN}"),
    subjects.RUNS_STREAM: re.compile(rf"\$KV\.{subjects.RUNS_BUCKET}\.{_TOKEN}"),
}


@dataclass(frozen=True, slots=True)
class Replayed:
    subject: str
    sequence: int  # in its stream

    @property
    def note(self) -> str:
        return f"published again on {self.subject}"


def replay_obstacle(letter: Letter) -> str | None:
    """Why a letter can never be replayed; None if it can."""
    if letter.truncated:
        return f"only {len(letter.body)} of its {letter.size} bytes are stored: it was too large"
    allowed = REPLAYABLE.get(letter.stream)
    if allowed is None or not allowed.fullmatch(letter.subject):
        return "it does not say where it came from"
    return None


class Replays:
    def __init__(self, bus: Bus, runs: RunBook, letters: DeadLetterQueue) -> None:
        self._bus = bus
        self._runs = runs
        self._letters = letters

    async def replay(self, sequence: int) -> Replayed:
        letter = await self._letters.get(sequence)
        try:
            if obstacle := replay_obstacle(letter):
                raise NotAllowed(obstacle)
            stored_as = await self._publish(letter)
        except (NotAllowed, Unreadable) as error:
            raise NotAllowed(f"dead letter {sequence} cannot be replayed: {error}") from None
        except nats.errors.MaxPayloadError:
            raise NotAllowed(f"dead letter {sequence} cannot be replayed: too large") from None
        await self._letters.remove(sequence)
        return Replayed(letter.subject, stored_as)

    async def _publish(self, letter: Letter) -> int:
        if letter.stream == subjects.RUNS_STREAM:
            try:
                return await self._send(letter, after=letter.origin)
            except Conflict:
                raise NotAllowed("the run has a newer record, which would be overwritten") from None
        run = subjects.run_of(letter.subject)
        state = await self._run_state(run)
        if letter.stream in (subjects.TASKS, subjects.DECISIONS) and state == RunState.STOPPED:
            raise NotAllowed(f"run {run} is stopped")
        if letter.stream in STATE_READERS:
            return await self._publish_in_sequence(letter, may_skip=state not in ACTIVE)
        return await self._send(letter)

    async def _publish_in_sequence(self, letter: Letter, *, may_skip: bool) -> int:
        """TASKS and RESULTS are continued from the last message of a subject, so a batch that is
        older than the last one carries the envelope to continue from."""
        check = STATE_READERS[letter.stream]
        envelope = batches.decode(letter.body, letter.subject).envelope
        check(envelope)
        for _ in range(ATTEMPTS):
            last = await self._bus.last_message(letter.subject, letter.stream, check)
            next_batch = last.envelope.batch + 1 if last else 0
            headers = {}
            if last and envelope.batch < next_batch:
                headers[RESUME_FROM] = last.envelope.to_json()
            elif envelope.batch > next_batch and not may_skip:
                raise NotAllowed(
                    f"{letter.subject}: batch {next_batch} is next, not {envelope.batch}; "
                    "replay the batches before it first"
                )
            try:
                return await self._send(letter, last.sequence if last else 0, headers)
            except Conflict:
                continue
        raise Unavailable(f"{letter.subject} advances too fast; try again, or pause the run")

    async def _run_state(self, run: str) -> RunState | None:
        try:
            return (await self._runs.get(run)).state
        except NotFound:
            return None

    async def _send(
        self, letter: Letter, after: int | None = None, headers: dict[str, str] | None = None
    ) -> int:
        # Not the original id, which the stream may remember. With the time, because a NATS server
        # that was wiped counts its letters from 1 again.
        message_id = f"replay.{letter.sequence}.{letter.at:.6f}"
        return await self._bus.publish(
            letter.subject,
            letter.body,
            stream=letter.stream,
            message_id=message_id if after is None else f"{message_id}.{after}",
            after=after,
            headers=headers,
        )
