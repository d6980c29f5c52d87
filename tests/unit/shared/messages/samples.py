"""Messages of the data plane as a test writes them: good ones, and ones with something wrong."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from shared.errors import Unreadable
from shared.messages import batches
from shared.messages.batches import Envelope, decode, encode
from shared.messages.columns import FLAG, FLOAT, RESULT, TEXT

COLUMNS: dict[str, list[Any]] = {
    "task_id": [300, 301, 302],
    "size": [200.5, 1000.0, 12.25],
    "compute_intensity": [0.0, 0.5, 1.0],
    "memory_required": [0.0, 1600.0, 64_000.0],
    "arrival_time": [1.5, 1.5, 2.25],
    "dependencies": [[], [45, 299, 300], [46]],  # 45 and 46 are 256 tasks back
    "kind": ["", "gemm", "gemm"],
    "divisible": [True, False, True],
    "width": [1, 2, 1],
    "home": [-1, 0, 3],
    "last_child": [301, 400, 302],
}
DECISION_COLUMNS: dict[str, list[Any]] = {
    "gpu_fraction": [0.0, 0.25, 1.0],
    "device": [0, 3, -1],
    "cpu": [4, -1, 4],
    "model_version": [7, 7, 7],
    "explored": [False, True, False],
    "probability": [1.0, 0.05, 1.0],
    "expected_time": [0.5, 0.0, 2.5],
    "turn": [301, 300, -1],
    "predicted": [[0.5, 2.0], [], [1.5, -1.0]],
    "scores": [[0.5, 1.0, 2.5], [], []],
}
RESULT_VALUES: dict[pa.DataType, list[Any]] = {
    FLOAT: [0.5, 1.5, 2.5],
    TEXT: ["", "ran again", "killed by signal 9"],
    FLAG: [True, False, False],
    pa.int32(): [1, 2, 1],
}
RESULT_COLUMNS = {column.name: RESULT_VALUES[column.type] for column in RESULT} | {
    "status": ["ok", "ok", "failed"]
}
CONTENT = {
    "tasks": COLUMNS,
    "decisions": COLUMNS | DECISION_COLUMNS,
    "results": COLUMNS | DECISION_COLUMNS | RESULT_COLUMNS,
}
SUBJECTS = {
    "tasks": "tasks.run-1",
    "decisions": "decisions.run-1.greedy",
    "results": "results.run-1.greedy",
}
KINDS = list(CONTENT)


def envelope_of(kind: str) -> Envelope:
    scheduler = "" if kind == "tasks" else "greedy"
    return Envelope(kind, "run-1", 12, 1700000000.25, scheduler, {"clock": 2.25, "n": [1]})


def rows_of(kind: str, /, **changed: pa.Array) -> pa.RecordBatch:
    """Good rows of a kind, but for the changed columns, which may be of any type."""
    fields, arrays = [], []
    for field in batches.SCHEMAS[kind]:
        if field.name in changed:
            arrays.append(changed[field.name])
            fields.append(pa.field(field.name, arrays[-1].type))
        else:
            arrays.append(pa.array(CONTENT[kind][field.name], field.type))
            fields.append(field)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def message(kind: str, /, **changed: pa.Array) -> bytes:
    return encode(envelope_of(kind), rows_of(kind, **changed))


def written(
    envelope: str | bytes, rows: pa.RecordBatch | None = None, compression: str | None = None
) -> bytes:
    """A message with these exact bytes as its envelope."""
    rows = rows_of("tasks") if rows is None else rows
    rows = rows.replace_schema_metadata({"envelope": envelope})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


ENVELOPE: dict[str, Any] = {
    "format": 2,
    "kind": "tasks",
    "run": "run-1",
    "batch": 12,
    "published_at": 1.5,
}


def refusal(body: bytes, kind: str = "tasks") -> str:
    with pytest.raises(Unreadable) as caught:
        decode(body, SUBJECTS[kind])
    return str(caught.value)
