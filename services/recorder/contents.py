"""The contents of each kind of message, and the rows that they put into which table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from nats.aio.msg import Msg
from nats.js.kv import KV_OP
from pydantic import ValidationError

from shared.domain.schedulers import ORACLE
from shared.errors import Unreadable
from shared.messages import batches
from shared.messages.batches import Batch
from shared.messages.columns import TIMESTAMP, Column
from shared.messages.events import Event
from shared.messages.formats import problem
from shared.messages.models import Manifest
from shared.messages.runs import RunRecord, read_run_record
from shared.messages.standing import standing_of
from shared.store.schema import TABLES

SCHEMAS = {name: table.schema for name, table in TABLES.items()}

Tables = dict[str, pa.Table | None]
Sequenced = Sequence[tuple[int, Event]]  # with the sequence number of the message

TRAINING_FEATURES = ("task_id", "size", "compute_intensity", "memory_required")


def read_batch(message: Msg) -> Batch:
    batch = batches.decode(message.data, message.subject)
    if batch.envelope.kind == "results":
        standing_of(batch.envelope)
    to_datetime(batch.envelope.published_at)
    return batch


def read_run(message: Msg) -> tuple[int, RunRecord] | None:
    """None for the deletion of a record."""
    if KV_OP in (message.headers or {}):
        return None
    record = read_run_record(message.data, message.subject.rpartition(".")[2])
    to_datetime(record.created_at)
    to_datetime(record.updated_at)
    return message.metadata.sequence.stream, record


def read_event(message: Msg) -> tuple[int, Event]:
    try:
        event = Event.model_validate_json(message.data)
    except ValidationError as error:
        raise Unreadable(f"not a readable event: {problem(error)}") from None
    to_datetime(event.at)
    return message.metadata.sequence.stream, event


def task_tables(contents: Sequence[Batch]) -> Tables:
    return {"tasks": _concatenate("tasks", contents)}


def result_tables(contents: Sequence[Batch]) -> Tables:
    return {
        "scheduler_results": _concatenate("scheduler_results", contents),
        "training_data": _training_table(contents),
        # Last: a standing in the store means that its results are there.
        "standings": _standing_table(contents),
    }


def event_tables(events: Sequenced) -> Tables:
    rows = [
        {
            **event.model_dump(exclude={"at", "data"}),
            "at": to_datetime(event.at),
            "sequence": sequence,
            "data": json.dumps(event.data),
        }
        for sequence, event in events
    ]
    return {"events": _from_rows("events", rows), "models": _model_table(events)}


def run_tables(records: Sequence[tuple[int, RunRecord]]) -> Tables:
    rows = [
        {
            "run": record.run,
            "revision": revision,
            "name": record.spec.name,
            "state": str(record.state),
            "seed": record.spec.seed,
            "tasks": record.spec.tasks,
            "schedulers": list(record.spec.schedulers),
            "spec": record.spec.model_dump_json(),
            "created_at": to_datetime(record.created_at),
            "updated_at": to_datetime(record.updated_at),
        }
        for revision, record in records
    ]
    return {"runs": _from_rows("runs", rows)}


def to_datetime(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise Unreadable(f"{seconds} is not a time") from None


def _concatenate(table: str, contents: Sequence[Batch]) -> pa.Table:
    """The rows of the batches, with the columns of the table, except those that no batch has and
    whose default in ClickHouse is the same."""
    sent = {name for batch in contents for name in batch.rows.schema.names}
    columns = [c for c in TABLES[table].columns if c.name in sent or not c.filled_by_default]
    tables = [_batch_table(columns, batch) for batch in contents]
    # In one piece: ClickHouse would copy thousands of rows at a time together.
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _batch_table(columns: Sequence[Column], batch: Batch) -> pa.Table:
    envelope, rows = batch.envelope, batch.rows
    count = rows.num_rows
    constants = {
        "run": _repeated_text(envelope.run, count),
        "scheduler": _repeated_text(envelope.scheduler, count),
        "batch": pa.repeat(pa.scalar(envelope.batch, pa.uint64()), count),
        "published_at": pa.repeat(pa.scalar(to_datetime(envelope.published_at), TIMESTAMP), count),
    }
    return pa.table(
        {c.name: constants[c.name] if c.name in constants else _stored(rows, c) for c in columns}
    )


def _stored(rows: pa.RecordBatch, column: Column) -> pa.Array:
    if column.low_cardinality and column.name not in rows.schema.names:
        return _repeated_text(column.left_out, rows.num_rows)
    values = batches.array(rows, column)
    return values.dictionary_encode() if column.low_cardinality else values


def _repeated_text(text: str, count: int) -> pa.DictionaryArray:
    """ClickHouse takes a dictionary as LowCardinality, without looking at each row's text."""
    indices = np.zeros(count, np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(indices), pa.array([text]))


def _training_table(contents: Sequence[Batch]) -> pa.Table | None:
    """Task features with the Oracle's share and time, from the Oracle's results."""
    schema = SCHEMAS["training_data"]
    tables = [
        pa.table(
            {
                "run": pa.repeat(pa.scalar(batch.envelope.run), batch.rows.num_rows),
                **{name: batch.rows.column(name) for name in TRAINING_FEATURES},
                "optimal_gpu_fraction": batch.rows.column("gpu_fraction"),
                "optimal_time": batch.rows.column("time"),
            },
            schema=schema,
        )
        for batch in contents
        if batch.envelope.scheduler == ORACLE
    ]
    return pa.concat_tables(tables) if tables else None


def _standing_table(contents: Sequence[Batch]) -> pa.Table:
    rows = [
        {
            "run": batch.envelope.run,
            "scheduler": batch.envelope.scheduler,
            "batch": batch.envelope.batch,
            **standing_of(batch.envelope).model_dump(),
            "published_at": to_datetime(batch.envelope.published_at),
        }
        for batch in contents
    ]
    return _from_rows("standings", rows)


def _model_table(events: Sequenced) -> pa.Table | None:
    """The models that events of kind `model` describe, shipped or not."""
    rows = []
    for _, event in events:
        if event.kind != "model":
            continue
        try:
            manifest = Manifest.model_validate(event.data.get("manifest"))
        except ValidationError:
            continue  # an event about models in general
        rows.append(
            {
                **manifest.model_dump(exclude={"metrics", "created_at"}),
                "shipped": bool(event.data.get("shipped")),
                "score": manifest.metrics.get("score"),
                "champion_score": manifest.metrics.get("champion_score"),
                "metrics": json.dumps(manifest.metrics),
                "created_at": to_datetime(manifest.created_at),
            }
        )
    return _from_rows("models", rows) if rows else None


def _from_rows(table: str, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMAS[table])
