"""The folder of an experiment, read once: the declaration, the provenance, the tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from services.lab.experiments.declaration import Experiment, ExperimentError, parse
from services.lab.experiments.tables import TABLES

Columns = dict[str, NDArray[Any]]
BySeed = dict[int, float]


@dataclass(frozen=True)
class Study:
    """An experiment and everything measured in it."""

    experiment: Experiment
    provenance: dict[str, Any]
    tables: dict[str, pa.Table]

    @cached_property
    def outcomes(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.tables["outcomes"].to_pylist()
        return rows

    @cached_property
    def variants(self) -> list[str]:
        """Those with outcomes, in the order of the declaration; a sweep is sorted by its values."""
        declared, seen = self.experiment.variants, {row["variant"] for row in self.outcomes}
        known = [name for name in declared if name in seen]
        if self.is_sweep:
            known.sort(key=lambda name: declared[name].value or 0.0)
        return known + sorted(seen - set(known))

    @property
    def is_sweep(self) -> bool:
        values = [variant.value for variant in self.experiment.variants.values()]
        return len(values) > 1 and all(value is not None for value in values)

    @cached_property
    def seeds(self) -> list[int]:
        return sorted({row["seed"] for row in self.outcomes})

    def schedulers(self, variant: str | None = None) -> list[str]:
        """Fastest first, by total time (over all variants when `variant` is None)."""
        totals: dict[str, list[float]] = {}
        for row in self.outcomes:
            if variant in (None, row["variant"]):
                totals.setdefault(row["scheduler"], []).append(row["total_time"] or 0.0)
        return sorted(totals, key=lambda name: (sum(totals[name]) / len(totals[name]), name))

    def label(self, variant: str) -> str:
        known = self.experiment.variants
        return (known[variant].label or variant) if variant in known else variant

    def by_seed(self, variant: str, scheduler: str, column: str) -> BySeed:
        """A column of the outcomes by seed, without missing values."""
        return {
            row["seed"]: float(row[column])
            for row in self.outcomes
            if row["variant"] == variant
            and row["scheduler"] == scheduler
            and row[column] is not None
            and np.isfinite(row[column])
        }

    def rows(self, variant: str, scheduler: str) -> list[dict[str, Any]]:
        return [
            row
            for row in self.outcomes
            if row["variant"] == variant and row["scheduler"] == scheduler
        ]

    def select(self, table: str, variant: str, **where: Any) -> Columns:
        """The columns of one variant's rows, filtered by the values of further columns."""
        columns = self._columns(table)
        keep = columns["variant"] == variant
        for column, value in where.items():
            keep &= columns[column] == value
        return {name: values[keep] for name, values in columns.items()}

    def seeds_of(self, table: str, variant: str, **where: Any) -> list[int]:
        return sorted({int(seed) for seed in self.select(table, variant, **where)["seed"]})

    def runs(self) -> Iterator[dict[str, Any]]:
        yield from self.provenance.get("runs") or []

    def _columns(self, table: str) -> Columns:
        cache: dict[str, Columns] = self.__dict__.setdefault("_arrays", {})
        if table not in cache:
            rows = self.tables[table]
            cache[table] = {name: _array(rows.column(name)) for name in rows.column_names}
        return cache[table]


def read(folder: Path) -> Study:
    """Everything the report needs. A missing table counts as empty."""
    declaration = _json(folder / "experiment.json", "the experiment's declaration")
    provenance = _json(folder / "provenance.json", "the provenance")
    tables = {}
    for name, schema in TABLES.items():
        file = folder / "data" / f"{name}.parquet"
        table = pa.parquet.read_table(file) if file.is_file() else schema.empty_table()
        missing = set(schema.names) - set(table.column_names)
        if missing:
            raise ExperimentError(f"{file}: no column {', '.join(sorted(missing))}")
        tables[name] = table.select(schema.names).cast(schema)
    return Study(parse(declaration, str(folder / "experiment.json")), provenance, tables)


def write_csv(study: Study, folder: Path) -> list[Path]:
    """Each table as CSV beside its Parquet file; ids in a list are separated by spaces."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in study.tables.items():
        flat = table
        for i, column in enumerate(table.schema):
            if pa.types.is_list(column.type):
                values = [None if ids is None else " ".join(map(str, ids))
                          for ids in table.column(i).to_pylist()]  # fmt: skip
                flat = flat.set_column(i, column.name, pa.array(values, pa.string()))
        file = folder / f"{name}.csv"
        pa.csv.write_csv(flat, file)
        written.append(file)
    return written


def _json(file: Path, what: str) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExperimentError(f"{file}: {what} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ExperimentError(f"{file}: {what} is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise ExperimentError(f"{file}: {what} must be a mapping")
    return data


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_list(column.type) or pa.types.is_string(column.type):
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]
    if pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    return np.asarray(column.to_numpy())
