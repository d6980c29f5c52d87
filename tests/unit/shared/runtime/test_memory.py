"""Memory that was freed goes back to the system."""

from __future__ import annotations

import asyncio

import psutil
import pytest

from shared.runtime import memory
from tests.waiting import until

MIB = 2**20


async def test_freed_memory_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "RELEASE_SECONDS", 0.01)
    process = psutil.Process()
    blocks = [bytearray(64 * 1024) for _ in range(200 * 16)]
    last = bytearray(64 * 1024)  # above them on the heap, so that it does not shrink by itself
    full = process.memory_info().rss
    del blocks
    releasing = asyncio.create_task(memory.release_freed_memory())
    await asyncio.to_thread(until, lambda: process.memory_info().rss < full - 150 * MIB)
    releasing.cancel()
    assert len(last) == 64 * 1024
