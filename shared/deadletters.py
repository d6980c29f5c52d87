"""Dead letters: counted, read, removed. How they come about is in `bus.py`, how they are sent
again in `replays.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from nats.js.api import RawStreamMsg
from nats.js.errors import APIError, NotFoundError

from shared import subjects
from shared.bus import Bus
from shared.errors import NotFound

# A page looks through this many letters at most; a rare filter gives short pages, not slow ones.
SCANNED = 2000
# The stream is read forwards: a page comes from windows of so many sequence numbers, the first one
# small. Numbers of letters that are gone cost nothing.
FIRST_WINDOW, LARGEST_WINDOW = 64, 1024
NOTHING_TO_DELETE = 10043


@dataclass(frozen=True, slots=True)
class Letter:
    """A message that nobody understood. Whoever may write to REJECTED may have made it up."""

    sequence: int  # in REJECTED
    at: float
    service: str  # who put it aside
    subject: str  # where it came on; empty when it does not say
    stream: str
    origin: int  # its sequence in that stream
    reason: str
    size: int  # of the message, in bytes
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def cut(self) -> bool:
        """Whether only the start of the message is here."""
        return self.size > len(self.body)


@dataclass(frozen=True, slots=True)
class Filter:
    service: str | None = None
    subject: str | None = None  # where letters came on; * and > stand for any

    def fits(self, letter: Letter) -> bool:
        return self.subject is None or matches(self.subject, letter.subject)


@dataclass(frozen=True, slots=True)
class Page:
    letters: list[Letter]  # newest first
    next_before: int | None  # where the next page starts; None: there is nothing older


class LetterBox:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def counts(self) -> Counter[str]:
        """How many letters each service has put aside."""
        info = await self._bus.stream.stream_info(
            subjects.REJECTED, subjects_filter=subjects.rejected("*")
        )
        found = info.state.subjects or {}
        return Counter({_service(subject): count for subject, count in found.items()})

    async def get(self, sequence: int) -> Letter:
        try:
            message = await self._bus.stream.get_msg(subjects.REJECTED, seq=sequence)
        except NotFoundError:
            raise NotFound(f"no dead letter {sequence}") from None
        return read(message)

    async def page(self, wanted: Filter, limit: int, before: int | None = None) -> Page:
        """The newest letters below `before`."""
        state = (await self._bus.stream.stream_info(subjects.REJECTED)).state
        oldest, end = max(state.first_seq, 1), state.last_seq + 1
        end = end if before is None else min(before, end)
        found: list[Letter] = []
        scanned, window = 0, FIRST_WINDOW
        while end > oldest and len(found) < limit and scanned < SCANNED:
            start = max(end - window, oldest)
            letters = [letter async for letter in self._between(start, end, wanted.service)]
            scanned += len(letters)
            found += [letter for letter in reversed(letters) if wanted.fits(letter)]
            end, window = start, min(window * 2, LARGEST_WINDOW)
        if len(found) > limit:
            found = found[:limit]
            return Page(found, found[-1].sequence)
        return Page(found, end if end > oldest else None)

    async def _between(self, start: int, end: int, service: str | None) -> AsyncIterator[Letter]:
        subject = subjects.rejected(service or "*")
        with suppress(NotFoundError):
            while start < end:
                # Not `direct`: there a letter's own headers could pass for its place and time.
                message = await self._bus.stream.get_msg(
                    subjects.REJECTED, seq=start, subject=subject, next=True
                )
                letter = read(message)
                if letter.sequence >= end:
                    return
                yield letter
                start = letter.sequence + 1

    async def remove(self, sequence: int) -> bool:
        """Whether it was still there."""
        try:
            return await self._bus.stream.delete_msg(subjects.REJECTED, sequence)
        except NotFoundError:
            return False
        except APIError as error:
            # NATS says it otherwise of a number before the first that it holds.
            if error.err_code == NOTHING_TO_DELETE or error.description == "no message found":
                return False
            raise

    async def purge(self, wanted: Filter, up_to: int) -> tuple[int, bool]:
        """Remove letters up to a sequence; says how many, and whether that were all.

        One call removes as many as a page may look through.
        """
        if wanted.subject is None:
            before = await self.counts()
            subject = subjects.rejected(wanted.service) if wanted.service else None
            await self._bus.stream.purge_stream(subjects.REJECTED, seq=up_to + 1, subject=subject)
            return max((before - await self.counts()).total(), 0), True
        page = await self.page(wanted, SCANNED, up_to + 1)
        removed = [await self.remove(letter.sequence) for letter in page.letters]
        return sum(removed), page.next_before is None


def read(message: RawStreamMsg) -> Letter:
    body = message.data or b""
    # A value that is not plain text comes as an object.
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


def matches(pattern: str, subject: str) -> bool:
    """As NATS does it: * is any token, > is all that follow."""
    wanted, tokens = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(tokens) <= len(wanted):
            return False
        tokens = tokens[: len(wanted)]
    return len(wanted) == len(tokens) and all(
        want in ("*", token) for want, token in zip(wanted, tokens, strict=True)
    )


def _service(subject: str) -> str:
    return subject.partition(".")[2]


def _number(said: Any) -> int:
    """Headers are text, and may be anybody's."""
    text = str(said or "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
