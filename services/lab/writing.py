"""Files that are written whole or not at all: who reads meanwhile sees the old one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A file to write to; it takes the place of `target` when all of it is on the disk."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def replace_text(target: Path, text: str) -> None:
    with replacing(target) as part:
        part.write_text(text, encoding="utf-8")
