"""Settings to reach an arena's NATS and ClickHouse."""

from __future__ import annotations

from pathlib import Path

from deploy.local.arena import Arena
from services.cli.client import local_arena
from shared.runtime.settings import Settings


def settings(data_dir: Path | None) -> Settings:
    """The settings of the local arena if one runs, else those of the environment."""
    arena = local_arena(data_dir)
    return Settings() if arena is None else settings_of(arena)


def settings_behind_gateway(url: str | None, data_dir: Path | None) -> Settings:
    """A gateway that is named by its address may belong to another arena than the local one, so
    then only the environment counts."""
    return Settings() if url is not None and data_dir is None else settings(data_dir)


def settings_of(arena: Arena, user: str = "admin") -> Settings:
    values = arena.environment(user)
    return Settings.model_validate(
        {key.removeprefix("HYBRID_").lower(): value for key, value in values.items()}
    )
