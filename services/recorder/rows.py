"""Messages as rows: what each kind of message puts into which table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
from pydantic import ValidationError

from shared.batches import DECISION_FIELDS, RESULT_FIELDS, Batch
from shared.errors import Unreadable
from shared.events import Event
from shared.models import Manifest
from shared.runs import RunRecord
from shared.standing import Standing, standing_of

TIMESTAMP = pa.timestamp("us", tz="UTC")
FEATURES = ("task_id", "size", "compute_intensity", "memory_required")
RESULT_COLUMNS = [
    "task_id",
    *(field.name for field in DECISION_FIELDS),
    *(field.name for field in RESULT_FIELDS),
]

STANDING = pa.schema(
    [
        ("run", pa.string()),
        ("scheduler", pa.string()),
        ("batch", pa.uint64()),
        *(
            (name, pa.uint64())
            for name, field in Standing.model_fields.items()
            if field.annotation is int
        ),
        *(
            (name, pa.float64())
            for name, field in Standing.model_fields.items()
            if field.annotation is float
        ),
        ("cpu_busy", pa.list_(pa.float64())),
        ("gpu_busy", pa.list_(pa.float64())),
        ("published_at", TIMESTAMP),
    ]
)
RUN = pa.schema(
    [
        ("run", pa.string()),
        ("revision", pa.uint64()),
        ("name", pa.string()),
        ("state", pa.string()),
        ("seed", pa.uint64()),
        ("tasks", pa.uint64()),
        ("schedulers", pa.list_(pa.string())),
        ("spec", pa.string()),
        ("created_at", TIMESTAMP),
        ("updated_at", TIMESTAMP),
    ]
)
EVENT = pa.schema(
    [
        ("at", TIMESTAMP),
        ("sequence", pa.uint64()),
        ("kind", pa.string()),
        ("service", pa.string()),
        ("run", pa.string()),
        ("message", pa.string()),
        ("data", pa.string()),
    ]
)


MODEL = pa.schema(
    [
        ("run", pa.string()),
        ("name", pa.string()),
        ("version", pa.uint32()),
        ("shipped", pa.bool_()),
        ("reason", pa.string()),
        ("score", pa.float64()),
        ("champion_score", pa.float64()),
        ("sha256", pa.string()),
        ("format", pa.string()),
        ("trained_on", pa.uint32()),
        ("first_task", pa.int64()),
        ("last_task", pa.int64()),
        ("metrics", pa.string()),
        ("created_at", TIMESTAMP),
    ]
)


def moment(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise Unreadable(f"{seconds} is not a time") from None


def task_table(batches: Sequence[Batch]) -> pa.Table | None:
    pieces = []
    for batch in batches:
        envelope, rows = batch.envelope, batch.rows
        pieces.append(
            pa.table(
                {
                    "run": _constant(envelope.run, rows.num_rows),
                    "batch": _constant(envelope.batch, rows.num_rows, pa.uint64()),
                    **{name: rows.column(name) for name in rows.schema.names},
                    "published_at": _constant(
                        moment(envelope.published_at), rows.num_rows, TIMESTAMP
                    ),
                }
            )
        )
    return pa.concat_tables(pieces) if pieces else None


def result_table(batches: Sequence[Batch]) -> pa.Table | None:
    pieces = []
    for batch in batches:
        envelope, rows = batch.envelope, batch.rows
        pieces.append(
            pa.table(
                {
                    "run": _constant(envelope.run, rows.num_rows),
                    "scheduler": _constant(envelope.scheduler, rows.num_rows),
                    "batch": _constant(envelope.batch, rows.num_rows, pa.uint64()),
                    **{name: rows.column(name) for name in RESULT_COLUMNS},
                }
            )
        )
    return pa.concat_tables(pieces) if pieces else None


def training_table(batches: Sequence[Batch]) -> pa.Table | None:
    """Task features with the Oracle's share and time, from the Oracle's results."""
    pieces = [
        pa.table(
            {
                "run": _constant(batch.envelope.run, batch.rows.num_rows),
                **{name: batch.rows.column(name) for name in FEATURES},
                "optimal_gpu_fraction": batch.rows.column("gpu_fraction"),
                "optimal_time": batch.rows.column("time"),
            }
        )
        for batch in batches
        if batch.envelope.scheduler == "oracle"
    ]
    return pa.concat_tables(pieces) if pieces else None


def standing_table(batches: Sequence[Batch]) -> pa.Table:
    rows = []
    for batch in batches:
        envelope = batch.envelope
        rows.append(
            {
                "run": envelope.run,
                "scheduler": envelope.scheduler,
                "batch": envelope.batch,
                **standing_of(envelope).model_dump(),
                "published_at": moment(envelope.published_at),
            }
        )
    return pa.Table.from_pylist(rows, schema=STANDING)


def run_table(records: Sequence[tuple[int, RunRecord]]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "run": record.run,
                "revision": revision,
                "name": record.spec.name,
                "state": str(record.state),
                "seed": record.spec.seed,
                "tasks": record.spec.tasks,
                "schedulers": list(record.spec.schedulers),
                "spec": record.spec.model_dump_json(),
                "created_at": moment(record.created_at),
                "updated_at": moment(record.updated_at),
            }
            for revision, record in records
        ],
        schema=RUN,
    )


def event_table(events: Sequence[tuple[int, Event]]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                **event.model_dump(exclude={"at", "data"}),
                "at": moment(event.at),
                "sequence": sequence,
                "data": json.dumps(event.data),
            }
            for sequence, event in events
        ],
        schema=EVENT,
    )


def model_table(events: Sequence[tuple[int, Event]]) -> pa.Table | None:
    """The models that events of kind `model` tell about, shipped or not."""
    found = []
    for _, event in events:
        if event.kind != "model":
            continue
        try:
            manifest = Manifest.model_validate(event.data.get("manifest"))
        except ValidationError:
            continue  # a note about models in general
        found.append(
            {
                **manifest.model_dump(exclude={"metrics", "created_at"}),
                "shipped": bool(event.data.get("shipped")),
                "score": manifest.metrics.get("score"),
                "champion_score": manifest.metrics.get("champion_score"),
                "metrics": json.dumps(manifest.metrics),
                "created_at": moment(manifest.created_at),
            }
        )
    return pa.Table.from_pylist(found, schema=MODEL) if found else None


def _constant(value: object, count: int, kind: pa.DataType | None = None) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind or pa.string()), count)
