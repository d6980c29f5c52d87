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
import pyarrow.compute as pc

from shared.domain.cluster_spec import MOST_DEVICES
from shared.domain.platform import Platform
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
    EXECUTED,
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

# Columns that a message may leave out, and the value that they have then.
OPTIONAL = {c.name: c.left_out for c in COLUMNS["results"] if c.left_out is not None}
EXECUTED_COLUMNS = [column.name for column in RESULT if column.since == EXECUTED]

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
    """Without columns that have their usual value in all rows: most tasks are simulated, not
    divided, and have no parents; most schedulers explain nothing."""
    if not rows.num_rows:
        return rows
    names = rows.schema.names
    kept = [
        index
        for index, name in enumerate(names)
        if name not in OPTIONAL or not _all_equal(rows.column(index), OPTIONAL[name])
    ]
    return rows if len(kept) == len(names) else rows.select(kept)


def _all_equal(values: pa.Array, usual: Any) -> bool:
    if pa.types.is_list(values.type):
        return not len(values.flatten())
    if values[0].as_py() != usual:
        return False
    if pa.types.is_string(values.type):
        return bool(pc.all(pc.equal(values, usual)).as_py())
    return bool((values.to_numpy(zero_copy_only=False) == usual).all())


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
        rows = select_columns(rows, COLUMNS[kind], SCHEMAS[kind])
    except BROKEN as error:
        raise Unreadable(f"not an Arrow message: {error}") from None
    _check_values(rows, kind)
    if envelope.subject != subject:
        raise Unreadable(f"a message that belongs on {envelope.subject}")
    return Batch(envelope, rows)


def select_columns(
    rows: pa.RecordBatch, columns: tuple[Column, ...], schema: pa.Schema | None = None
) -> pa.RecordBatch:
    """Just these columns, checked; those that were left out get their usual value."""
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
    arrays = []
    for wanted in columns:
        index = places.get(wanted.name)
        if index is None:
            arrays.append(_left_out(rows, wanted, places))
            continue
        values = rows.column(index)
        if values.type != wanted.type:
            raise Unreadable(f"column {wanted.name} is {values.type}, expected {wanted.type}")
        arrays.append(values)
    return pa.RecordBatch.from_arrays(arrays, schema=schema or arrow_schema(columns))


def _left_out(rows: pa.RecordBatch, wanted: Column, places: dict[str, int]) -> pa.Array:
    """A column under its former name, or the value that stands for its absence."""
    if wanted.formerly not in places:
        return _repeated(wanted.left_out, wanted.type, rows.num_rows)
    values = rows.column(places[wanted.formerly])
    if not pa.types.is_integer(values.type):
        raise Unreadable(f"column {wanted.formerly} is {values.type}, expected {wanted.type}")
    return values.cast(wanted.type)


def _repeated(value: Any, arrow_type: pa.DataType, count: int) -> pa.Array:
    if value == []:  # Arrow repeats lists one by one, and not 0 times
        offsets, nothing = np.zeros(count + 1, np.int32), pa.array([], arrow_type.value_type)
        return pa.ListArray.from_arrays(pa.array(offsets), nothing, type=arrow_type)
    return pa.repeat(pa.scalar(value, arrow_type), count)


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
    return rows.column(name).to_numpy(zero_copy_only=False)


def tasks_of(rows: pa.RecordBatch) -> Tasks:
    dependencies = rows.column("dependencies")
    any_parents = len(dependencies.flatten()) > 0
    numbers = {name: column(rows, name) for name in TASK_NUMBERS}
    kind = rows.column("kind")
    divisible, width, home = (column(rows, name) for name in USUAL)
    last_child = column(rows, "last_child")
    unknown = last_child < 0
    if unknown.any():
        last_child = np.where(unknown, numbers["task_id"] + DEPENDENCY_WINDOW, last_child)
    return Tasks(
        **numbers,
        parents=dependencies.to_pylist() if any_parents else (),
        kind=kind.to_pylist() if pc.max(pc.binary_length(kind)).as_py() else (),
        divisible=None if divisible.all() else divisible,
        width=None if (width == 1).all() else width.astype(np.int64),
        home=None if (home == -1).all() else home.astype(np.int64),
        last_child=last_child,
    )


def task_rows(tasks: Tasks) -> pa.RecordBatch:
    count = len(tasks)
    values = {name: getattr(tasks, name) for name in (*TASK_NUMBERS, *USUAL)}
    for name, usual in {**USUAL, "last_child": -1}.items():
        given = getattr(tasks, name)
        values[name] = np.full(count, usual) if given is None else given
    values["dependencies"] = tasks.parents or [()] * count
    values["kind"] = tasks.kind or [""] * count
    return _rows("tasks", values)


def decision_rows(
    task_rows: pa.RecordBatch, tasks: Tasks, decisions: Decisions, platform: Platform
) -> pa.RecordBatch:
    """The task rows with the decision's columns behind them."""
    count = len(tasks)
    explored, probability = decisions.explored, decisions.probability
    expected = decisions.expected_time
    share = np.asarray(decisions.gpu_fraction, np.float64)
    device, cpu = platform.complete(tasks.task_id, share, decisions.device, decisions.cpu)
    values = {
        "gpu_fraction": share,
        "device": device,
        "cpu": cpu,
        "model_version": np.full(count, decisions.model_version),
        "explored": np.zeros(count, np.bool_) if explored is None else explored,
        "probability": np.ones(count) if probability is None else probability,
        "expected_time": np.zeros(count) if expected is None else expected,
        "turn": _turns(decisions.order, tasks.task_id),
        "predicted": _lists(decisions.predicted, count),
        "scores": _lists(decisions.scores, count),
    }
    return _rows("decisions", values, task_rows)


def _lists(rows: Any, count: int) -> pa.Array:
    if rows is None:
        return _repeated([], list_of(FLOAT), count)
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    values = np.concatenate(rows).astype(np.float64)
    # JSON has no infinity.
    values = np.where(np.isfinite(values), values, -1.0)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), type=list_of(FLOAT))


def _turns(order: Integers | None, task_id: Integers) -> Integers:
    turns = np.full(len(task_id), -1)
    if order is not None:
        turns[order] = np.where(task_id[order] == task_id, -1, task_id)
    return turns


def order_of(decision_rows: pa.RecordBatch) -> Integers | None:
    """The row numbers in the order in which the scheduler wants them served; None: by id."""
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
    """The decision rows with the result's columns behind them."""
    return _rows("results", values, decision_rows)


def simulated_columns(count: int) -> dict[str, Any]:
    """What only an executor measures."""
    return {
        column.name: _repeated(column.default, column.type, count)
        for column in RESULT
        if column.name in EXECUTED_COLUMNS
    }


def _rows(
    kind: str, values: Mapping[str, Any], before: pa.RecordBatch | None = None
) -> pa.RecordBatch:
    schema = SCHEMAS[kind]
    first = [] if before is None else before.columns
    arrays = [_array(values[field.name], field.type) for field in list(schema)[len(first) :]]
    return pa.RecordBatch.from_arrays([*first, *arrays], schema=schema)


def _array(values: Any, arrow_type: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return pa.array(_as_type(values, arrow_type), arrow_type)


def _as_type(values: Any, arrow_type: pa.DataType) -> Any:
    """numpy converts between number types; Arrow refuses to."""
    if pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type):
        return np.asarray(values, arrow_type.to_pandas_dtype())
    return values
