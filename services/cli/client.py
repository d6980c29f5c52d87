"""The local arena, or the one that the options and the environment name, and its gateway."""

from __future__ import annotations

import os
from pathlib import Path

from deploy.local.arena import DEFAULT_DATA_DIR, Arena, find
from shared.errors import Unavailable
from shared.runtime.gateway_client import GatewayClient

DEFAULT_URL = "http://127.0.0.1:8000"


def connect(url: str | None, data_dir: Path | None, timeout: float = 30) -> GatewayClient:
    if url is None and (arena := local_arena(data_dir)):
        return gateway_of(arena, timeout)
    named = os.environ.get("HYBRID_GATEWAY_TLS_CA")
    authority = Path(named) if named else None
    return GatewayClient(url or DEFAULT_URL, _token(), authority, timeout)


def gateway_of(arena: Arena, timeout: float = 30) -> GatewayClient:
    files = arena.certificates
    return GatewayClient(arena.url, _token(), files.authority if files else None, timeout)


def _token() -> str:
    """From the environment: importing `Settings` would take longer than all other imports."""
    return os.environ.get("HYBRID_GATEWAY_TOKEN", "")


def local_arena(data_dir: Path | None) -> Arena | None:
    """The embedded arena that runs in the folder; without one, an error if the folder was named."""
    arena = find(data_dir or DEFAULT_DATA_DIR)
    if arena is None and data_dir is not None:
        raise Unavailable(f"no arena runs in {data_dir}")
    return arena
