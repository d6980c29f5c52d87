"""Tasks of a bulk request: columns that may be left out, and what a column may be."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from services.gateway.tasks.arrow_body import numbered
from shared.errors import SpecError

NEEDED = {
    "size": [1.0, 2.0],
    "compute_intensity": [0.5, 0.5],
    "memory_required": [10.0, 10.0],
    "arrival_time": [0.0, 1.0],
}


def table(**columns: Any) -> pa.Table:
    return pa.table({**NEEDED, **columns})


def test_columns_that_are_left_out_have_their_usual_value() -> None:
    tasks = numbered(table(), 7)
    assert tasks.task_id.tolist() == [7, 8]
    assert (tasks.parents, tasks.kind) == ((), ())
    assert (tasks.divisible, tasks.width, tasks.home) == (None, None, None)
    assert tasks.last_child is not None
    assert tasks.last_child.tolist() == [-1, -1]  # not given


def test_all_columns_of_a_task_are_read() -> None:
    tasks = numbered(
        table(
            dependencies=pa.array([[], [7]]),
            kind=pa.array(["gemm", "sort"], pa.large_string()),
            divisible=[False, True],
            width=pa.array([1, 4], pa.int64()),
            home=pa.array([-1.0, 3.0]),
            last_child=[8, -1],
        ),
        7,
    )
    assert list(tasks.parents) == [[], [7]]
    assert list(tasks.kind) == ["gemm", "sort"]
    assert tasks.divisible is not None
    assert tasks.divisible.tolist() == [False, True]
    assert tasks.width is not None
    assert tasks.width.tolist() == [1, 4]
    assert tasks.home is not None
    assert tasks.home.tolist() == [-1, 3]
    assert tasks.last_child is not None
    assert tasks.last_child.tolist() == [8, -1]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"kind": [1, 2]}, "column kind must be string, not int64"),
        ({"kind": ["a", None]}, "column kind has missing values"),
        ({"kind": ["a", "x" * 101]}, "column kind has 101 characters; at most 100"),
        (
            {"kind": pa.array(["a", "b"]).dictionary_encode()},
            "column kind must be string, not dictionary",
        ),
        ({"divisible": ["yes", "no"]}, "column divisible must be bool, not string"),
        ({"width": [1.5, 2.0]}, "column width must be int32"),
        ({"width": [1, 2**40]}, "column width must be int32"),
        ({"home": ["a", "b"]}, "column home must be int32, not string"),
        ({"last_child": [1, None]}, "column last_child has missing values"),
    ],
)
def test_a_column_of_another_type_is_refused(columns: dict[str, Any], reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        numbered(table(**columns), 0)


def test_a_column_that_every_task_needs_must_be_there() -> None:
    with pytest.raises(SpecError, match="column size is missing"):
        numbered(table().drop_columns(["size"]), 0)
