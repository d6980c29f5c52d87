"""Reports of the lab, for the dashboard: read only, and only if a folder is set."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

from fastapi import APIRouter
from fastapi.responses import FileResponse

from services.gateway.http.security_headers import REPORT_PATH
from services.gateway.reports.report_folder import ReportFile, find_reports
from services.gateway.reports.schemas import Report
from shared.errors import NotFound

NO_CACHE = {"Cache-Control": "no-cache"}


def make_router(folder: Path | None) -> APIRouter:
    router = APIRouter(tags=["reports"])

    @router.get("/api/reports")
    async def reports() -> list[Report]:
        """Reports of experiments in the folder `HYBRID_REPORTS_DIR`, newest first."""
        return await asyncio.to_thread(_listed, folder)

    @router.get(f"{REPORT_PATH}{{name}}", response_class=FileResponse)
    async def report(name: str) -> FileResponse:
        """The page of a report. Its content policy lets it run no script and load nothing."""
        return FileResponse((await _found(name)).path, headers=NO_CACHE)

    @router.get(f"{REPORT_PATH}{{name}}/{{file}}", response_class=FileResponse)
    async def report_file(name: str, file: Literal["report.json", "report.pdf"]) -> FileResponse:
        """A report as JSON or PDF."""
        path = (await _found(name)).beside(file)
        if path is None:
            raise NotFound(f"report {name!r} has no {file}")
        return FileResponse(path, headers=NO_CACHE)

    async def _found(name: str) -> ReportFile:
        for each in await asyncio.to_thread(find_reports, folder):
            if each.name == name:
                return each
        raise NotFound(f"there is no report {name!r}")

    return router


def _listed(folder: Path | None) -> list[Report]:
    return [
        Report(name=each.name, title=each.title(), kind=each.kind, written_at=each.written_at)
        for each in find_reports(folder)
    ]
