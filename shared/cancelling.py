"""Ending asyncio tasks for certain."""

from __future__ import annotations

import asyncio
from typing import Any


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they have ended.

    Once is not enough: before Python 3.12 `asyncio.wait_for` loses a cancellation that comes in
    the moment its result does, and every request on the bus waits that way.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=0.2)
