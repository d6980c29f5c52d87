"""Who may change something: the token, and the web pages that may call from a browser."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from shared.runtime.settings import Settings


class Origins:
    """The gateway's own origin, and those in HYBRID_GATEWAY_ORIGINS."""

    def __init__(self, allowed: str) -> None:
        parts = (part.strip().rstrip("/").lower() for part in allowed.split(","))
        self.named = {part for part in parts if part}

    def allow(self, headers: Mapping[str, str]) -> bool:
        """Browsers send an Origin with all requests that change something; programs send none."""
        origin = headers.get("origin")
        if origin is None or origin.lower() in self.named:
            return True
        try:
            host = urlsplit(origin).netloc
        except ValueError:
            return False
        return host.lower() == headers.get("host", "").lower() != ""


class Access:
    def __init__(self, settings: Settings) -> None:
        self.origins = Origins(settings.gateway_origins)
        self._token = settings.gateway_token.get_secret_value()
        self.token_required = bool(self._token)

    def check(self, request: Request) -> None:
        """A dependency of every route that changes something."""
        if not self.origins.allow(request.headers):
            raise HTTPException(
                403, "the request comes from a page of another origin: set HYBRID_GATEWAY_ORIGINS"
            )
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.token_required and not hmac.compare_digest(token.encode(), self._token.encode()):
            raise HTTPException(
                401,
                "Authorization: Bearer <token> is missing or wrong",
                {"WWW-Authenticate": "Bearer"},
            )
