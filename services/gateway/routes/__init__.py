"""The HTTP interface, a module per concern. Old and new paths of one meaning share a function."""

from __future__ import annotations

from fastapi import APIRouter

from services.gateway import problems
from services.gateway.desk import Desk
from services.gateway.routes import (
    analysis,
    arena,
    events,
    history,
    models,
    rejected,
    runs,
    tasks,
)


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(responses={"default": problems.DESCRIBED})
    for part in (arena, runs, tasks, analysis, history, events, models, rejected):
        router.include_router(part.make_router(desk))
    return router
