"""Data-plane messages: Arrow record batches with their envelope, schemas in one place.

A message is one Arrow IPC stream that holds one record batch. What belongs to the batch as a
whole (run, sequence number, cursor or cluster) is JSON in the schema's metadata, so that the
message is complete in itself. Readers ignore metadata and columns that they do not know.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shared.arrow import BROKEN, refuse_compression
from shared.errors import TooNew, Unreadable
from shared.formats import FORMATS, too_new
from shared.tasks import DEPENDENCY_WINDOW, LARGEST, Decisions, Tasks

# What a column of whole numbers holds.
COUNTABLE = 2**63

_UP_TO = f"0 to {LARGEST:g}"

TASK_FIELDS = [
    pa.field("task_id", pa.int64(), nullable=False),
    pa.field("size", pa.float64(), nullable=False),
    pa.field("compute_intensity", pa.float64(), nullable=False),
    pa.field("memory_required", pa.float64(), nullable=False),
    pa.field("arrival_time", pa.float64(), nullable=False),
    pa.field(
        "dependencies", pa.list_(pa.field("item", pa.int64(), nullable=False)), nullable=False
    ),
]
DECISION_FIELDS = [
    pa.field("gpu_fraction", pa.float64(), nullable=False),
    pa.field("gpu", pa.int16(), nullable=False),
    pa.field("model_version", pa.int32(), nullable=False),
    pa.field("explored", pa.bool_(), nullable=False),
    pa.field("probability", pa.float64(), nullable=False),
]
RESULT_FIELDS = [
    pa.field("time", pa.float64(), nullable=False),
    pa.field("wait", pa.float64(), nullable=False),
    pa.field("turnaround", pa.float64(), nullable=False),
    pa.field("energy", pa.float64(), nullable=False),
    pa.field("cost", pa.float64(), nullable=False),
    pa.field("cost_cloud", pa.float64(), nullable=False),
    pa.field("cost_electricity", pa.float64(), nullable=False),
    pa.field("gpu_time", pa.float64(), nullable=False),
    pa.field("cpu_time", pa.float64(), nullable=False),
    pa.field("gpu_start", pa.float64(), nullable=False),
    pa.field("cpu_start", pa.float64(), nullable=False),
    pa.field("finish", pa.float64(), nullable=False),
    pa.field("status", pa.string(), nullable=False),
]
TASKS = pa.schema(TASK_FIELDS)
DECISIONS = pa.schema(TASK_FIELDS + DECISION_FIELDS)
RESULTS = pa.schema(TASK_FIELDS + DECISION_FIELDS + RESULT_FIELDS)
SCHEMAS = {"tasks": TASKS, "decisions": DECISIONS, "results": RESULTS}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a batch says about itself."""

    kind: str
    run: str
    batch: int  # sequence number in the run, from 0, without gaps
    published_at: float  # wall clock when the tasks entered the bus
    scheduler: str = ""
    state: dict[str, Any] | None = None  # tasks: the cursor after it; results: cluster, standing

    @property
    def subject(self) -> str:
        return ".".join(part for part in (self.kind, self.run, self.scheduler) if part)

    @property
    def message_id(self) -> str:
        """The same batch always has the same id, whoever publishes it and however often."""
        return f"{self.subject}.{self.batch}"


@dataclass(frozen=True, slots=True)
class Batch:
    envelope: Envelope
    rows: pa.RecordBatch


def encode(envelope: Envelope, rows: pa.RecordBatch) -> bytes:
    rows = rows.replace_schema_metadata({"envelope": describe(envelope)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def describe(envelope: Envelope) -> str:
    """The envelope as JSON, in plain ASCII."""
    described = {
        "format": FORMATS["batch"],
        "kind": envelope.kind,
        "run": envelope.run,
        "batch": envelope.batch,
        "published_at": envelope.published_at,
        "scheduler": envelope.scheduler,
        "state": envelope.state,
    }
    return json.dumps(described)


def decode(body: bytes, subject: str) -> Batch:
    """Read and check the message of a subject; Unreadable says what is wrong with it."""
    return _decode(body, subject, first_row=0)


def peek(body: bytes, subject: str) -> Batch:
    """The envelope with the last row alone: as cheap for a large batch as for a small one."""
    return _decode(body, subject, first_row=-1)


def _decode(body: bytes, subject: str, first_row: int) -> Batch:
    kind = subject.partition(".")[0]
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            schema = reader.schema
            envelope = _envelope_of(schema, kind)
            refuse_compression(body)
            rows = reader.read_next_batch()
        rows.validate()  # Arrow ends the process that slices a column beyond its end
        rows = rows.slice(max(rows.num_rows + first_row, 0)) if first_row else rows
        rows.validate(full=True)
    except BROKEN as error:
        raise Unreadable(f"not an Arrow message: {error}") from None
    expected = SCHEMAS[kind]
    missing = [field.name for field in expected if schema.get_field_index(field.name) < 0]
    if missing:
        raise Unreadable(f"columns are missing: {', '.join(missing)}")
    rows = rows.select(expected.names)
    for field in expected:
        if rows.schema.field(field.name).type != field.type:
            found = rows.schema.field(field.name).type
            raise Unreadable(f"column {field.name} is {found}, expected {field.type}")
    _check_values(rows, kind)
    if envelope.subject != subject:
        raise Unreadable(f"a message that belongs on {envelope.subject}")
    return Batch(envelope, rows)


def _envelope_of(schema: pa.Schema, kind: str) -> Envelope:
    raw = (schema.metadata or {}).get(b"envelope")
    if raw is None:
        raise Unreadable("no envelope in the schema's metadata")
    return read_envelope(raw, kind)


def read_envelope(raw: bytes | str, kind: str) -> Envelope:
    try:
        said = json.loads(raw)
        if reason := too_new("batch", int(said["format"])):
            raise TooNew(reason)
        envelope = Envelope(
            kind=str(said["kind"]),
            run=str(said["run"]),
            batch=int(said["batch"]),
            published_at=float(said["published_at"]),
            scheduler=str(said.get("scheduler", "")),
            state=said.get("state"),
        )
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unreadable(f"the envelope is broken: {error!r}") from None
    if envelope.kind != kind:
        raise Unreadable(f"a message of kind {envelope.kind!r} where {kind!r} is expected")
    if not 0 <= envelope.batch < COUNTABLE:
        raise Unreadable(f"the batch number is not one of 0..{COUNTABLE - 1}")
    if not math.isfinite(envelope.published_at):
        raise Unreadable("published_at is not a time")
    if not isinstance(envelope.state, dict | None):
        raise Unreadable("the state is not a mapping")
    return envelope


def _check_values(rows: pa.RecordBatch, kind: str) -> None:
    if rows.num_rows == 0:
        raise Unreadable("a batch without rows")
    if any(column.null_count for column in rows.columns) or (
        rows.column("dependencies").flatten().null_count
    ):
        raise Unreadable("a batch with missing values")
    tasks = tasks_of(rows)
    problem = task_problem(tasks)
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
    waiting = len(dependencies.flatten()) > 0
    return Tasks(
        task_id=column(rows, "task_id"),
        size=column(rows, "size"),
        compute_intensity=column(rows, "compute_intensity"),
        memory_required=column(rows, "memory_required"),
        arrival_time=column(rows, "arrival_time"),
        parents=dependencies.to_pylist() if waiting else (),
    )


def task_rows(tasks: Tasks) -> pa.RecordBatch:
    parents = tasks.parents or [()] * len(tasks)
    arrays = [
        pa.array(tasks.task_id),
        pa.array(tasks.size),
        pa.array(tasks.compute_intensity),
        pa.array(tasks.memory_required),
        pa.array(tasks.arrival_time),
        pa.array(parents, TASKS.field("dependencies").type),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=TASKS)


def decision_rows(rows: pa.RecordBatch, tasks: Tasks, said: Decisions, gpus: int) -> pa.RecordBatch:
    """The task rows with the decision's columns behind them."""
    count = len(tasks)
    gpu = tasks.task_id % gpus if said.gpu is None else said.gpu
    explored = np.zeros(count, np.bool_) if said.explored is None else said.explored
    probability = np.ones(count) if said.probability is None else said.probability
    arrays = [
        pa.array(np.asarray(said.gpu_fraction, np.float64)),
        pa.array(np.asarray(gpu, np.int16)),
        pa.array(np.full(count, said.model_version, np.int32)),
        pa.array(explored),
        pa.array(np.asarray(probability, np.float64)),
    ]
    return pa.RecordBatch.from_arrays(rows.columns + arrays, schema=DECISIONS)
