"""Bytes that are almost right, or not at all: every one a function of a random generator."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa

from shared.errors import TooNew, Unreadable
from shared.messages import batches

HUGE = (2**31, 2**63 - 1, 2**63, -(2**63), 10**400, -1, 0, 1e308, -0.0)
STRANGE: tuple[Any, ...] = (
    None,
    True,
    "",
    "\x00",
    "ö" * 1000,
    "../../x",
    "*",
    ">",
    [],
    {},
    [[[[]]]],
    float("nan"),
    float("inf"),
    *HUGE,
)


def mutated(body: bytes, random: Random) -> bytes:
    """One to three changes."""
    for _ in range(random.randint(1, 3)):
        body = random.choice(WAYS)(body, random)
    return body


def _flip(body: bytes, random: Random) -> bytes:
    changed = bytearray(body or b"\x00")
    for _ in range(random.choice((1, 1, 4, 32))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _cut(body: bytes, random: Random) -> bytes:
    return body[: random.randrange(len(body) + 1)]


def _repeat(body: bytes, random: Random) -> bytes:
    start = random.randrange(len(body) + 1)
    return body[:start] + body[start : start + 64] * random.randint(2, 20) + body[start:]


def _swap(body: bytes, random: Random) -> bytes:
    half = random.randrange(len(body) + 1)
    return body[half:] + body[:half]


def _insert(body: bytes, random: Random) -> bytes:
    place = random.randrange(len(body) + 1)
    return body[:place] + random.randbytes(random.randint(1, 64)) + body[place:]


def _replace(body: bytes, random: Random) -> bytes:
    return random.randbytes(random.choice((0, 1, 16, 300, 3000)))


def _grow(body: bytes, random: Random) -> bytes:
    return body + bytes(random.choice((1, 1000, 5000)))


def _nest(body: bytes, random: Random) -> bytes:
    opening = random.choice((b"[", b'{"a":', b'{"data":['))
    return opening * random.choice((10, 1000, 2000))


def _change_json(body: bytes, random: Random) -> bytes:
    """One value of a JSON object, or of an Arrow message's envelope."""
    try:
        return json.dumps(_changed(json.loads(body), random)).encode()
    except (ValueError, RecursionError):
        return _change_envelope(body, random)


def _changed(value: Any, random: Random) -> Any:
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = random.choice(list(value))
        if random.random() < 0.2:
            return {name: old for name, old in value.items() if name != key}
        return {**value, key: _changed(value[key], random)}
    return random.choice(STRANGE)


def _change_envelope(body: bytes, random: Random) -> bytes:
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            rows = reader.read_next_batch()
        rows.validate(full=True)
        envelope = json.loads((rows.schema.metadata or {}).get(b"envelope", b"null"))
        changed = json.dumps(_changed(envelope, random))
    except (pa.ArrowException, StopIteration, OSError, ValueError, RecursionError):
        return _flip(body, random)
    return _written(rows.replace_schema_metadata({"envelope": changed}))


def _change_column(body: bytes, random: Random) -> bytes:
    """One value, the type, the name or the order of a column."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            rows = reader.read_next_batch()
        rows.validate(full=True)
        place = random.randrange(rows.num_columns)
        field = rows.schema.field(place)
        way = random.randrange(4)
        if way == 0:
            return _written(rows.drop_columns([field.name]))
        if way == 1:
            return _written(rows.slice(random.randrange(rows.num_rows + 1)))
        if way == 2:
            column = pa.array(["?"] * rows.num_rows)
            return _written(rows.set_column(place, field.name, column))
        values = rows.column(place).to_pylist()
        values[random.randrange(len(values))] = random.choice(STRANGE)
        column = pa.array(values, field.type, from_pandas=False)
        return _written(rows.set_column(place, field.with_nullable(True), column))
    except (pa.ArrowException, StopIteration, OSError, ValueError, TypeError, OverflowError):
        return _flip(body, random)


def _compress(body: bytes, random: Random) -> bytes:
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            rows = reader.read_next_batch()
        rows.validate(full=True)
        return _written(rows, random.choice(("lz4", "zstd")))
    except (pa.ArrowException, StopIteration, OSError, ValueError):
        return _flip(body, random)


def _written(rows: pa.RecordBatch, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


WAYS = (
    _flip,
    _flip,
    _cut,
    _repeat,
    _swap,
    _insert,
    _replace,
    _grow,
    _nest,
    _change_json,
    _change_json,
    _change_envelope,
    _change_column,
    _change_column,
    _compress,
)


def headers(random: Random) -> dict[str, str] | None:
    """None mostly; else such as a message of ours has, or one that NATS itself gives a meaning.

    Not those that make NATS delete (Nats-Rollup) or refuse a message (Nats-Expected-...): it does
    so for everybody who may publish.
    """
    if random.random() < 0.7:
        return None
    names = (
        "Status",
        "Description",
        "Nats-Sequence",
        "Nats-Subject",
        "Nats-Time-Stamp",
        "Nats-Num-Pending",
        "Hybrid-Reason",
        "Hybrid-Subject",
        "Hybrid-Stream",
        "Hybrid-Sequence",
        "Hybrid-Size",
        "Hybrid-Manifest",
        "Hybrid-Go-On-From",
        "traceparent",
        "X-" + "x" * random.randint(1, 200),
    )
    values = ("404", "100", "503", "-1", "x", "tasks.x", "{}", "y" * 2000, "ö", str(2**70))
    return {random.choice(names): random.choice(values) for _ in range(random.randint(1, 3))}


def is_readable(body: bytes, subject: str) -> bool:
    """A message of a newer format counts as readable: services leave it alone."""
    try:
        batches.decode(body, subject)
    except TooNew:
        return True
    except Unreadable:
        return False
    return True
