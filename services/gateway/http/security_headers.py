"""Headers on every response that limit what a page may load and who may embed it."""

from __future__ import annotations

import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

WITH_INLINE_SCRIPTS = ("/docs", "/redoc")
REPORT_PATH = "/api/reports/"
# A report is a file that anyone may have written: it runs nothing and loads nothing, and only the
# dashboard may show it inside of a page.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox"
)
HOST = re.compile(r"[A-Za-z0-9.\-:\[\]]{1,255}")
FIXED = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class SecurityHeaders:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host", "")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(FIXED)
                if scope["path"].startswith(REPORT_PATH):
                    headers["X-Frame-Options"] = "SAMEORIGIN"
                headers["Content-Security-Policy"] = content_policy(scope["path"], host)
                if scope["scheme"] == "https":
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        await self._app(scope, receive, send_with_headers)


def content_policy(path: str, host: str) -> str:
    """A page may load its own files, inline styles (charts set them) and its own WebSocket."""
    if path.startswith(REPORT_PATH):
        return REPORT_POLICY
    scripts = "'self' 'unsafe-inline'" if path in WITH_INLINE_SCRIPTS else "'self'"
    # In some browsers 'self' does not include the WebSocket of the same host.
    socket = f" ws://{host} wss://{host}" if HOST.fullmatch(host) else ""
    return (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; "
        f"img-src 'self' data:; font-src 'self' data:; connect-src 'self'{socket}; "
        "worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    )
