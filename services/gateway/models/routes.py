"""Models: list them, download one, roll back to an older one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from services.gateway.http.access import Access
from services.gateway.models import queries, registry
from services.gateway.models.schemas import RollbackRequest, StoredModel
from shared.bus.client import Bus
from shared.bus.run_book import RunBook
from shared.domain.schedulers import LEARNERS
from shared.errors import NotFound
from shared.messages.models import Manifest
from shared.runtime.gateway_client import MODEL_MANIFEST
from shared.store.client import Store

OCTETS = "application/octet-stream"

Version = Annotated[
    str, Path(description="a version's number, or newest", pattern="^(newest|[1-9][0-9]{0,8})$")
]


def make_router(
    bus: Bus, store: Store, access: Access, run_book: Callable[[], RunBook]
) -> APIRouter:
    router = APIRouter(tags=["models"])

    @router.get("/api/models")
    async def models(
        run: Annotated[str | None, Query(description="none: all runs", max_length=64)] = None,
        name: Annotated[str | None, Query(description="a learner", max_length=64)] = None,
        version: Annotated[int | None, Query(ge=1, le=2**32 - 1)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
    ) -> list[StoredModel]:
        """Every model that was trained, published or rejected, newest first."""
        learners = LEARNERS if run is None else await _learners(run_book(), run)
        rows = await asyncio.to_thread(queries.models, store, run, name, version, limit, learners)
        return [StoredModel(**row) for row in rows]

    @router.get(
        "/api/models/{run}/{name}/{version}",
        response_class=Response,
        responses={200: {"content": {OCTETS: {}}}},
    )
    async def download(run: str, name: str, version: Version) -> Response:
        """The model file, ONNX or safetensors; the header `X-Model-Manifest` describes it."""
        model = await registry.read(bus, run, name, None if version == "newest" else int(version))
        # json.dumps escapes what a header cannot hold.
        manifest = json.dumps(model.manifest.model_dump())
        return Response(model.body, media_type=OCTETS, headers={MODEL_MANIFEST: manifest})

    @router.post("/api/models/{run}/{name}/rollback", dependencies=[Depends(access.check)])
    async def roll_back(run: str, name: str, body: RollbackRequest) -> Manifest:
        """Publish an older version again, as a new version."""
        return await registry.roll_back(bus, run, name, body.version)

    return router


async def _learners(run_book: RunBook, run: str) -> Sequence[str]:
    """The run's, plug-ins among them; of a run that is in no book any more, the built-in ones."""
    with suppress(NotFound):
        return (await run_book.get(run)).learners
    return LEARNERS
