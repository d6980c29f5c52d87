"""Returns freed memory to the system: glibc keeps what a large batch has used for the next one."""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable
from pathlib import Path

RELEASE_SECONDS = 5.0
# Where a process has grown by less since the last time, nothing is worth the work: the services of
# an arena would all do it at the same moments, and delay each other's messages.
WORTH_BYTES = 8 * 2**20

_STATM = Path("/proc/self/statm")


def _find_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim if _STATM.exists() else None
    except (AttributeError, OSError, TypeError):  # not glibc
        return None


_trim = _find_trim()


async def release_freed_memory() -> None:
    """Repeat it for as long as the process runs."""
    settled = 0
    while _trim is not None:
        await asyncio.sleep(RELEASE_SECONDS)
        settled = min(settled, resident_bytes())
        if resident_bytes() - settled > WORTH_BYTES:
            await asyncio.to_thread(_trim, 0)
            settled = resident_bytes()


def resident_bytes() -> int:
    """The memory that this process has now."""
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
