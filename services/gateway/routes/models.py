"""Models: the list, the artefact, the way back to an older one."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from services.gateway.desk import Desk
from services.gateway.rows import StoredModel
from services.gateway.shapes import Rollback
from shared.gateway import MODEL_MANIFEST
from shared.models import Manifest

OCTETS = "application/octet-stream"

Version = Annotated[
    str, Path(description="a version's number, or newest", pattern="^(newest|[1-9][0-9]{0,8})$")
]


def make_router(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["models"])
    guarded = APIRouter(tags=["models"], dependencies=[Depends(desk.allow)])

    @router.get("/api/models")
    async def models(
        run: Annotated[str | None, Query(description="none: all runs", max_length=64)] = None,
        name: Annotated[str | None, Query(description="a learner", max_length=64)] = None,
        version: Annotated[int | None, Query(ge=1, le=2**32 - 1)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
    ) -> list[StoredModel]:
        """Every model that was made, shipped or kept back, newest first."""
        rows = await asyncio.to_thread(desk.queries.models, run, name, version, limit)
        return [StoredModel(**row) for row in rows]

    @router.get(
        "/api/models/{run}/{name}/{version}",
        response_class=Response,
        responses={200: {"content": {OCTETS: {}}}},
    )
    async def artefact(run: str, name: str, version: Version) -> Response:
        """A model itself, ONNX or safetensors; `X-Model-Manifest` says which, and its hash."""
        number = None if version == "newest" else int(version)
        model = await desk.control.model(run, name, number)
        # Headers are plain text; JSON has a way to write anything else.
        manifest = json.dumps(model.manifest.model_dump())
        return Response(model.body, media_type=OCTETS, headers={MODEL_MANIFEST: manifest})

    @guarded.post("/api/models/{run}/{name}/rollback")
    async def roll_back(run: str, name: str, body: Rollback) -> Manifest:
        """Put an older version into service again, as a new version."""
        return await desk.control.roll_back(run, name, body.version)

    router.include_router(guarded)
    return router
