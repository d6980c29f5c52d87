"""The folder of an experiment, read once: the declaration, the provenance, the tables."""

from __future__ import annotations

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
from services.lab.experiments.tables import ADDED, MEASURES, TABLES
from shared.domain.schedulers import REFERENCES
from shared.domain.spec import RunSpec, read_mapping

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Study:
    """An experiment and everything measured in it."""

    experiment: Experiment
    provenance: dict[str, Any]
    tables: dict[str, pa.Table]

    @cached_property
    def _outcomes(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """The rows of each variant and scheduler."""
        outcomes: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in self.tables["outcomes"].to_pylist():
            outcomes.setdefault((row["variant"], row["scheduler"]), []).append(row)
        return outcomes

    @cached_property
    def variants(self) -> list[str]:
        """The variants with outcomes, as declared; those of a sweep are sorted by value."""
        declared, seen = self.experiment.variants, {variant for variant, _ in self._outcomes}
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
        return sorted({row["seed"] for rows in self._outcomes.values() for row in rows})

    @property
    def first_spec(self) -> RunSpec:
        """The spec of the first variant and seed."""
        variant, seed = next(self.experiment.runs())
        return self.experiment.run_spec(variant, seed)

    @property
    def ranked_by(self) -> str:
        """The column of the outcomes that the experiment's measure is."""
        return MEASURES[self.experiment.measure]

    def schedulers(self, variant: str | None = None) -> list[str]:
        """Schedulers, best first and references last; over all variants when `variant` is None."""
        values: dict[str, list[float]] = {}
        for (where, name), rows in self._outcomes.items():
            if variant in (None, where):
                values.setdefault(name, []).extend(row[self.ranked_by] or 0.0 for row in rows)
        means = {name: sum(own) / len(own) for name, own in values.items()}
        return sorted(means, key=lambda name: (name in REFERENCES, means[name], name))

    def label(self, variant: str) -> str:
        known = self.experiment.variants
        return (known[variant].label or variant) if variant in known else variant

    def rows(self, variant: str, scheduler: str) -> list[dict[str, Any]]:
        return self._outcomes.get((variant, scheduler), [])

    def by_seed(self, variant: str, scheduler: str, column: str) -> dict[int, float]:
        """A column of the outcomes by seed, without missing values."""
        return {
            row["seed"]: float(row[column])
            for row in self.rows(variant, scheduler)
            if row[column] is not None and np.isfinite(row[column])
        }

    def select(self, table: str, variant: str, **where: Any) -> Columns:
        """The columns of one variant's rows, filtered by the values of further columns."""
        columns = self._columns[table]
        keep = columns["variant"] == variant
        for column, value in where.items():
            keep &= columns[column] == value
        return {name: values[keep] for name, values in columns.items()}

    def seeds_of(self, table: str, variant: str) -> list[int]:
        return sorted({int(seed) for seed in self.select(table, variant)["seed"]})

    @cached_property
    def _columns(self) -> dict[str, Columns]:
        return {
            table: {name: _array(rows.column(name)) for name in rows.column_names}
            for table, rows in self.tables.items()
        }


def read(folder: Path) -> Study:
    """Everything the report needs. A missing table counts as empty."""
    declared = folder / "experiment.json"
    experiment, provenance = read_mapping(declared), read_mapping(folder / "provenance.json")
    tables = {}
    for name, schema in TABLES.items():
        file = folder / "data" / f"{name}.parquet"
        table = pa.parquet.read_table(file) if file.is_file() else schema.empty_table()
        missing = set(schema.names) - set(table.column_names)
        if missing - ADDED:
            raise ExperimentError(f"{file}: no column {', '.join(sorted(missing - ADDED))}")
        for column in missing:
            table = table.append_column(column, pa.nulls(table.num_rows))
        tables[name] = table.select(schema.names).cast(schema)
    return Study(parse(experiment, str(declared)), provenance, tables)


def write_csv(study: Study, folder: Path) -> list[Path]:
    """Each table as CSV beside its Parquet file; ids in a list are separated by spaces."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in study.tables.items():
        for i, column in enumerate(table.schema):
            if pa.types.is_list(column.type):
                ids = [" ".join(map(str, ids or ())) for ids in table.column(i).to_pylist()]
                table = table.set_column(i, column.name, pa.array(ids, pa.string()))
        written.append(folder / f"{name}.csv")
        pa.csv.write_csv(table, written[-1])
    return written


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_list(column.type) or pa.types.is_string(column.type):
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]
    if pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    return np.asarray(column.to_numpy())
