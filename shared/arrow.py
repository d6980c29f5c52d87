"""Arrow streams from strangers, before a column of theirs is read: a small body must not become a
large table."""

from __future__ import annotations

import struct

import pyarrow as pa

# What bytes that are no Arrow stream, or a broken one, show themselves as when they are read.
BROKEN = (pa.ArrowException, EOFError, OSError, StopIteration, ValueError, struct.error)

# Places of fields in Arrow's flatbuffers (Message.fbs).
MESSAGE_HEADER, DICTIONARY_DATA, BATCH_COMPRESSION = 2, 1, 3


def refuse_compression(body: bytes) -> None:
    """Compressed columns are unpacked as they are read, to a thousand times their size."""
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body)):
        if message.type == "schema":
            continue
        metadata = message.metadata.to_pybytes()
        batch = _table(metadata, _table(metadata, 0), MESSAGE_HEADER)
        if message.type == "dictionary":
            batch = _table(metadata, batch, DICTIONARY_DATA)
        if _place(metadata, batch, BATCH_COMPRESSION):
            raise ValueError("compressed; send it as it is")


def _table(metadata: bytes, table: int, field: int | None = None) -> int:
    """Where the table lies that a field points to, in a flatbuffer that Arrow has verified."""
    at = table if field is None else table + _place(metadata, table, field)
    (step,) = struct.unpack_from("<I", metadata, at)
    return at + int(step)


def _place(metadata: bytes, table: int, field: int) -> int:
    """Where a field of a table lies behind its start; 0: not there."""
    (back,) = struct.unpack_from("<i", metadata, table)
    vtable = table - back
    (size,) = struct.unpack_from("<H", metadata, vtable)
    place = 4 + 2 * field
    return int(struct.unpack_from("<H", metadata, vtable + place)[0]) if place < size else 0
