"""Checks of an untrusted Arrow stream before its columns are read: a small body must not become a
large table."""

from __future__ import annotations

import struct

import pyarrow as pa

# What reading a broken Arrow stream may raise.
BROKEN = (pa.ArrowException, EOFError, OSError, StopIteration, ValueError, struct.error)

# Indexes of fields in Arrow's flatbuffers (Message.fbs).
MESSAGE_HEADER, DICTIONARY_DATA, BATCH_COMPRESSION = 2, 1, 3


def refuse_compression(body: bytes) -> None:
    """Compressed columns may expand to a thousand times their size when they are read."""
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body)):
        if message.type == "schema":
            continue
        metadata = message.metadata.to_pybytes()
        batch = _table(metadata, _table(metadata, 0), MESSAGE_HEADER)
        if message.type == "dictionary":
            batch = _table(metadata, batch, DICTIONARY_DATA)
        if _offset(metadata, batch, BATCH_COMPRESSION):
            raise ValueError("compressed; send it uncompressed")


def _table(metadata: bytes, table: int, field: int | None = None) -> int:
    """Position of the table that a field points to, in a flatbuffer that Arrow has verified."""
    position = table if field is None else table + _offset(metadata, table, field)
    (step,) = struct.unpack_from("<I", metadata, position)
    return position + int(step)


def _offset(metadata: bytes, table: int, field: int) -> int:
    """Offset of a field from the start of its table; 0: the field is absent."""
    (back,) = struct.unpack_from("<i", metadata, table)
    vtable = table - back
    (size,) = struct.unpack_from("<H", metadata, vtable)
    entry = 4 + 2 * field
    return int(struct.unpack_from("<H", metadata, vtable + entry)[0]) if entry < size else 0
