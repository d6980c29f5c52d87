"""Data-plane messages: one Arrow IPC stream with one record batch and its envelope.

What belongs to the whole batch (run, sequence number, state) is the envelope, JSON in the schema's
metadata, so a message is complete in itself. Readers ignore metadata and columns they do not know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shared.domain.tasks import DEPENDENCY_WINDOW, LARGEST, Decisions, Tasks
from shared.errors import Unreadable
from shared.messages.arrow_safety import BROKEN, refuse_compression
from shared.messages.columns import DECISION, RESULT, TASK, Column, arrow_schema
from shared.messages.envelope import Envelope, read_envelope

COLUMNS = {"tasks": TASK, "decisions": TASK + DECISION, "results": TASK + DECISION + RESULT}
SCHEMAS = {kind: arrow_schema(columns) for kind, columns in COLUMNS.items()}
TASKS, DECISIONS, RESULTS = SCHEMAS.values()
TASK_NUMBERS = tuple(column.name for column in TASK if column.name != "dependencies")

_UP_TO = f"0 to {LARGEST:g}"


@dataclass(frozen=True, slots=True)
class Batch:
    envelope: Envelope
    rows: pa.RecordBatch


def encode(envelope: Envelope, rows: pa.RecordBatch) -> bytes:
    rows = rows.replace_schema_metadata({"envelope": envelope.to_json()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def decode(body: bytes, subject: str) -> Batch:
    """Read and check a message; Unreadable says what is wrong with it."""
    return _decode(body, subject, first_row=0)


def peek(body: bytes, subject: str) -> Batch:
    """The envelope and the last row only: the cost does not depend on the size of the batch."""
    return _decode(body, subject, first_row=-1)


def _decode(body: bytes, subject: str, first_row: int) -> Batch:
    kind = subject.partition(".")[0]
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            raw = (reader.schema.metadata or {}).get(b"envelope")
            if raw is None:
                raise Unreadable("no envelope in the schema's metadata")
            envelope = read_envelope(raw, kind)
            refuse_compression(body)
            rows = reader.read_next_batch()
        rows.validate()  # slicing a column beyond its end would abort the process
        rows = rows.slice(max(rows.num_rows + first_row, 0)) if first_row else rows
        rows.validate(full=True)
        rows = select_columns(rows, COLUMNS[kind])
    except BROKEN as error:
        raise Unreadable(f"not an Arrow message: {error}") from None
    _check_values(rows, kind)
    if envelope.subject != subject:
        raise Unreadable(f"a message that belongs on {envelope.subject}")
    return Batch(envelope, rows)


def select_columns(rows: pa.RecordBatch, columns: tuple[Column, ...]) -> pa.RecordBatch:
    """Just these columns, checked; those that older versions did not write get their default."""
    present = Counter(rows.schema.names)
    missing = [c.name for c in columns if not present[c.name] and c.since == 1]
    if missing:
        raise Unreadable(f"columns are missing: {', '.join(missing)}")
    repeated = [c.name for c in columns if present[c.name] > 1]
    if repeated:
        raise Unreadable(f"columns are repeated: {', '.join(repeated)}")
    arrays = []
    for wanted in columns:
        if not present[wanted.name]:
            arrays.append(pa.repeat(pa.scalar(wanted.default, wanted.type), rows.num_rows))
            continue
        values = rows.column(wanted.name)
        if values.type != wanted.type:
            raise Unreadable(f"column {wanted.name} is {values.type}, expected {wanted.type}")
        arrays.append(values)
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns))


def _check_values(rows: pa.RecordBatch, kind: str) -> None:
    if rows.num_rows == 0:
        raise Unreadable("a batch without rows")
    if any(values.null_count for values in rows.columns) or (
        rows.column("dependencies").flatten().null_count
    ):
        raise Unreadable("a batch with missing values")
    problem = task_problem(tasks_of(rows))
    if problem:
        raise Unreadable(problem)
    if kind != "tasks":
        share = column(rows, "gpu_fraction")
        _require("gpu_fraction", "0..1", (share >= 0) & (share <= 1), share)
        gpu = column(rows, "gpu")
        _require("gpu", "0 or more", gpu >= 0, gpu)


def task_problem(tasks: Tasks) -> str | None:
    """What is wrong with these tasks, naming the column and the first bad value; else None."""
    try:
        size, intensity = tasks.size, tasks.compute_intensity
        memory, arrival = tasks.memory_required, tasks.arrival_time
        _require("size", f"above 0, at most {LARGEST:g}", (size > 0) & (size <= LARGEST), size)
        _require("compute_intensity", "0..1", (intensity >= 0) & (intensity <= 1), intensity)
        _require("memory_required", _UP_TO, (memory >= 0) & (memory <= LARGEST), memory)
        _require("arrival_time", _UP_TO, (arrival >= 0) & (arrival <= LARGEST), arrival)
        step = np.diff(tasks.task_id)
        _require("task_id", "rising by one", step == 1, tasks.task_id[1:])
        _require("task_id", "0 or more", tasks.task_id >= 0, tasks.task_id)
        for task_id, parents in zip(tasks.task_id, tasks.parents, strict=bool(tasks.parents)):
            for parent in parents:
                if not max(0, task_id - DEPENDENCY_WINDOW) <= parent < task_id:
                    raise Unreadable(
                        f"dependencies of task {task_id}: {parent} is not one of the "
                        f"{DEPENDENCY_WINDOW} tasks before it"
                    )
    except Unreadable as error:
        return str(error)
    return None


def _require(name: str, allowed: str, good: Any, values: Any) -> None:
    if not good.all():
        bad = values[~good][0]
        raise Unreadable(f"{name} must be {allowed}, got {bad}")


def column(rows: pa.RecordBatch, name: str) -> Any:
    """One column as a numpy array."""
    return rows.column(name).to_numpy(zero_copy_only=False)


def tasks_of(rows: pa.RecordBatch) -> Tasks:
    dependencies = rows.column("dependencies")
    any_parents = len(dependencies.flatten()) > 0
    numbers = {name: column(rows, name) for name in TASK_NUMBERS}
    return Tasks(**numbers, parents=dependencies.to_pylist() if any_parents else ())


def task_rows(tasks: Tasks) -> pa.RecordBatch:
    parents = tasks.parents or [()] * len(tasks)
    numbers = {name: getattr(tasks, name) for name in TASK_NUMBERS}
    return _rows("tasks", {**numbers, "dependencies": parents})


def decision_rows(
    task_rows: pa.RecordBatch, tasks: Tasks, decisions: Decisions, gpus: int
) -> pa.RecordBatch:
    """The task rows with the decision's columns behind them."""
    count = len(tasks)
    gpu, explored, probability = decisions.gpu, decisions.explored, decisions.probability
    values = {
        "gpu_fraction": decisions.gpu_fraction,
        "gpu": tasks.task_id % gpus if gpu is None else gpu,
        "model_version": np.full(count, decisions.model_version),
        "explored": np.zeros(count, np.bool_) if explored is None else explored,
        "probability": np.ones(count) if probability is None else probability,
    }
    return _rows("decisions", values, task_rows)


def result_rows(decision_rows: pa.RecordBatch, values: Mapping[str, Any]) -> pa.RecordBatch:
    """The decision rows with the result's columns behind them."""
    return _rows("results", values, decision_rows)


def _rows(
    kind: str, values: Mapping[str, Any], before: pa.RecordBatch | None = None
) -> pa.RecordBatch:
    schema = SCHEMAS[kind]
    first = [] if before is None else before.columns
    arrays = [
        pa.array(_as_type(values[field.name], field.type), field.type)
        for field in list(schema)[len(first) :]
    ]
    return pa.RecordBatch.from_arrays([*first, *arrays], schema=schema)


def _as_type(values: Any, arrow_type: pa.DataType) -> Any:
    """numpy converts between number types; Arrow refuses to."""
    if pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type):
        return np.asarray(values, arrow_type.to_pandas_dtype())
    return values
