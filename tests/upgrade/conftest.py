"""The real NATS and ClickHouse of the integration tests."""

from __future__ import annotations

from tests.integration.conftest import (
    arena,
    bus,
    clickhouse,
    full_arena,
    http,
    impatient,
    nats_process,
    settings,
    stored,
)

__all__ = [
    "arena",
    "bus",
    "clickhouse",
    "full_arena",
    "http",
    "impatient",
    "nats_process",
    "settings",
    "stored",
]
