"""Responses that many clients poll for: computed once, cached for about a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from shared.runtime.bounded_dict import BoundedDict

Response = TypeVar("Response")

CACHED_SECONDS = 1.0
CACHED_RESPONSES = 256


class ResponseCache:
    """Concurrent callers of one key share one computation; later callers get its result while it is
    fresh. A computation that fails raises in every waiting caller and is not cached.
    """

    def __init__(self, seconds: float = CACHED_SECONDS, most: int = CACHED_RESPONSES) -> None:
        self._seconds = seconds
        self._entries: BoundedDict[Hashable, tuple[float, asyncio.Task[Any]]] = BoundedDict(most)

    async def get(self, key: Hashable, compute: Callable[[], Awaitable[Response]]) -> Response:
        entry = self._entries.get(key)
        if entry is None or not self._fresh(*entry):
            task: asyncio.Task[Response] = asyncio.ensure_future(compute())
            # Else asyncio logs a failure whose callers have all been cancelled.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            entry = self._entries[key] = (time.monotonic(), task)
        # A caller that is cancelled must not cancel the computation of the others.
        response: Response = await asyncio.shield(entry[1])
        return response

    def _fresh(self, started: float, task: asyncio.Task[Any]) -> bool:
        if not task.done():
            return True
        failed = task.cancelled() or task.exception() is not None
        return not failed and time.monotonic() - started < self._seconds
