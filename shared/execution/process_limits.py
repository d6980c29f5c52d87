"""Limits that a device's process sets for itself, and for the programs that it starts."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

PR_SET_PDEATHSIG = 1

# Looked up before a fork: few calls are safe after it.
_prctl: Callable[..., int] | None = getattr(ctypes.CDLL(None), "prctl", None)


def die_with(parent: int) -> None:
    """The kernel kills this process when its parent ends, however that ends."""
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call
        os._exit(1)


def limit_memory(memory_mb: float) -> None:
    """Allow this process that much more address space than it has now."""
    size = round(memory_mb * 1e6) + _address_space()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        size = min(size, hard)
    resource.setrlimit(resource.RLIMIT_AS, (size, hard))


def _address_space() -> int:
    """Bytes; 0: the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()
