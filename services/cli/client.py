"""Where the arena is: the local one, or what the options and the environment say."""

from __future__ import annotations

from pathlib import Path

from deploy.local.arena import DEFAULT_DATA_DIR, Arena, find
from shared.errors import Unavailable
from shared.gateway import Gateway
from shared.settings import Settings

DEFAULT_URL = "http://127.0.0.1:8000"


def connect(url: str | None, data_dir: Path | None) -> Gateway:
    if url is None and (arena := local_arena(data_dir)):
        return gateway_of(arena)
    settings = Settings()
    return Gateway(url or DEFAULT_URL, _token(settings), settings.gateway_tls_ca)


def gateway_of(arena: Arena) -> Gateway:
    """With the token of the environment, which an arena's services inherit."""
    trust = arena.certificates
    return Gateway(arena.url, _token(Settings()), trust.authority if trust else None)


def _token(settings: Settings) -> str:
    return settings.gateway_token.get_secret_value()


def local_arena(data_dir: Path | None) -> Arena | None:
    """The embedded arena of a folder. A folder that was named must have one."""
    arena = find(data_dir or DEFAULT_DATA_DIR)
    if arena is None and data_dir is not None:
        raise Unavailable(f"no arena runs in {data_dir}")
    return arena


def settings(data_dir: Path | None) -> Settings:
    """How to reach NATS and ClickHouse: the local arena's, else what the environment says."""
    arena = local_arena(data_dir)
    return Settings() if arena is None else settings_of(arena)


def settings_beside(url: str | None, data_dir: Path | None) -> Settings:
    """The same for the arena of a gateway: one that is named by its address need not be the local
    one, so then the environment alone says where its ClickHouse is."""
    return Settings() if url is not None and data_dir is None else settings(data_dir)


def settings_of(arena: Arena, user: str = "admin") -> Settings:
    values = arena.environment(user)
    return Settings.model_validate(
        {key.removeprefix("HYBRID_").lower(): value for key, value in values.items()}
    )
