"""A lock file that one process holds, and that the system releases when the process ends.

Not `filelock`: it names no owner, takes the lock to see whether it is held, and costs every
`hybrid` command 50 ms to import.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import TextIO

# `is_held` takes the lock for an instant, which must not look like an owner.
ATTEMPTS, PAUSE_SECONDS = 10, 0.02


class Held(Exception):
    """Another process holds the lock; `owner` is its id."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"held by process {owner}")
        self.owner = owner


def take(path: Path) -> TextIO:
    """Take the lock; closing the file releases it."""
    file = path.open("a+")
    try:
        _lock(file)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
    except BaseException:
        file.close()
        raise
    return file


def is_held(path: Path) -> bool:
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _lock(file: TextIO) -> None:
    for _ in range(ATTEMPTS):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(PAUSE_SECONDS)
    file.seek(0)
    raise Held(file.read().strip() or "unknown")
