"""Dead letters: list, look into, replay, purge."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from services.gateway.desk import Desk
from services.gateway.letters import (
    LetterDetail,
    LetterPage,
    Purged,
    Resent,
    detail_of,
    row_of,
)
from shared.deadletters import Filter
from shared.errors import NotFound

MOST = 2**63 - 2

Sequence = Annotated[int, Path(ge=1, le=MOST, description="a dead letter's number")]
Service = Annotated[
    str | None,
    Query(
        pattern=r"^[A-Za-z0-9_-]{1,64}$", description="only what this service put aside; none: all"
    ),
]
Subject = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=200,
        description="only what came on this subject; * and > stand for any",
    ),
]


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["dead letters"])
    guarded = APIRouter(tags=["dead letters"], dependencies=[Depends(desk.allow)])

    @router.get("/api/rejected")
    async def letters(
        service: Service = None,
        subject: Subject = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        before: Annotated[int | None, Query(ge=1, le=MOST, description="older ones")] = None,
    ) -> LetterPage:
        """Messages that nobody could understand, newest first.

        A page looks through 2,000 letters at most: with a subject it may have fewer than asked
        for, or none, while `next_before` says where to go on.
        """
        page = await desk.letters.page(Filter(service, subject), limit, before)
        counts = await desk.letters.counts()
        return LetterPage(
            letters=[row_of(letter) for letter in page.letters],
            next_before=page.next_before,
            total=counts.total(),
            services=dict(counts.most_common(50)),
        )

    @guarded.delete("/api/rejected")
    async def purge(
        up_to: Annotated[int, Query(ge=1, le=MOST, description="the newest one that goes")],
        service: Service = None,
        subject: Subject = None,
    ) -> Purged:
        """Remove dead letters for good. Those that came after `up_to` stay."""
        purged, complete = await desk.letters.purge(Filter(service, subject), up_to)
        return Purged(purged=purged, complete=complete)

    @router.get("/api/rejected/{sequence}")
    async def letter(
        sequence: Sequence,
        rows: Annotated[int, Query(ge=0, le=100, description="rows to show of a batch")] = 5,
    ) -> LetterDetail:
        """One dead letter, with its body made readable as far as that goes."""
        return detail_of(await desk.letters.get(sequence), rows)

    @guarded.delete("/api/rejected/{sequence}")
    async def remove(sequence: Sequence) -> Purged:
        """Remove one dead letter for good."""
        if not await desk.letters.remove(sequence):
            raise NotFound(f"no dead letter {sequence}")
        return Purged(purged=1, complete=True)

    @guarded.post("/api/rejected/{sequence}/replay")
    async def replay(sequence: Sequence) -> Resent:
        """Send it again on its subject, then remove it. Repeating this does no harm."""
        replayed = await desk.replays.replay(sequence)
        return Resent(
            sequence=sequence,
            subject=replayed.subject,
            stored_as=replayed.sequence,
            note=replayed.note,
        )

    router.include_router(guarded)
    return router
