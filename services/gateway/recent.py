"""Answers that many ask for at once: computed once, kept for about a second."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

Answer = TypeVar("Answer")

KEPT_SECONDS = 1.0
KEPT_ANSWERS = 256


class Recent:
    """Concurrent callers of one key share one computation, later ones its answer while it is new.

    A computation that fails is told to those who waited for it, and is not kept.
    """

    def __init__(self, seconds: float = KEPT_SECONDS, most: int = KEPT_ANSWERS) -> None:
        self._seconds = seconds
        self._most = most
        self._answers: OrderedDict[Hashable, tuple[float, asyncio.Task[Any]]] = OrderedDict()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Answer]]) -> Answer:
        known = self._answers.get(key)
        if known is None or not self._fresh(*known):
            task: asyncio.Task[Answer] = asyncio.create_task(_run(make))
            task.add_done_callback(_hear_out)
            known = self._answers[key] = (time.monotonic(), task)
            self._answers.move_to_end(key)
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
        # A caller that goes away must not take the others' answer along.
        answer: Answer = await asyncio.shield(known[1])
        return answer

    def _fresh(self, started: float, task: asyncio.Task[Any]) -> bool:
        if not task.done():
            return True
        failed = task.cancelled() or task.exception() is not None
        return not failed and time.monotonic() - started < self._seconds


async def _run(make: Callable[[], Awaitable[Answer]]) -> Answer:
    return await make()


def _hear_out(task: asyncio.Task[Any]) -> None:
    """A failure that everybody walked away from is no news for the log."""
    if not task.cancelled():
        task.exception()
