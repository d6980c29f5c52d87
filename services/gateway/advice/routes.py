"""Stores requests for advice; the lab answers them, see shared/messages/advice.py."""

from __future__ import annotations

import asyncio
import secrets
import time
from pathlib import Path

from fastapi import APIRouter, Depends, HTTPException

from services.gateway.advice.schemas import Advice
from services.gateway.http.access import Access
from shared.messages.advice import REQUEST, AdviceRequest, read_progress
from shared.platforms.platform_file import find, parse

# The most requests that may wait: each takes minutes.
MOST_WAITING = 5
LISTED = 20
NO_FOLDER = "advice needs HYBRID_REPORTS_DIR, a folder that the gateway and the lab share"


def make_router(folder: Path | None, access: Access) -> APIRouter:
    router = APIRouter(tags=["advice"])

    @router.get("/api/advice")
    async def requests() -> list[Advice]:
        """Requests for advice and how far they are, newest first."""
        return await asyncio.to_thread(_listed, folder)

    @router.post("/api/advice", dependencies=[Depends(access.check)])
    async def ask(request: AdviceRequest) -> Advice:
        """Ask which scheduler to use. The lab runs what has to be run, for some minutes."""
        if folder is None:
            raise HTTPException(503, NO_FOLDER)
        return await asyncio.to_thread(_store, folder, request)

    return router


def _store(folder: Path, request: AdviceRequest) -> Advice:
    if request.platform_file:
        parse(request.platform_file, "the platform file", folder)  # raises with what is wrong
    elif request.platform:
        find(request.platform)
    unanswered = [each for each in _listed(folder) if each.state in ("waiting", "running")]
    if len(unanswered) >= MOST_WAITING:
        raise HTTPException(429, f"{len(unanswered)} requests wait already", {"Retry-After": "60"})
    name = f"advice-{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    own = folder / name
    own.mkdir(parents=True)
    # Renamed when it is complete: the lab may look at any moment.
    part = own / f"{REQUEST}.part"
    part.write_text(request.model_dump_json())
    part.rename(own / REQUEST)
    return Advice(name=name, asked_at=time.time(), **read_progress(own).model_dump())


def _listed(folder: Path | None) -> list[Advice]:
    if folder is None or not folder.is_dir():
        return []
    root = folder.resolve()
    files = [p for p in root.glob(f"*/{REQUEST}") if p.resolve().is_relative_to(root)]
    files.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    return [
        Advice(
            name=file.parent.name,
            asked_at=file.stat().st_mtime,
            **read_progress(file.parent).model_dump(),
        )
        for file in files[:LISTED]
    ]
