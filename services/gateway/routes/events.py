"""What happened: events, newest first."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query

from services.gateway.desk import Desk
from services.gateway.rows import EventPage, StoredEvent


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["events"])

    @router.get("/api/events")
    async def events(
        run: Annotated[str | None, Query(description="none: all", max_length=64)] = None,
        kind: Annotated[
            str | None, Query(description="such as model or run", max_length=32)
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        before: Annotated[
            int | None, Query(ge=1, le=2**63 - 1, description="a sequence: older ones")
        ] = None,
    ) -> EventPage:
        """Things a person would want to read, newest first."""
        rows = await asyncio.to_thread(desk.queries.events, run, kind, limit, before)
        found = [StoredEvent(**row) for row in rows]
        more = len(found) == limit
        return EventPage(events=found, next_before=found[-1].sequence if more else None)

    return router
