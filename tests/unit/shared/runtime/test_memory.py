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


async def test_a_process_that_has_not_grown_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "RELEASE_SECONDS", 0.01)
    rounds, releases = 0, 0
    grown, real_trim = 0, memory._trim

    def resident_bytes() -> int:
        nonlocal rounds
        rounds += 1
        return grown  # not what other tests have left

    def trim(pad: int) -> int:
        nonlocal releases
        releases += 1
        assert real_trim is not None
        return real_trim(pad)

    monkeypatch.setattr(memory, "resident_bytes", resident_bytes)
    monkeypatch.setattr(memory, "_trim", trim)
    releasing = asyncio.create_task(memory.release_freed_memory())
    await asyncio.to_thread(until, lambda: rounds > 20)
    assert releases == 0
    grown = memory.WORTH_BYTES + MIB
    await asyncio.to_thread(until, lambda: releases == 1)
    seen = rounds
    await asyncio.to_thread(until, lambda: rounds > seen + 20)
    assert releases == 1
    releasing.cancel()
