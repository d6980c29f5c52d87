"""Waiting in tests: for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Seconds until a test gives up. It costs nothing while tests pass, and the machine may be busy.
PATIENCE = 300.0


def until(
    condition: Callable[[], T], what: str = "", *, every: float = 0.1, seconds: float = PATIENCE
) -> T:
    """The first true value of the condition."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what or condition}: not in {seconds:.0f} s: {value}"
        time.sleep(every)
    return value
