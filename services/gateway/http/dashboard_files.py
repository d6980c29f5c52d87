"""The built dashboard as static files.

Every path that is neither a file nor the gateway's own is a view of the dashboard and gets
index.html. Without a built dashboard the root describes the gateway.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import FileResponse, JSONResponse

from shared.runtime.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
BUILT_HERE = ROOT / "dashboard" / "dist"
GUIDE = ROOT / "docs"
INDEX = "index.html"

# The name of an asset contains a hash of its content.
CACHE_FOREVER = "public, max-age=31536000, immutable"
REVALIDATE = "no-cache"

ABOUT = {
    "status": "online",
    "message": "Hybrid ML Scheduler gateway",
    "docs": "/docs",
    "state": "/api/status",
}

# First parts of the gateway's own paths: an unknown path there is a 404, not a view.
OWN_PATHS = ("api", "ws", "docs", "redoc", "asyncapi", "openapi.json", "metrics", "health")


def install(app: FastAPI, settings: Settings) -> None:
    """Add these routes after all others: they match every path."""
    folder = (settings.dashboard_dir or BUILT_HERE).resolve()

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def root() -> Response:
        index = folder / INDEX
        return _response(index, REVALIDATE) if index.is_file() else JSONResponse(ABOUT)

    @app.api_route("/assets/{path:path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def asset(path: str) -> Response:
        return _response(_file(folder, f"assets/{path}"), CACHE_FOREVER)

    @app.api_route("/guide/{page:path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def guide(page: str) -> Response:
        """The documents of a checkout and their pictures, which the dashboard's guide shows."""
        file = _file(GUIDE, page) if page.endswith((".md", ".png")) else None
        if file is None:
            raise HTTPException(404, "The guide is in the folder docs of the repository")
        text = "text/plain; charset=utf-8" if page.endswith(".md") else None
        return FileResponse(file, media_type=text)

    @app.api_route("/{path:path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def page(request: Request, path: str) -> Response:
        if path.partition("/")[0] in OWN_PATHS:
            raise HTTPException(404, "Not Found")
        browser = "text/html" in request.headers.get("accept", "")
        view = _file(folder, INDEX) if browser else None
        return _response(_file(folder, path) or view, REVALIDATE)


def _file(folder: Path, path: str) -> Path | None:
    """A file inside the folder; None for anything outside it."""
    try:
        file = (folder / path).resolve()
        return file if file.is_relative_to(folder) and file.is_file() else None
    except (OSError, ValueError):  # a name too long, or with a zero byte
        return None


def _response(file: Path | None, cache: str) -> Response:
    if file is None:
        raise HTTPException(404, "Not Found")
    return FileResponse(file, headers={"Cache-Control": cache})
