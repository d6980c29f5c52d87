"""Atomic file writes: readers see the old file or the complete new one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replace_file(target: Path) -> Iterator[Path]:
    """Yields a temporary file to write to; it replaces `target` once it is on disk."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def replace_text(target: Path, text: str) -> None:
    with replace_file(target) as part:
        part.write_text(text, encoding="utf-8")
