"""Dead letters: list, show, replay, remove."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from services.gateway.http.access import Access
from services.gateway.rejected.preview import detail_of, row_of
from services.gateway.rejected.schemas import LetterDetail, LetterPage, Purged, Replayed
from shared.bus.dead_letter_replay import Replays
from shared.bus.dead_letters import DeadLetterQueue, Filter
from shared.bus.service import Service
from shared.errors import NotFound

MOST = 2**63 - 2

Sequence = Annotated[int, Path(ge=1, le=MOST, description="a dead letter's number")]
ServiceName = Annotated[
    str | None, Query(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="of this service; none: all")
]
Subject = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=200,
        description="only dead letters of this original subject; * and > are wildcards",
    ),
]


def make_router(service: Service, access: Access) -> APIRouter:
    router = APIRouter(tags=["dead letters"])
    guarded = APIRouter(tags=["dead letters"], dependencies=[Depends(access.check)])
    queue = DeadLetterQueue(service.bus)

    @router.get("/api/rejected")
    async def letters(
        service: ServiceName = None,
        subject: Subject = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        before: Annotated[
            int | None, Query(ge=1, le=MOST, description="a number: only older ones")
        ] = None,
    ) -> LetterPage:
        """Messages that a service could not process, newest first.

        A page searches 2,000 dead letters at most: with a subject it may have fewer than `limit`,
        or none, although `next_before` says that there are older ones.
        """
        page = await queue.page(Filter(service, subject), limit, before)
        counts = await queue.counts()
        return LetterPage(
            letters=[row_of(letter) for letter in page.letters],
            next_before=page.next_before,
            total=counts.total(),
            services=dict(counts.most_common(50)),
        )

    @guarded.delete("/api/rejected")
    async def purge(
        up_to: Annotated[int, Query(ge=1, le=MOST, description="the newest one to remove")],
        service: ServiceName = None,
        subject: Subject = None,
    ) -> Purged:
        """Remove dead letters for good. Those that are newer than `up_to` stay."""
        purged, complete = await queue.purge(Filter(service, subject), up_to)
        return Purged(purged=purged, complete=complete)

    @router.get("/api/rejected/{sequence}")
    async def letter(
        sequence: Sequence,
        rows: Annotated[int, Query(ge=0, le=100, description="rows to show of a batch")] = 5,
    ) -> LetterDetail:
        """One dead letter with its body in readable form."""
        return detail_of(await queue.get(sequence), rows)

    @guarded.delete("/api/rejected/{sequence}")
    async def remove(sequence: Sequence) -> Purged:
        """Remove one dead letter for good."""
        if not await queue.remove(sequence):
            raise NotFound(f"no dead letter {sequence}")
        return Purged(purged=1, complete=True)

    @guarded.post("/api/rejected/{sequence}/replay")
    async def replay(sequence: Sequence) -> Replayed:
        """Publish it again on its subject, then remove it. Repeating the request is safe."""
        replayed = await Replays(service.bus, service.runs, queue).replay(sequence)
        return Replayed(
            sequence=sequence,
            subject=replayed.subject,
            stored_as=replayed.sequence,
            note=replayed.note,
        )

    router.include_router(guarded)
    return router
