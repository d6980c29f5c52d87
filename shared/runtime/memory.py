"""Returns freed memory to the system: glibc keeps what a large batch has used for the next one."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

RELEASE_SECONDS = 5.0


def _find_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc
        return None


_trim = _find_trim()


async def release_freed_memory() -> None:
    """Repeat it for as long as the process runs."""
    while _trim is not None:
        await asyncio.sleep(RELEASE_SECONDS)
        await asyncio.to_thread(_trim, 0)
