"""Reads a text file, plain or gzip, in blocks of complete lines with line numbers."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from services.lab.traces.problem_report import Report, TraceError

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 16

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GZIP_MAGIC = b"\x1f\x8b"
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
TOO_LONG = f"longer than {LONGEST_LINE} bytes"


class Source:
    """The decompressed bytes of a file, and the position in it for a progress bar."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: BinaryIO = path.open("rb")
            self.total = os.fstat(self._file.fileno()).st_size
            magic = self._file.read(2)
            self._file.seek(0)
        except OSError as error:
            raise TraceError(f"cannot be read: {error.strerror}") from None
        packed = magic == GZIP_MAGIC
        self._bytes: BinaryIO = gzip.GzipFile(fileobj=self._file) if packed else self._file  # type: ignore[assignment]
        self.damage: str | None = None
        self._started = False

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._file.close()

    @property
    def position(self) -> int:
        return 0 if self._file.closed else self._file.tell()

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, none at the end. At damaged gzip data the file ends; `read1` returns
        what comes before the damage, `read` would lose it."""
        pieces: list[bytes] = []
        remaining = BLOCK_BYTES if size < 0 else size
        while remaining > 0 and self.damage is None:
            try:
                piece = self._bytes.read1(remaining)  # type: ignore[attr-defined]
            except DAMAGED as error:
                self.damage = f"the gzip data end early or are damaged ({error})"
                break
            except OSError as error:
                raise TraceError(f"cannot be read: {error.strerror}") from None
            if not piece:
                break
            pieces.append(piece)
            remaining -= len(piece)
        data = b"".join(pieces)
        if not self._started and data:
            self._started = True
            return data.removeprefix(BYTE_ORDER_MARK) or self.read(size)
        return data


@dataclass(frozen=True, slots=True)
class Block:
    """Complete lines, each with its line end."""

    first_line: int
    data: bytes
    count: int

    def lines(self) -> list[bytes]:
        return self.data.split(b"\n")[:-1]

    def halves(self) -> tuple[Block, Block]:
        ends = _line_ends(self.data)
        middle = self.count // 2
        cut = int(ends[middle - 1])
        return (
            Block(self.first_line, self.data[:cut], middle),
            Block(self.first_line + middle, self.data[cut:], self.count - middle),
        )


def blocks(source: Source, report: Report) -> Iterator[Block]:
    line, rest, overlong = 1, b"", False
    while chunk := source.read(BLOCK_BYTES):
        if overlong:
            _, end, chunk = chunk.partition(b"\n")
            if not end:
                continue
            overlong, line = False, line + 1
        data = rest + chunk
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if cut:
            yield from _short_lines(line, data[:cut], report)
            line += data.count(b"\n", 0, cut)
        if len(rest) > LONGEST_LINE:
            report.skip(line, TOO_LONG)
            rest, overlong = b"", True
    if source.damage:
        report.skip(line, "the file is truncated here", source.damage)
    elif rest:
        report.note("the last line has no line end: it may be incomplete; used as it is")
        yield Block(line, rest + b"\n", 1)


def _short_lines(line: int, data: bytes, report: Report) -> Iterator[Block]:
    """The block, without lines that are too long."""
    ends = _line_ends(data)
    lengths = np.diff(ends, prepend=0)
    start, first = 0, 0
    for place in np.flatnonzero(lengths > LONGEST_LINE + 1):
        before = int(ends[place - 1]) if place else 0
        if before > start:
            yield Block(line + first, data[start:before], int(place) - first)
        report.skip(line + int(place), TOO_LONG)
        start, first = int(ends[place]), int(place) + 1
    if start < len(data):
        yield Block(line + first, data[start:] if start else data, len(ends) - first)


def _line_ends(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The offset after each line end."""
    return np.flatnonzero(np.frombuffer(data, np.uint8) == 10) + 1
