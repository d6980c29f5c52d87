"""Reliable cancellation of asyncio tasks."""

from __future__ import annotations

import asyncio
from typing import Any


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they have ended.

    One cancel() is not enough: before Python 3.12 `asyncio.wait_for`, which every request on the
    bus uses, loses a cancellation that arrives together with its result.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=0.2)
