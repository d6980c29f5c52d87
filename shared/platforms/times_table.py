"""A table of measured times, CSV or Parquet: one row for each kind, device type and size.

The columns are kind, type, size, mean_seconds, and optionally deviation (standard deviation over
the mean) and count (of measurements).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shared.domain.hardware.measured_times import Curve
from shared.errors import SpecError

REQUIRED = ("kind", "type", "size", "mean_seconds")
OPTIONAL = ("deviation", "count")
MOST_PROBLEMS = 20

Row = tuple[str, dict[str, Any]]  # where it is in the file, and its values


def read_table(path: Path) -> tuple[Curve, ...]:
    """The curves of a table, sorted by size. A SpecError names the line (of CSV) or row."""
    try:
        rows = list(_csv_rows(path) if path.suffix == ".csv" else _parquet_rows(path))
    except FileNotFoundError:
        raise SpecError([f"{path}: there is no such file"]) from None
    except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException) as error:
        kind = "CSV" if path.suffix == ".csv" else "Parquet"
        raise SpecError([f"{path}: cannot be read as {kind}: {error}"]) from None
    if not rows:
        raise SpecError([f"{path}: no rows"])
    problems = [f"{path}, {problem}" for problem in _problems(rows)]
    if problems:
        more = len(problems) - MOST_PROBLEMS
        rest = [f"{path}: and {more:,} more problems"] if more > 0 else []
        raise SpecError(problems[:MOST_PROBLEMS] + rest)
    return _curves([row for _, row in rows])


def write_table(curves: Sequence[Curve], path: Path) -> None:
    rows = [
        {
            "kind": curve.kind,
            "type": curve.type,
            "size": size,
            "mean_seconds": curve.seconds[number],
            "deviation": curve.deviations[number] if curve.deviations else None,
            "count": curve.counts[number] if curve.counts else None,
        }
        for curve in curves
        for number, size in enumerate(curve.sizes)
    ]
    schema = pa.schema(
        [("kind", pa.string()), ("type", pa.string()), ("size", pa.float64()),
         ("mean_seconds", pa.float64()), ("deviation", pa.float64()), ("count", pa.int64())]
    )  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema), path)


def _csv_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        _check_columns(path, reader.fieldnames or [])
        for row in reader:
            yield f"line {reader.line_num}", row


def _parquet_rows(path: Path) -> Iterator[Row]:
    table = pq.read_table(path)
    _check_columns(path, table.column_names)
    for number, row in enumerate(table.to_pylist(), 1):
        yield f"row {number}", row


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    known = ", ".join((*REQUIRED, *(f"{name} (optional)" for name in OPTIONAL)))
    missing = [name for name in REQUIRED if name not in columns]
    unknown = [name for name in columns if name not in (*REQUIRED, *OPTIONAL)]
    problems = [f"{path}: column {name} is missing; the columns are {known}" for name in missing]
    problems += [f"{path}: unknown column {name}; the columns are {known}" for name in unknown]
    if problems:
        raise SpecError(problems)


def _problems(rows: list[Row]) -> Iterator[str]:
    """Also turns the values of the rows into numbers."""
    first: dict[tuple[Any, ...], str] = {}
    for where, row in rows:
        if None in row:  # what csv calls the values behind the last column
            yield f"{where}: more values than columns"
            continue
        wrong = list(_convert(row))
        yield from (f"{where}: {problem}" for problem in wrong)
        if wrong:
            continue
        point = row["kind"], row["type"], row["size"]
        before = first.setdefault(point, where)
        if before != where:
            yield (
                f"{where}: {row['kind']} on {row['type']} has size {row['size']:g} twice "
                f"(first in {before})"
            )


def _convert(row: dict[str, Any]) -> Iterator[str]:
    for name in ("kind", "type"):
        row[name] = str(row[name] or "").strip()
        if not row[name]:
            yield f"{name}: is empty"
    for name in ("size", "mean_seconds", *OPTIONAL):
        value = row.get(name)
        if name in OPTIONAL and value in (None, ""):
            row[name] = None
            continue
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.nan
        row[name] = number
        if not math.isfinite(number) or number < 0 or (number == 0 and name in REQUIRED):
            allowed = "a number above 0" if name in REQUIRED else "a number of 0 or more"
            yield f"{name}: should be {allowed} (got {value!r})"


def _curves(rows: list[dict[str, Any]]) -> tuple[Curve, ...]:
    points: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        points.setdefault((row["kind"], row["type"]), []).append(row)
    curves = []
    for (kind, device), unsorted in points.items():
        own = sorted(unsorted, key=lambda row: row["size"])
        deviations = [row["deviation"] for row in own]
        counts = [row["count"] for row in own]
        curves.append(
            Curve(
                kind=kind,
                type=device,
                sizes=tuple(row["size"] for row in own),
                seconds=tuple(row["mean_seconds"] for row in own),
                deviations=() if None in deviations else tuple(deviations),
                counts=() if None in counts else tuple(int(count) for count in counts),
            )
        )
    return tuple(curves)
