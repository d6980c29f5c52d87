"""Dead letters: messages that a service rejected, in the stream REJECTED.

`Bus.reject` stores them, `dead_letter_replay.py` publishes them again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from nats.js.api import RawStreamMsg
from nats.js.errors import APIError, NotFoundError

from shared.bus.client import Bus
from shared.errors import NotFound
from shared.messages import subjects

# A page reads at most this many letters: with a filter that few match, it is short, not slow.
MAX_SCANNED = 2000
# The stream can only be read forwards, so a page reads windows of sequence numbers backwards.
FIRST_WINDOW, LARGEST_WINDOW = 64, 1024
NOTHING_TO_DELETE = 10043


@dataclass(frozen=True, slots=True)
class Letter:
    """A rejected message. Its headers are not trustworthy: any service may write to REJECTED."""

    sequence: int  # in REJECTED
    at: float
    service: str  # that rejected it
    subject: str  # of the message; empty when unknown
    stream: str
    origin: int  # its sequence in that stream
    reason: str
    size: int  # of the message, in bytes
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def truncated(self) -> bool:
        return self.size > len(self.body)


@dataclass(frozen=True, slots=True)
class Filter:
    service: str | None = None
    subject: str | None = None  # of the messages; with the wildcards * and >

    def matches(self, letter: Letter) -> bool:
        return self.subject is None or subject_matches(self.subject, letter.subject)


@dataclass(frozen=True, slots=True)
class Page:
    letters: list[Letter]  # newest first
    next_before: int | None  # `before` of the next page; None: this is the last one


class DeadLetterQueue:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def counts(self) -> Counter[str]:
        """How many letters each service has rejected."""
        info = await self._bus.jetstream.stream_info(
            subjects.REJECTED, subjects_filter=subjects.rejected("*")
        )
        counts = info.state.subjects or {}
        return Counter({_service(subject): count for subject, count in counts.items()})

    async def get(self, sequence: int) -> Letter:
        try:
            message = await self._bus.jetstream.get_msg(subjects.REJECTED, seq=sequence)
        except NotFoundError:
            raise NotFound(f"no dead letter {sequence}") from None
        return read(message)

    async def page(self, criteria: Filter, limit: int, before: int | None = None) -> Page:
        """The newest letters below `before`."""
        state = (await self._bus.jetstream.stream_info(subjects.REJECTED)).state
        oldest, end = max(state.first_seq, 1), state.last_seq + 1
        end = end if before is None else min(before, end)
        matching: list[Letter] = []
        scanned, window = 0, FIRST_WINDOW
        while end > oldest and len(matching) < limit and scanned < MAX_SCANNED:
            start = max(end - window, oldest)
            letters = [letter async for letter in self._between(start, end, criteria.service)]
            scanned += len(letters)
            matching += [letter for letter in reversed(letters) if criteria.matches(letter)]
            end, window = start, min(window * 2, LARGEST_WINDOW)
        if len(matching) > limit:
            matching = matching[:limit]
            return Page(matching, matching[-1].sequence)
        return Page(matching, end if end > oldest else None)

    async def _between(self, start: int, end: int, service: str | None) -> AsyncIterator[Letter]:
        subject = subjects.rejected(service or "*")
        with suppress(NotFoundError):
            while start < end:
                # Not `direct`: there a letter's own headers could forge its sequence and time.
                message = await self._bus.jetstream.get_msg(
                    subjects.REJECTED, seq=start, subject=subject, next=True
                )
                letter = read(message)
                if letter.sequence >= end:
                    return
                yield letter
                start = letter.sequence + 1

    async def remove(self, sequence: int) -> bool:
        """Whether it existed."""
        try:
            return await self._bus.jetstream.delete_msg(subjects.REJECTED, sequence)
        except NotFoundError:
            return False
        except APIError as error:
            # NATS has another error for sequences before its first message.
            if error.err_code == NOTHING_TO_DELETE or error.description == "no message found":
                return False
            raise

    async def purge(self, criteria: Filter, up_to: int) -> tuple[int, bool]:
        """Remove letters up to a sequence; returns how many, and whether none are left.

        With a subject, one call removes at most MAX_SCANNED letters.
        """
        if criteria.subject is None:
            before = await self.counts()
            subject = subjects.rejected(criteria.service) if criteria.service else None
            await self._bus.jetstream.purge_stream(
                subjects.REJECTED, seq=up_to + 1, subject=subject
            )
            return max((before - await self.counts()).total(), 0), True
        page = await self.page(criteria, MAX_SCANNED, up_to + 1)
        removed = [await self.remove(letter.sequence) for letter in page.letters]
        return sum(removed), page.next_before is None


def read(message: RawStreamMsg) -> Letter:
    body = message.data or b""
    # Values that are not ASCII are objects.
    headers = {name: str(value) for name, value in (message.headers or {}).items()}
    return Letter(
        sequence=message.seq or 0,
        at=message.time.timestamp() if message.time else 0.0,
        service=_service(message.subject or ""),
        subject=headers.get("Hybrid-Subject", ""),
        stream=headers.get("Hybrid-Stream", ""),
        origin=_number(headers.get("Hybrid-Sequence")),
        reason=headers.get("Hybrid-Reason", ""),
        size=max(_number(headers.get("Hybrid-Size")), len(body)),
        body=body,
        headers=headers,
    )


def subject_matches(pattern: str, subject: str) -> bool:
    """With the wildcards of NATS: * is any token, > is all that follow."""
    expected, tokens = pattern.split("."), subject.split(".")
    if expected[-1] == ">":
        expected = expected[:-1]
        if len(tokens) <= len(expected):
            return False
        tokens = tokens[: len(expected)]
    return len(expected) == len(tokens) and all(
        pattern_token in ("*", token) for pattern_token, token in zip(expected, tokens, strict=True)
    )


def _service(subject: str) -> str:
    return subject.partition(".")[2]


def _number(value: Any) -> int:
    """0 if the header is not a number."""
    text = str(value or "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
