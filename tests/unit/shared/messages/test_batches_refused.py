"""Nothing broken gets through: messages that are refused, and what is said of them."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import Unreadable
from shared.messages import batches
from shared.messages.batches import decode, encode
from tests.unit.shared.messages.samples import (
    CONTENT,
    ENVELOPE,
    KINDS,
    SUBJECTS,
    envelope_of,
    message,
    refusal,
    rows_of,
    written,
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_column_is_named(kind: str) -> None:
    rows = rows_of(kind)
    # A column that may be left out gets its usual value instead: see test_columns.py.
    required = [c.name for c in batches.COLUMNS[kind] if c.left_out is None]
    assert len(required) >= 5
    for name in required:
        without = rows.select([other for other in rows.schema.names if other != name])
        assert refusal(encode(envelope_of(kind), without), kind) == f"columns are missing: {name}"


def test_a_column_that_comes_twice_is_refused() -> None:
    rows = rows_of("tasks")
    rows = rows.append_column("size", rows.column("size"))
    assert "size" in refusal(encode(envelope_of("tasks"), rows))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("task_id", pa.array([300, 301, 302], pa.int32())),
        ("task_id", pa.array(["300", "301", "302"])),
        ("size", pa.array([1.0, 2.0, 3.0], pa.float32())),
        ("size", pa.array(["a", "b", "c"]).dictionary_encode()),
        ("arrival_time", pa.array([{"s": 1}] * 3)),
        ("dependencies", pa.array([1, 2, 3])),
        ("dependencies", pa.array([["1"], [], []])),
    ],
)
def test_a_column_of_the_wrong_type_is_named(name: str, values: pa.Array) -> None:
    said = refusal(message("tasks", **{name: values}))
    assert said.startswith(f"column {name} is {values.type}, expected ")


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_value_is_refused_in_every_column(kind: str) -> None:
    for name, values in CONTENT[kind].items():
        holed = pa.array([values[0], None, values[2]], batches.SCHEMAS[kind].field(name).type)
        assert refusal(message(kind, **{name: holed}), kind) == "a batch with missing values"


def test_a_missing_parent_is_refused() -> None:
    offsets, parents = pa.array([0, 0, 1, 1], pa.int32()), pa.array([None], pa.int64())
    kind = batches.TASKS.field("dependencies").type
    holed = pa.ListArray.from_arrays(offsets, parents, type=kind)
    assert refusal(message("tasks", dependencies=holed)) == "a batch with missing values"


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("size", [1.0, math.nan, 1.0], "size must be above 0, at most 1e+09, got nan in row 1"),
        ("size", [1.0, 1.0, -2.5], "size must be above 0, at most 1e+09, got -2.5 in row 2"),
        ("size", [0.0, 1.0, 1.0], "size must be above 0, at most 1e+09, got 0.0 in row 0"),
        ("size", [math.inf, 1.0, 1.0], "size must be above 0, at most 1e+09, got inf in row 0"),
        ("compute_intensity", [0.0, 2.0, 1.0], "compute_intensity must be 0..1, got 2.0 in row 1"),
        (
            "compute_intensity",
            [0.0, -0.1, 1.0],
            "compute_intensity must be 0..1, got -0.1 in row 1",
        ),
        ("compute_intensity", [math.nan, 0, 0], "compute_intensity must be 0..1, got nan in row 0"),
        ("memory_required", [-1.0, 0, 0], "memory_required must be 0 to 1e+09, got -1.0 in row 0"),
        (
            "memory_required",
            [math.inf, 0, 0],
            "memory_required must be 0 to 1e+09, got inf in row 0",
        ),
        ("arrival_time", [-0.5, 0, 0], "arrival_time must be 0 to 1e+09, got -0.5 in row 0"),
        ("arrival_time", [0, 0, math.nan], "arrival_time must be 0 to 1e+09, got nan in row 2"),
        ("task_id", [300, 302, 303], "task_id must be rising by one, got 302 in row 1"),
        ("task_id", [300, 300, 301], "task_id must be rising by one, got 300 in row 1"),
        ("task_id", [302, 301, 300], "task_id must be rising by one, got 301 in row 1"),
        ("task_id", [-1, 0, 1], "task_id must be 0 or more, got -1 in row 0"),
        (
            "dependencies",
            [[], [301], []],
            "dependencies of task 301: 301 is not one of the 1000000",
        ),
        (
            "dependencies",
            [[], [302], []],
            "dependencies of task 301: 302 is not one of the 1000000",
        ),
        ("dependencies", [[-1], [], []], "dependencies of task 300: -1 is not one of the 1000000"),
        ("width", [1, 0, 1], "width must be 1 to 100000, got 0 in row 1"),
        ("home", [-2, 0, 0], "home must be -1 or more, got -2 in row 0"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_an_impossible_task_is_refused_with_its_value(
    kind: str, column: str, values: list[Any], said: str
) -> None:
    array = pa.array(values, batches.TASKS.field(column).type)
    assert refusal(message(kind, **{column: array}), kind).startswith(said)


def test_a_first_task_has_no_parent_before_task_zero() -> None:
    changed = {"task_id": [0, 1, 2], "dependencies": [[-1], [], []]}
    arrays = {name: pa.array(v, batches.TASKS.field(name).type) for name, v in changed.items()}
    assert "-1 is not one of the 1000000 tasks before it" in refusal(message("tasks", **arrays))


@pytest.mark.parametrize("kind", ["decisions", "results"])
@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("gpu_fraction", [0, 1.5, 1], "gpu_fraction must be 0..1, got 1.5 in row 1"),
        ("gpu_fraction", [-0.5, 0, 1], "gpu_fraction must be 0..1, got -0.5 in row 0"),
        ("gpu_fraction", [0, 0, math.nan], "gpu_fraction must be 0..1, got nan in row 2"),
        ("device", [0, 1, -2], "device must be -1 or more, got -2 in row 2"),
        ("cpu", [0, -3, 1], "cpu must be -1 or more, got -3 in row 1"),
    ],
)
def test_an_impossible_decision_is_refused_with_its_value(
    kind: str, column: str, values: list[Any], said: str
) -> None:
    array = pa.array(values, batches.DECISIONS.field(column).type)
    assert refusal(message(kind, **{column: array}), kind) == said


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_without_rows_is_refused(kind: str) -> None:
    empty = rows_of(kind).slice(0, 0)
    assert refusal(encode(envelope_of(kind), empty), kind) == "a batch without rows"


def test_a_stream_without_a_batch_is_refused() -> None:
    schema = batches.TASKS.with_metadata({"envelope": json.dumps(ENVELOPE)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema):
        pass
    assert refusal(bytes(sink.getvalue())).startswith("not an Arrow message")


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("packed", ["dictionary", "record batch"])
def test_a_compressed_message_is_refused_before_it_is_unpacked(codec: str, packed: str) -> None:
    """Whichever part of it is packed: the batch, or the dictionary of a column nobody asked for."""
    zeros = pa.array(["0" * 4096] * 3).dictionary_encode()
    rows = rows_of("tasks").append_column("zeros", zeros)
    plain, small = (
        pa.ipc.MessageReader.open_stream(written(json.dumps(ENVELOPE), rows, compression))
        for compression in (None, codec)
    )
    body = b"".join(
        (squeezed if squeezed.type == packed else message).serialize().to_pybytes()
        for message, squeezed in zip(plain, small, strict=True)
    )
    assert refusal(body) == "not an Arrow message: compressed; send it uncompressed"


def test_a_newer_format_is_refused_by_its_number() -> None:
    reason = refusal(written(json.dumps(ENVELOPE | {"format": 5})))
    assert reason == "batch format 5 is newer than the 4 that this version reads: upgrade it"


@pytest.mark.parametrize("missing", ["format", "kind", "run", "batch", "published_at"])
def test_an_envelope_without_one_of_its_fields_is_refused(missing: str) -> None:
    rest = {name: value for name, value in ENVELOPE.items() if name != missing}
    assert missing in refusal(written(json.dumps(rest)))


@pytest.mark.parametrize(
    "envelope",
    [
        "",
        "3",
        "[]",
        "null",
        "{",
        b"\xff\xfe",
        "[" * 100_000,
        json.dumps(ENVELOPE | {"format": None}),
        json.dumps(ENVELOPE | {"format": math.inf}),
        json.dumps(ENVELOPE | {"batch": math.inf}),
        json.dumps(ENVELOPE | {"batch": math.nan}),
        json.dumps(ENVELOPE | {"batch": "x"}),
        json.dumps(ENVELOPE | {"batch": -1}),
        json.dumps(ENVELOPE | {"published_at": 10**400}),
        json.dumps(ENVELOPE | {"published_at": "now"}),
        json.dumps(ENVELOPE | {"kind": "results"}),
        json.dumps(ENVELOPE | {"run": "run-2"}),
        json.dumps(ENVELOPE | {"scheduler": "greedy"}),
    ],
)
def test_a_broken_envelope_is_refused(envelope: str | bytes) -> None:
    refusal(written(envelope))


def test_a_message_without_an_envelope_is_refused() -> None:
    rows = rows_of("tasks").replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    assert refusal(bytes(sink.getvalue())) == "no envelope in the schema's metadata"


def test_a_message_on_another_runs_subject_is_refused() -> None:
    body = encode(envelope_of("tasks"), rows_of("tasks"))
    with pytest.raises(Unreadable, match=r"belongs on tasks\.run-1"):
        decode(body, "tasks.run-2")
    with pytest.raises(Unreadable, match="kind 'tasks'"):
        decode(body, "decisions.run-1")


def assert_refused_or_valid(body: bytes, kind: str) -> None:
    """Decode raises Unreadable or returns rows that keep every rule, checked one by one."""
    try:
        rows = batches.complete(decode(body, SUBJECTS[kind]).rows, kind).to_pydict()
    except Unreadable:
        return
    ids = rows["task_id"]
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    assert ids[0] >= 0
    for task_id, parents in zip(ids, rows["dependencies"], strict=True):
        assert all(max(0, task_id - 10**6) <= parent < task_id for parent in parents)
    assert all(0 < size < math.inf for size in rows["size"])
    assert all(0 <= intensity <= 1 for intensity in rows["compute_intensity"])
    assert all(0 <= memory < math.inf for memory in rows["memory_required"])
    assert all(0 <= arrival < math.inf for arrival in rows["arrival_time"])
    assert all(0 <= share <= 1 for share in rows.get("gpu_fraction", []))
    assert all(number >= -1 for name in ("device", "cpu") for number in rows.get(name, []))
    assert all(1 <= width <= 100_000 for width in rows["width"])
    assert all(home >= -1 for home in rows["home"])


BODIES = {kind: message(kind) for kind in KINDS}


@settings(max_examples=200, deadline=None)
@given(body=st.binary(max_size=300), kind=st.sampled_from(KINDS))
def test_random_bytes_are_unreadable(body: bytes, kind: str) -> None:
    refusal(body, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_cut_anywhere_is_refused_or_complete(kind: str) -> None:
    body = BODIES[kind]
    rows = len(body) - 8  # the last 8 bytes only say that nothing follows
    for length in range(rows):
        refusal(body[:length], kind)
    assert decode(body[:rows], SUBJECTS[kind]).rows.to_pydict() == CONTENT[kind]
    for length in range(rows, len(body)):
        with suppress(Unreadable):
            assert decode(body[:length], SUBJECTS[kind]).rows.to_pydict() == CONTENT[kind]


def test_a_message_with_any_one_bit_flipped_is_refused_or_valid() -> None:
    body = BODIES["tasks"]
    for position in range(8 * len(body)):
        flipped = bytearray(body)
        flipped[position // 8] ^= 1 << position % 8
        assert_refused_or_valid(bytes(flipped), "tasks")


@settings(max_examples=500, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8),
    keep=st.one_of(st.just(1.0), st.floats(0, 1)),
)
def test_a_damaged_message_is_refused_or_valid(
    kind: str, changes: list[tuple[float, int]], keep: float
) -> None:
    damaged = bytearray(BODIES[kind])
    for position, byte in changes:
        damaged[int(position * len(damaged))] = byte
    assert_refused_or_valid(bytes(damaged[: math.ceil(keep * len(damaged))]), kind)
