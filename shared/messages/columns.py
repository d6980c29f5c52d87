"""The columns of tasks, decisions, results and standings, declared once.

Arrow schemas, ClickHouse tables and migrations, HTTP models and the dashboard's types are derived
from these lists. A new column is one line here, and the code that computes its value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pydantic import Field
from pydantic.fields import FieldInfo

from shared.messages.standing import Since, Standing

FLOAT, INT, TEXT, FLAG = pa.float64(), pa.int64(), pa.string(), pa.bool_()
TIMESTAMP = pa.timestamp("us", tz="UTC")

# The schema versions that added columns for any cluster, and for schedulers that see theirs.
DEVICES = 2
OBSERVED = 3
EXPLAINED = 4
EXECUTED = 5  # real runs


def list_of(item: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("item", item, nullable=False))


# Of ClickHouse.
_TYPE_DEFAULTS: dict[pa.DataType, Any] = {
    FLOAT: 0.0,
    INT: 0,
    pa.int32(): 0,
    TEXT: "",
    FLAG: False,
    list_of(INT): [],
    list_of(FLOAT): [],
}


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: pa.DataType
    description: str = ""
    low_cardinality: bool = False  # ClickHouse stores few different strings as numbers
    nullable: bool = False
    # A column that was added later: the schema version that adds it to ClickHouse, and its value
    # in messages and rows that were written before.
    since: int = 1
    default: Any = None
    # The name that it had before.
    formerly: str = ""
    # Of a column that was always there: a message in which all rows have this leaves it out.
    usual: Any = None
    field: pa.Field = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Once: schemas are made for each message.
        object.__setattr__(self, "field", pa.field(self.name, self.type, nullable=self.nullable))

    @property
    def left_out(self) -> Any:
        """The value that a message without this column has in all rows; None: it is required."""
        return self.default if self.usual is None else self.usual

    @property
    def filled_by_default(self) -> bool:
        """Whether ClickHouse gives rows that are inserted without this column the same value."""
        if self.left_out is None:
            return False
        default = _TYPE_DEFAULTS.get(self.type) if self.default is None else self.default
        return bool(self.left_out == default)


TASK = (
    Column("task_id", INT, "number of the task in its run, from 0"),
    Column("size", FLOAT, "amount of work"),
    Column("compute_intensity", FLOAT, "0 (memory bound) to 1 (compute bound)"),
    Column("memory_required", FLOAT, "MB"),
    Column("arrival_time", FLOAT, "seconds of simulated time"),
    Column("dependencies", list_of(INT), "ids of the tasks that must finish first", usual=[]),
    Column(
        "kind",
        TEXT,
        "which kernel or job class it is, a row of a measured table",
        low_cardinality=True,
        since=DEVICES,
        default="",
    ),
    Column(
        "divisible",
        FLAG,
        "whether it may be split between an accelerator and a CPU",
        since=DEVICES,
        default=True,
    ),
    Column("width", pa.int32(), "devices of one type that it takes", since=DEVICES, default=1),
    Column("home", pa.int32(), "node of its data; -1: every node", since=DEVICES, default=-1),
    Column(
        "last_child",
        INT,
        "the last task that may depend on it; -1: unknown",
        since=DEVICES,
        default=-1,
    ),
)
DECISION = (
    Column("gpu_fraction", FLOAT, "share that the scheduler chose for an accelerator, 0 to 1"),
    Column(
        "device",
        pa.int32(),
        "number of that accelerator; -1: there is none",
        since=DEVICES,
        formerly="gpu",
    ),
    Column(
        "cpu",
        pa.int32(),
        "number of the CPU that runs the rest; -1: none, or in rotation by task id",
        since=DEVICES,
        default=-1,
    ),
    Column("model_version", pa.int32(), "of the model that decided; 0: no model", usual=0),
    Column("explored", FLAG, "whether the decision was a random exploration", usual=False),
    Column("probability", FLOAT, "with which this choice was made", usual=1.0),
    Column(
        "expected_time",
        FLOAT,
        "seconds of execution that the scheduler expected; 0: it gave no estimate",
        since=OBSERVED,
        default=0.0,
    ),
    Column(
        "turn",
        INT,
        "the task in whose place it was served; -1: in its own, by id",
        since=OBSERVED,
        default=-1,
    ),
    Column(
        "predicted",
        list_of(FLOAT),
        "the scheduler's own seconds of the whole task on each device type (-1: it cannot run "
        "there); empty: it has none",
        since=EXPLAINED,
        default=[],
    ),
    Column(
        "scores",
        list_of(FLOAT),
        "what the scheduler compared, for each device: lower is better; empty: it does not say",
        since=EXPLAINED,
        default=[],
    ),
)
RESULT = (
    Column("time", FLOAT, "execution time, seconds"),
    Column("wait", FLOAT, "seconds in queues"),
    Column("turnaround", FLOAT, "arrival to finish, seconds"),
    Column("energy", FLOAT, "joules"),
    Column("cost", FLOAT, "dollars, by the cost model of the run"),
    Column("cost_cloud", FLOAT, "dollars, by rented device time"),
    Column("cost_electricity", FLOAT, "dollars, by energy"),
    Column("gpu_time", FLOAT, "seconds of work on the accelerator"),
    Column("cpu_time", FLOAT, "seconds of work on the CPU"),
    Column("gpu_start", FLOAT, "when the accelerator's part started, simulated seconds"),
    Column("cpu_start", FLOAT, "when the CPU part started, simulated seconds"),
    Column("finish", FLOAT, "when the task finished, simulated seconds"),
    Column("status", TEXT, "ok or failed", low_cardinality=True, usual="ok"),
    Column(
        "transfer_time",
        FLOAT,
        "seconds of `gpu_time` and `cpu_time` in which data was copied to the device; measured in "
        "real runs, 0 in simulated ones",
        since=EXECUTED,
        default=0.0,
    ),
    Column(
        "reason",
        TEXT,
        "why it failed or ran again in a real run",
        low_cardinality=True,
        since=EXECUTED,
        default="",
    ),
    Column(
        "attempt",
        pa.int32(),
        "how often it was started in a real run; -1: it is simulated",
        since=EXECUTED,
        default=-1,
    ),
    Column(
        "energy_measured",
        FLAG,
        "whether the energy was measured; else it follows from the platform's watts",
        since=EXECUTED,
        default=False,
    ),
)

_STANDING_TYPES: dict[Any, pa.DataType] = {
    int: pa.uint64(),
    float: FLOAT,
    list[float]: list_of(FLOAT),
}


def _standing_column(name: str, info: FieldInfo) -> Column:
    since = next((each.version for each in info.metadata if isinstance(each, Since)), 1)
    default = None if since == 1 or isinstance(info.default, list) else info.default
    kind = _STANDING_TYPES[info.annotation]
    return Column(name, kind, info.description or "", since=since, default=default)


STANDING = tuple(_standing_column(*field) for field in Standing.model_fields.items())

_PYTHON_TYPES = {
    FLOAT: float,
    INT: int,
    pa.int32(): int,
    TEXT: str,
    FLAG: bool,
    list_of(INT): list[int],
    list_of(FLOAT): list[float],
}


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    return pa.schema([column.field for column in columns])


def pydantic_fields(columns: Iterable[Column]) -> dict[str, Any]:
    """Field definitions for `pydantic.create_model`."""
    fields: dict[str, Any] = {}
    for column in columns:
        default = {"default": column.default} if column.since >= EXPLAINED else {}
        info = Field(description=column.description, **default)
        fields[column.name] = (_PYTHON_TYPES[column.type], info)
    return fields
