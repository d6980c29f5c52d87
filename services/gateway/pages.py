"""The built dashboard as static files, and the headers that keep pages safe.

Every path that is no file and not the interface's is the dashboard's own: it gets index.html and
finds its view from the address. Without a built dashboard the root says what is here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from starlette.datastructures import MutableHeaders

from shared.settings import Settings

BESIDE_THE_SOURCE = Path(__file__).resolve().parents[2] / "dashboard" / "dist"
INDEX = "index.html"

# The names of assets have a hash of what is in them.
FOREVER = "public, max-age=31536000, immutable"
ASK_FIRST = "no-cache"

ABOUT = {
    "status": "online",
    "message": "Hybrid ML Scheduler gateway",
    "docs": "/docs",
    "state": "/api/status",
}

# Addresses of the interface: what is missing there is a 404, never a page.
INTERFACE = ("api", "ws", "docs", "redoc", "asyncapi", "openapi.json", "metrics", "health")
WITH_INLINE_SCRIPTS = ("/docs", "/redoc")

HOST = re.compile(r"[A-Za-z0-9.\-:\[\]]{1,255}")


def install(app: FastAPI, settings: Settings) -> None:
    """The last routes of all: they match whatever is left."""
    folder = (settings.dashboard_dir or BESIDE_THE_SOURCE).resolve()

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def root() -> Response:
        index = folder / INDEX
        return _file(index, ASK_FIRST) if index.is_file() else JSONResponse(ABOUT)

    @app.api_route("/assets/{path:path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def asset(path: str) -> Response:
        return _file(_found(folder, f"assets/{path}"), FOREVER)

    @app.api_route("/{path:path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def page(request: Request, path: str) -> Response:
        if path.partition("/")[0] in INTERFACE:
            raise HTTPException(404, "Not Found")
        wanted = "text/html" in request.headers.get("accept", "")
        view = _found(folder, INDEX) if wanted else None
        return _file(_found(folder, path) or view, ASK_FIRST)

    app.add_middleware(SafeHeaders)


def _found(folder: Path, path: str) -> Path | None:
    """A file of the folder; nothing that leads out of it."""
    try:
        found = (folder / path).resolve()
        return found if found.is_relative_to(folder) and found.is_file() else None
    except (OSError, ValueError):  # a name too long, or with a zero byte
        return None


def _file(path: Path | None, cache: str) -> Response:
    if path is None:
        raise HTTPException(404, "Not Found")
    return FileResponse(path, headers={"Cache-Control": cache})


def policy(path: str, host: str) -> str:
    """What a page may load: its own files, inline styles (charts set them), its own WebSocket."""
    scripts = "'self' 'unsafe-inline'" if path in WITH_INLINE_SCRIPTS else "'self'"
    # Some browsers do not take 'self' for the WebSocket of the same host.
    socket = f" ws://{host} wss://{host}" if HOST.fullmatch(host) else ""
    return (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; "
        f"img-src 'self' data:; font-src 'self' data:; connect-src 'self'{socket}; "
        "worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    )


class SafeHeaders:
    """Puts them on every response."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")

        async def safely(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = policy(scope["path"], host)
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "no-referrer"
                headers["X-Frame-Options"] = "DENY"
                headers["Cross-Origin-Opener-Policy"] = "same-origin"
                headers["Permissions-Policy"] = "camera=(), microphone=(), geolocation=()"
                if scope["scheme"] == "https":
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        await self._app(scope, receive, safely)
