"""Events, the history of results and training data, and its deletion."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from services.gateway.history import queries
from services.gateway.history.deletion import HistoryDeletion
from services.gateway.history.schemas import (
    ComparativeRow,
    Deleted,
    EventPage,
    StoredEvent,
    TrainingRow,
)
from services.gateway.http.access import Access
from services.gateway.runs.control import RunControl
from services.gateway.runs.schemas import RunQuery
from services.gateway.tasks.device_names import device_names
from services.gateway.tasks.queries import page
from shared.bus.service import Service
from shared.messages.events import Level, kinds_from
from shared.store.client import Store


def make_router(service: Service, store: Store, control: RunControl, access: Access) -> APIRouter:
    router = APIRouter(tags=["history"])

    @router.get("/api/events")
    async def events(
        run: Annotated[str | None, Query(description="none: all", max_length=64)] = None,
        kind: Annotated[
            str | None, Query(description="such as model or run", max_length=32)
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        before: Annotated[
            int | None, Query(ge=1, le=2**63 - 1, description="a sequence: only older events")
        ] = None,
        level: Annotated[Level, Query(description="this one or a worse one")] = "info",
        text: Annotated[str, Query(description="part of the message", max_length=200)] = "",
    ) -> EventPage:
        """What happened in the arena, newest first."""
        kinds = kinds_from(level) if kind is None else [kind]
        read = partial(queries.events, store, run, kinds, limit, before, text=text)
        rows = await asyncio.to_thread(read)
        next_before = rows[-1]["sequence"] if len(rows) == limit else None
        return EventPage(events=[StoredEvent.of(row) for row in rows], next_before=next_before)

    @router.get("/api/full_history")
    async def full_history(
        run: RunQuery = None, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000
    ) -> list[TrainingRow]:
        """The newest training rows: task features with the Oracle's share and time."""
        record = await control.resolve_if_any(run)
        if record is None:
            return []
        rows = await asyncio.to_thread(queries.training_data, store, record.run, limit)
        return [TrainingRow(**row) for row in rows]

    @router.get("/api/history/comparative")
    async def comparative(
        run: RunQuery = None, limit: Annotated[int, Query(ge=1, le=1000)] = 50
    ) -> list[ComparativeRow]:
        """Decisions and results of all schedulers for the newest `limit` tasks."""
        record = await control.resolve_if_any(run)
        if record is None:
            return []
        names = record.competing
        rows, _ = await asyncio.to_thread(page, store, record.run, names, names, None, limit, None)
        platform = record.spec.platform
        return [
            ComparativeRow(run=record.run, **row, **device_names(row, platform)) for row in rows
        ]

    @router.delete("/api/history", dependencies=[Depends(access.check)])
    async def delete() -> Deleted:
        """Delete finished runs with all their data. Active runs stay, and finished runs that still
        have messages on the bus (`left`)."""
        return await HistoryDeletion(service, store).delete()

    return router
