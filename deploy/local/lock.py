"""A lock on a folder: a file in it that one process holds, and that is free when the process ends,
however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import TextIO

# Whoever asks whether a lock is held takes it for an instant: that is no owner.
ATTEMPTS, PAUSE_SECONDS = 10, 0.02


class Held(Exception):
    """Somebody else has the lock; `owner` is the id of the process."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"held by process {owner}")
        self.owner = owner


def take(path: Path) -> TextIO:
    """Held until the file is closed."""
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
