from __future__ import annotations

import asyncio

import pytest

from services.gateway.http.response_cache import ResponseCache


class Work:
    """Counts its calls; each waits for `go`."""

    def __init__(self) -> None:
        self.done = 0
        self.go = asyncio.Event()

    async def __call__(self) -> int:
        self.done += 1
        number = self.done
        await self.go.wait()
        return number


async def test_callers_at_once_share_one_computation() -> None:
    recent, work = ResponseCache(), Work()
    callers = [asyncio.create_task(recent.get("key", work)) for _ in range(50)]
    await asyncio.sleep(0)
    work.go.set()
    assert await asyncio.gather(*callers) == [1] * 50


async def test_a_response_is_cached_for_its_time_and_by_its_key() -> None:
    recent, work = ResponseCache(seconds=60), Work()
    work.go.set()
    assert [await recent.get(key, work) for key in ("a", "a", "b", "a")] == [1, 1, 2, 1]
    forgetful, work = ResponseCache(seconds=0), Work()
    work.go.set()
    assert [await forgetful.get("a", work) for _ in range(3)] == [1, 2, 3]


async def test_a_cancelled_caller_does_not_cancel_the_computation() -> None:
    recent, work = ResponseCache(), Work()
    first = asyncio.create_task(recent.get("key", work))
    second = asyncio.create_task(recent.get("key", work))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    work.go.set()
    assert await second == 1


async def test_a_failure_is_raised_and_not_cached() -> None:
    recent = ResponseCache(seconds=60)
    answers = iter([ValueError("no"), 7])

    async def make() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(ValueError, match="no"):
        await recent.get("key", make)
    assert await recent.get("key", make) == 7


async def test_old_entries_are_evicted() -> None:
    recent, work = ResponseCache(seconds=60, most=2), Work()
    work.go.set()
    for key in ("a", "b", "c"):
        await recent.get(key, work)
    assert await recent.get("c", work) == 3
    assert await recent.get("a", work) == 4
