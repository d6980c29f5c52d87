"""The tables in ClickHouse, and the migrations that make them.

Every table is a ReplacingMergeTree ordered by what identifies a row, so a batch that is inserted
again replaces itself; queries that count rows say FINAL. `standings` has the exact totals after
each batch: a scheduler's newest row is all that a leaderboard needs.

Migrations are derived from the columns: version 1 creates the tables, and each later version adds
the columns whose `since` it is. Statements may run twice. Never change a released column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from shared.messages.columns import (
    DECISION,
    FLAG,
    FLOAT,
    INT,
    RESULT,
    STANDING,
    TASK,
    TEXT,
    TIMESTAMP,
    Column,
    arrow_schema,
    list_of,
)

CLICKHOUSE_TYPES = {
    FLOAT: "Float64",
    INT: "Int64",
    pa.int32(): "Int32",
    pa.uint32(): "UInt32",
    pa.uint64(): "UInt64",
    FLAG: "Bool",
    TEXT: "String",
    TIMESTAMP: "DateTime64(6, 'UTC')",
    list_of(INT): "Array(Int64)",
    list_of(FLOAT): "Array(Float64)",
    list_of(TEXT): "Array(String)",
}
# Deduplication tokens that a table remembers: far more inserts than a recorder has in flight.
DEDUPLICATION_WINDOW = 1000


# When a device works on a task; never for a part of length 0. Queries for a stretch of simulated
# time use these expressions as they are, so that the indexes on them apply.
PART_BEGIN = {kind: f"if({kind}_time > 0, {kind}_start, inf)" for kind in ("gpu", "cpu")}
PART_END = {kind: f"if({kind}_time > 0, {kind}_start + {kind}_time, -inf)" for kind in PART_BEGIN}


# A device runs tasks mostly in order: a stretch of simulated time is in few granules, which these
# indexes find also where a long queue separates it from the arrivals. In standings both rise from
# batch to batch.
INDEXES = {
    "scheduler_results": {
        # From version 1, no longer used. Not dropped: that would be a mutation, too.
        **{f"{kind}_span": f"{kind}_start, finish" for kind in PART_BEGIN},
        **{f"{kind}_part": f"{PART_BEGIN[kind]}, {PART_END[kind]}" for kind in PART_BEGIN},
    },
    "standings": {"moments": "clock, makespan"},
}


def _indexes(table: str) -> list[str]:
    return [
        f"INDEX IF NOT EXISTS {name} ({expressions}) TYPE minmax GRANULARITY 1"
        for name, expressions in INDEXES.get(table, {}).items()
    ]


def _add_indexes(table: str) -> tuple[str, ...]:
    """For rows that are stored from now on. Indexing older ones would be a mutation, and two
    recorders that start together wait for each other's for ever."""
    return tuple(f"ALTER TABLE {table} ADD {index}" for index in _indexes(table))


# What a version does beyond new and renamed columns, by table and version. It may run twice, also
# on new tables.
CONVERSIONS = {
    ("standings", 2): (
        # Version 1 had the work of GPUs and of CPUs in a column each.
        "ALTER TABLE standings ADD COLUMN IF NOT EXISTS gpu_busy Array(Float64)",
        "ALTER TABLE standings ADD COLUMN IF NOT EXISTS cpu_busy Array(Float64)",
        "ALTER TABLE standings UPDATE busy = arrayConcat(gpu_busy, cpu_busy) "
        "WHERE empty(busy) SETTINGS mutations_sync = 1",
        "ALTER TABLE standings DROP COLUMN IF EXISTS gpu_busy SETTINGS mutations_sync = 1",
        "ALTER TABLE standings DROP COLUMN IF EXISTS cpu_busy SETTINGS mutations_sync = 1",
    ),
    ("scheduler_results", 3): _add_indexes("scheduler_results"),
    ("standings", 3): _add_indexes("standings"),
}


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    order_by: str
    newest_by: str = ""  # the column that decides which of two rows with one key stays

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows to insert."""
        return arrow_schema(self.columns)

    def create_statement(self) -> str:
        # A renamed column has the name that its migration will change.
        first = [_definition(c, c.formerly) for c in self.columns if c.since == 1 or c.formerly]
        return self._create(first)

    def create_newest_statement(self) -> str:
        """The table as it is after all migrations."""
        in_order = sorted(self.columns, key=lambda c: 1 if c.formerly else c.since)
        return self._create([_definition(column) for column in in_order])

    def _create(self, columns: list[str]) -> str:
        indexes = [index.replace("IF NOT EXISTS ", "") for index in _indexes(self.name)]
        return (
            f"CREATE TABLE IF NOT EXISTS {self.name} ({', '.join([*columns, *indexes])}) "
            f"ENGINE = ReplacingMergeTree({self.newest_by}) ORDER BY {self.order_by} "
            f"SETTINGS non_replicated_deduplication_window = {DEDUPLICATION_WINDOW}"
        )

    def add_statements(self, version: int) -> list[str]:
        statements = []
        for column in self.columns:
            if column.since != version:
                continue
            if column.formerly:
                names = f"{column.formerly} TO {column.name}"
                statements.append(f"ALTER TABLE {self.name} RENAME COLUMN IF EXISTS {names}")
                statements.append(f"ALTER TABLE {self.name} MODIFY COLUMN {_definition(column)}")
            else:
                added = f"ADD COLUMN IF NOT EXISTS {_definition(column)}"
                statements.append(f"ALTER TABLE {self.name} {added}")
        return [*statements, *CONVERSIONS.get((self.name, version), ())]


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    statements: tuple[str, ...]


def _definition(column: Column, name: str = "") -> str:
    sql = CLICKHOUSE_TYPES[column.type]
    if column.low_cardinality:
        sql = f"LowCardinality({sql})"
    if column.nullable:
        sql = f"Nullable({sql})"
    default = "" if column.default is None else f" DEFAULT {_literal(column.default)}"
    comment = f" COMMENT {_quoted(column.description)}" if column.description else ""
    return f"{name or column.name} {sql}{default}{comment}"


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


RUN = Column("run", TEXT, low_cardinality=True)
SCHEDULER = Column("scheduler", TEXT, low_cardinality=True)
BATCH = Column("batch", pa.uint64())
PUBLISHED_AT = Column("published_at", TIMESTAMP)
TASK_ID, SIZE, INTENSITY, MEMORY = TASK[:4]

_TABLES = (
    Table(
        "runs",
        (
            Column("run", TEXT),
            Column("revision", pa.uint64()),
            Column("name", TEXT),
            Column("state", TEXT, low_cardinality=True),
            Column("seed", pa.uint64()),
            Column("tasks", pa.uint64(), "none: endless", nullable=True),
            Column("schedulers", list_of(TEXT)),
            Column("spec", TEXT, "the RunSpec as JSON"),
            Column("created_at", TIMESTAMP),
            Column("updated_at", TIMESTAMP),
        ),
        order_by="run",
        newest_by="revision",
    ),
    Table("tasks", (RUN, TASK_ID, BATCH, *TASK[1:], PUBLISHED_AT), order_by="(run, task_id)"),
    Table(
        "scheduler_results",
        (RUN, SCHEDULER, TASK_ID, BATCH, *DECISION, *RESULT),
        order_by="(run, scheduler, task_id)",
    ),
    Table(
        "standings",
        (RUN, SCHEDULER, BATCH, *STANDING, PUBLISHED_AT),
        order_by="(run, scheduler, batch)",
    ),
    Table(
        "training_data",
        (
            RUN,
            TASK_ID,
            SIZE,
            INTENSITY,
            MEMORY,
            Column("optimal_gpu_fraction", FLOAT, "share that the Oracle chose"),
            Column("optimal_time", FLOAT, "execution time of the Oracle, seconds"),
        ),
        order_by="(run, task_id)",
    ),
    Table(
        "models",
        (
            RUN,
            Column("name", TEXT, low_cardinality=True),
            Column("version", pa.uint32(), "under which it was, or would have been, shipped"),
            Column("shipped", FLAG),
            Column("reason", TEXT),
            Column("score", FLOAT, "lower is better, 1 is the Oracle", nullable=True),
            Column("champion_score", FLOAT, nullable=True),
            Column("sha256", TEXT),
            Column("format", TEXT, low_cardinality=True),
            Column("trained_on", pa.uint32()),
            Column("first_task", INT),
            Column("last_task", INT),
            Column("metrics", TEXT, "JSON"),
            Column("created_at", TIMESTAMP),
        ),
        order_by="(run, name, created_at, version)",
    ),
    Table(
        "events",
        (
            Column("at", TIMESTAMP),
            Column("sequence", pa.uint64()),
            Column("kind", TEXT, low_cardinality=True),
            Column("service", TEXT, low_cardinality=True),
            RUN,
            Column("message", TEXT),
            Column("data", TEXT, "JSON"),
        ),
        order_by="(at, sequence)",
    ),
)
TABLES = {table.name: table for table in _TABLES}


def derive_migrations(tables: Iterable[Table]) -> list[Migration]:
    tables = tuple(tables)
    newest = max(column.since for table in tables for column in table.columns)
    create = tuple(table.create_statement() for table in tables)
    return [
        Migration(1, "tables", create),
        *(
            Migration(
                version,
                f"columns of version {version}",
                tuple(sql for table in tables for sql in table.add_statements(version)),
            )
            for version in range(2, newest + 1)
        ),
    ]


MIGRATIONS = derive_migrations(TABLES.values())
