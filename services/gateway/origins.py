"""Which pages may use the gateway from a browser: its own, and those that the settings name."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit


class Origins:
    def __init__(self, allowed: str) -> None:
        parts = (part.strip().rstrip("/").lower() for part in allowed.split(","))
        self.named = {part for part in parts if part}

    def allow(self, headers: Mapping[str, str]) -> bool:
        """Programs send no Origin; a browser always says from where."""
        origin = headers.get("origin")
        if origin is None or origin.lower() in self.named:
            return True
        try:
            said = urlsplit(origin).netloc
        except ValueError:
            return False
        return said.lower() == headers.get("host", "").lower() != ""
