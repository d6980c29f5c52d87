"""The history in the shapes it always had, and how it is deleted."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from services.gateway.deletion import Deletion
from services.gateway.desk import Desk, RunId
from services.gateway.rows import ComparativeRow, TrainingRow
from services.gateway.shapes import Deleted


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["history"])
    guarded = APIRouter(tags=["history"], dependencies=[Depends(desk.allow)])
    deletion = Deletion(desk.service, desk.control, desk.queries)

    @router.get("/api/full_history")
    async def full_history(
        run: RunId = None, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000
    ) -> list[TrainingRow]:
        """The newest training rows: task features with the Oracle's share and time."""
        record = await desk.newest(run)
        if record is None:
            return []
        rows = await asyncio.to_thread(desk.queries.training_data, record.run, limit)
        return [TrainingRow(**row) for row in rows]

    @router.get("/api/history/comparative")
    async def comparative(
        run: RunId = None, limit: Annotated[int, Query(ge=1, le=1000)] = 50
    ) -> list[ComparativeRow]:
        """What every scheduler decided for the newest `limit` tasks, and what it cost."""
        record = await desk.newest(run)
        if record is None:
            return []
        names = record.spec.schedulers
        rows, _ = await asyncio.to_thread(
            desk.windows.page, record.run, names, names, None, limit, None
        )
        return [ComparativeRow(run=record.run, **row) for row in rows]

    @guarded.delete("/api/history")
    async def forget() -> Deleted:
        """Delete finished runs with everything they left. Active runs stay, and for later those
        of which something is still on its way."""
        return await deletion.delete()

    router.include_router(guarded)
    return router
