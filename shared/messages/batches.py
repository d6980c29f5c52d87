"""Data-plane messages: one Arrow IPC stream with one record batch and its envelope.

What belongs to the whole batch (run, sequence number, state) is the envelope, JSON in the schema's
metadata, so a message is complete in itself. Readers ignore metadata and columns they do not know.

A batch has no column whose rows all have the usual value: most tasks are simulated, not divided,
and have no parents; most schedulers explain nothing. `column` gives that value, `complete` adds
such columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from shared.domain.hardware.cluster_spec import MOST_DEVICES
from shared.domain.hardware.platform import Platform
from shared.domain.tasks import (
    DEPENDENCY_WINDOW,
    FARTHEST_PARENT,
    FEATURES,
    LARGEST,
    USUAL,
    Decisions,
    Integers,
    Tasks,
)
from shared.errors import Unreadable
from shared.messages.arrow_safety import BROKEN, refuse_compression
from shared.messages.columns import (
    DECISION,
    FLOAT,
    RESULT,
    TASK,
    Column,
    arrow_schema,
    list_of,
)
from shared.messages.envelope import Envelope, read_envelope

COLUMNS = {"tasks": TASK, "decisions": TASK + DECISION, "results": TASK + DECISION + RESULT}
SCHEMAS = {kind: arrow_schema(columns) for kind, columns in COLUMNS.items()}
TASKS, DECISIONS, RESULTS = SCHEMAS.values()
TASK_NUMBERS = ("task_id", *FEATURES, "arrival_time")

# Columns that a batch may be without, and the value that they have then.
OPTIONAL = {c.name: c.left_out for c in COLUMNS["results"] if c.left_out is not None}
LISTS = {c.name for c in COLUMNS["results"] if pa.types.is_list(c.type)}

_UP_TO = f"0 to {LARGEST:g}"


@dataclass(frozen=True, slots=True)
class Batch:
    envelope: Envelope
    rows: pa.RecordBatch


def encode(envelope: Envelope, rows: pa.RecordBatch) -> bytes:
    rows = _without_usual(rows).replace_schema_metadata({"envelope": envelope.to_json()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def _without_usual(rows: pa.RecordBatch) -> pa.RecordBatch:
    names = rows.schema.names
    usual = [name for name in names if name in OPTIONAL and rows.num_rows and _is_usual(rows, name)]
    return rows.select([name for name in names if name not in usual]) if usual else rows


def _is_usual(rows: pa.RecordBatch, name: str) -> bool:
    values = rows.column(name)
    if pa.types.is_list(values.type):
        return not len(values.flatten())
    if values[0].as_py() != OPTIONAL[name]:
        return False
    return bool((values.to_numpy(zero_copy_only=False) == OPTIONAL[name]).all())


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
        # An older version sent columns with usual values, too.
        rows = _without_usual(_known_columns(rows, COLUMNS[kind]))
    except BROKEN as error:
        raise Unreadable(f"not an Arrow message: {error}") from None
    _check_values(rows, kind)
    if envelope.subject != subject:
        raise Unreadable(f"a message that belongs on {envelope.subject}")
    return Batch(envelope, rows)


@lru_cache(maxsize=256)
def _schema(kind: str, names: tuple[str, ...]) -> pa.Schema:
    return pa.schema([SCHEMAS[kind].field(name) for name in names])


def select_columns(rows: pa.RecordBatch, columns: tuple[Column, ...]) -> pa.RecordBatch:
    """Just these columns, checked; those that were left out get their usual value."""
    rows = _known_columns(rows, columns)
    arrays = [array(rows, expected) for expected in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns))


def complete(rows: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    """All columns of a kind of batch."""
    return select_columns(rows, COLUMNS[kind])


def join(parts: Sequence[pa.RecordBatch], kind: str) -> pa.RecordBatch:
    """The rows of several batches of a kind, each of which may leave out other columns."""
    if len(parts) == 1:
        return parts[0]
    return pa.concat_batches([complete(part, kind) for part in parts])


def array(rows: pa.RecordBatch, expected: Column) -> pa.Array:
    """One column; if it was left out, its usual value in all rows."""
    if expected.name in rows.schema.names:
        return rows.column(expected.name)
    return _repeated(expected.left_out, expected.type, rows.num_rows)


def _known_columns(rows: pa.RecordBatch, columns: tuple[Column, ...]) -> pa.RecordBatch:
    """Those of these columns that are there, checked, under the names that they have now."""
    names = rows.schema.names
    places = {name: index for index, name in enumerate(names)}
    places.pop("", None)  # which a column without a former name would find
    missing = [
        c.name
        for c in columns
        if c.name not in places and c.left_out is None and c.formerly not in places
    ]
    if missing:
        raise Unreadable(f"columns are missing: {', '.join(missing)}")
    if len(places) < len(names):
        twice = {name for name, count in Counter(names).items() if name and count > 1}
        repeated = [c.name for c in columns if {c.name, c.formerly} & twice]
        if repeated:
            raise Unreadable(f"columns are repeated: {', '.join(repeated)}")
    present = tuple(c for c in columns if c.name in places or c.formerly in places)
    arrays = [_checked(rows, c, places) for c in present]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(present))


def _checked(rows: pa.RecordBatch, expected: Column, places: dict[str, int]) -> pa.Array:
    """A column of the right type, possibly under its former name."""
    index = places.get(expected.name)
    if index is None:
        values = rows.column(places[expected.formerly])
        if not pa.types.is_integer(values.type):
            raise Unreadable(
                f"column {expected.formerly} is {values.type}, expected {expected.type}"
            )
        return values.cast(expected.type)
    values = rows.column(index)
    if values.type != expected.type:
        raise Unreadable(f"column {expected.name} is {values.type}, expected {expected.type}")
    return values


def _repeated(value: Any, arrow_type: pa.DataType, count: int) -> pa.Array:
    if value == []:  # Arrow repeats lists one by one, and not 0 times
        offsets, nothing = np.zeros(count + 1, np.int32), pa.array([], arrow_type.value_type)
        return pa.ListArray.from_arrays(pa.array(offsets), nothing, type=arrow_type)
    return pa.repeat(pa.scalar(value, arrow_type), count)


def _check_values(rows: pa.RecordBatch, kind: str) -> None:
    if rows.num_rows == 0:
        raise Unreadable("a batch without rows")
    lists = (rows.column(name).flatten() for name in LISTS & set(rows.schema.names))
    if any(values.null_count for values in (*rows.columns, *lists)):
        raise Unreadable("a batch with missing values")
    problem = task_problem(_tasks(rows))
    if problem:
        raise Unreadable(problem)
    if kind != "tasks":
        share = column(rows, "gpu_fraction")
        _require("gpu_fraction", "0..1", (share >= 0) & (share <= 1), share)
        for name in ("device", "cpu"):
            number = column(rows, name)
            _require(name, "-1 or more", number >= -1, number)
        expected = column(rows, "expected_time")
        _require("expected_time", _UP_TO, (expected >= 0) & (expected <= LARGEST), expected)


def task_problem(tasks: Tasks, window: int = FARTHEST_PARENT) -> str | None:
    """What is wrong with these tasks, naming the column and the first bad value; else None.
    A parent may be up to `window` tasks back."""
    try:
        size, intensity = tasks.size, tasks.compute_intensity
        memory, arrival = tasks.memory_required, tasks.arrival_time
        _require("size", f"above 0, at most {LARGEST:g}", (size > 0) & (size <= LARGEST), size)
        _require("compute_intensity", "0..1", (intensity >= 0) & (intensity <= 1), intensity)
        _require("memory_required", _UP_TO, (memory >= 0) & (memory <= LARGEST), memory)
        _require("arrival_time", _UP_TO, (arrival >= 0) & (arrival <= LARGEST), arrival)
        rising = np.diff(tasks.task_id, prepend=tasks.task_id[:1] - 1) == 1
        _require("task_id", "rising by one", rising, tasks.task_id)
        _require("task_id", "0 or more", tasks.task_id >= 0, tasks.task_id)
        if tasks.width is not None:
            good = (tasks.width >= 1) & (tasks.width <= MOST_DEVICES)
            _require("width", f"1 to {MOST_DEVICES}", good, tasks.width)
        if tasks.home is not None:
            _require("home", "-1 or more", tasks.home >= -1, tasks.home)
        for task_id, parents in zip(tasks.task_id, tasks.parents, strict=bool(tasks.parents)):
            for parent in parents:
                if not max(0, task_id - window) <= parent < task_id:
                    raise Unreadable(
                        f"dependencies of task {task_id}: {parent} is not one of the "
                        f"{window} tasks before it"
                    )
    except Unreadable as error:
        return str(error)
    return None


def _require(name: str, allowed: str, good: Any, values: Any) -> None:
    if not good.all():
        row = int(np.argmin(good))
        raise Unreadable(f"{name} must be {allowed}, got {values[row]} in row {row}")


def column(rows: pa.RecordBatch, name: str) -> Any:
    """One column as a numpy array."""
    if name not in rows.schema.names:
        return np.full(rows.num_rows, OPTIONAL[name])
    return rows.column(name).to_numpy(zero_copy_only=False)


def value(rows: pa.RecordBatch, name: str, row: int) -> Any:
    """One value as plain Python."""
    return rows.column(name)[row].as_py() if name in rows.schema.names else OPTIONAL[name]


def tasks_of(rows: pa.RecordBatch) -> Tasks:
    return _tasks(_without_usual(rows))  # of a slice


def _tasks(rows: pa.RecordBatch) -> Tasks:
    names = rows.schema.names
    numbers = {name: column(rows, name) for name in TASK_NUMBERS}
    divisible, width, home = (column(rows, each) if each in names else None for each in USUAL)
    last_child = column(rows, "last_child")
    unknown = last_child < 0
    if unknown.any():
        last_child = np.where(unknown, numbers["task_id"] + DEPENDENCY_WINDOW, last_child)
    return Tasks(
        **numbers,
        parents=rows.column("dependencies").to_pylist() if "dependencies" in names else (),
        kind=rows.column("kind").to_pylist() if "kind" in names else (),
        divisible=divisible,
        width=None if width is None else width.astype(np.int64),
        home=None if home is None else home.astype(np.int64),
        last_child=last_child,
    )


def task_rows(tasks: Tasks) -> pa.RecordBatch:
    values = {name: getattr(tasks, name) for name in (*TASK_NUMBERS, *USUAL, "last_child")}
    values |= {"dependencies": tasks.parents or None, "kind": tasks.kind or None}
    return _rows("tasks", values)


def decision_rows(
    task_rows: pa.RecordBatch, tasks: Tasks, decisions: Decisions, platform: Platform
) -> pa.RecordBatch:
    """The task rows with the decision's columns behind them."""
    share = np.asarray(decisions.gpu_fraction, np.float64)
    device, cpu = platform.complete(tasks.task_id, share, decisions.device, decisions.cpu)
    version = decisions.model_version
    values = {
        "gpu_fraction": share,
        "device": device,
        "cpu": cpu,
        "model_version": np.full(len(tasks), version) if version else None,
        "explored": decisions.explored,
        "probability": decisions.probability,
        "expected_time": decisions.expected_time,
        "turn": None if decisions.order is None else _turns(decisions.order, tasks.task_id),
        "predicted": None if decisions.predicted is None else _lists(decisions.predicted),
        "scores": None if decisions.scores is None else _lists(decisions.scores),
    }
    return _rows("decisions", values, task_rows)


def _lists(rows: Any) -> pa.Array:
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    values = np.concatenate(rows).astype(np.float64)
    # JSON has no infinity.
    values = np.where(np.isfinite(values), values, -1.0)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), type=list_of(FLOAT))


def _turns(order: Integers, task_id: Integers) -> Integers:
    turns = np.full(len(task_id), -1)
    turns[order] = np.where(task_id[order] == task_id, -1, task_id)
    return turns


def order_of(decision_rows: pa.RecordBatch) -> Integers | None:
    """The row numbers in the order in which the scheduler wants them served; None: by id."""
    if "turn" not in decision_rows.schema.names:
        return None
    turns = column(decision_rows, "turn")
    if (turns < 0).all():
        return None
    task_id = column(decision_rows, "task_id")
    places = np.where(turns < 0, task_id, turns)
    order: Integers = np.argsort(places, kind="stable")
    if not np.array_equal(places[order], task_id):
        raise Unreadable("turn does not name each task of the batch once")
    return order


def result_rows(decision_rows: pa.RecordBatch, values: Mapping[str, Any]) -> pa.RecordBatch:
    """The decision rows with the result's columns behind them; those that are left out have their
    usual value."""
    return _rows("results", values, decision_rows)


def _rows(
    kind: str, values: Mapping[str, Any], before: pa.RecordBatch | None = None
) -> pa.RecordBatch:
    """With a column for each value that is not None, behind those of `before`."""
    names = [] if before is None else before.schema.names
    arrays = [] if before is None else before.columns
    for field in SCHEMAS[kind]:
        value = values.get(field.name)
        if value is not None:
            names.append(field.name)
            arrays.append(_array(value, field.type))
        elif field.name in values and field.name not in OPTIONAL:
            raise ValueError(f"{field.name} has no usual value")
    return pa.RecordBatch.from_arrays(arrays, schema=_schema(kind, tuple(names)))


def _array(values: Any, arrow_type: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return pa.array(_as_type(values, arrow_type), arrow_type)


def _as_type(values: Any, arrow_type: pa.DataType) -> Any:
    """numpy converts between number types; Arrow refuses to."""
    if pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type):
        return np.asarray(values, arrow_type.to_pandas_dtype())
    return values
