"""The folder of an experiment; with it an interrupted experiment can be resumed.

experiment.json   the declaration, options applied
journal.json      which runs were started and which are done
data/parts/       the tables of each run, as soon as it is done
provenance.json   program, libraries and machine, written before the report
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, Field, ValidationError

from services.lab.atomic_write import replace_file, replace_text
from services.lab.experiments.declaration import Experiment, ExperimentError, parse
from services.lab.experiments.tables import TABLES
from shared.domain.spec import read_mapping


class Entry(BaseModel):
    """One run of the experiment."""

    variant: str
    seed: int
    run: str
    done: bool = False
    resumed: bool = False  # it was running when the experiment was interrupted
    seconds: float = 0.0
    tasks_per_s: float = 0.0
    spec: dict[str, Any] = {}


class Journal(BaseModel):
    id: str = Field(default_factory=lambda: secrets.token_hex(3))
    command: str
    arena: str = Field(description="embedded, or the address of its gateway")
    started_at: str
    entries: list[Entry] = []
    peaks: dict[str, float] = Field(default={}, description="peak memory of each process, MB")

    def entry(self, variant: str, seed: int) -> Entry | None:
        matching = (e for e in self.entries if (e.variant, e.seed) == (variant, seed))
        return next(matching, None)

    def note_peaks(self, peaks: dict[str, float]) -> None:
        """Keeps the maximum: a resumed experiment has several arenas in sequence."""
        for name, mb in peaks.items():
            self.peaks[name] = max(self.peaks.get(name, 0.0), mb)


class Folder:
    """An experiment on disk. Files are replaced atomically."""

    def __init__(self, path: Path, experiment: Experiment, journal: Journal) -> None:
        self.path = path
        self.experiment = experiment
        self.journal = journal

    @classmethod
    def create(cls, path: Path, experiment: Experiment, journal: Journal) -> Folder:
        if (path / "journal.json").exists():
            raise ExperimentError(
                f"{path} already contains an experiment: continue it with --resume {path}, "
                "or choose another folder with --out"
            )
        (path / "data" / "parts").mkdir(parents=True, exist_ok=True)
        folder = cls(path, experiment, journal)
        replace_text(path / "experiment.json", experiment.model_dump_json(indent=1) + "\n")
        folder.save()
        return folder

    @classmethod
    def open(cls, path: Path) -> Folder:
        if not (path / "journal.json").exists():
            raise ExperimentError(f"no experiment in {path}")
        try:
            journal = Journal.model_validate_json((path / "journal.json").read_text())
        except ValidationError as error:
            raise ExperimentError(f"{path / 'journal.json'} cannot be read: {error}") from None
        declared = path / "experiment.json"
        return cls(path, parse(read_mapping(declared), str(declared)), journal)

    def save(self) -> None:
        replace_text(self.path / "journal.json", self.journal.model_dump_json(indent=1) + "\n")

    @property
    def complete(self) -> bool:
        return len([each for each in self.journal.entries if each.done]) == len(self._runs())

    def store(self, entry: Entry, tables: dict[str, pa.Table]) -> None:
        """Write the tables of a run, then mark it as done."""
        for name, rows in tables.items():
            with replace_file(self._part(name, entry.variant, entry.seed)) as part:
                pq.write_table(rows, part)
        entry.done = True
        self.save()

    def merge(self) -> None:
        """Concatenate the tables of all runs, in the order of the experiment."""
        for name, schema in TABLES.items():
            parts = [self._part(name, *run) for run in self._runs()]
            # Part by part: a thousand seeds do not fit in memory.
            with pq.ParquetWriter(self.path / "data" / f"{name}.parquet", schema) as writer:
                for part in parts:
                    writer.write_table(pq.read_table(part, schema=schema))

    def _runs(self) -> list[tuple[str, int]]:
        return list(self.experiment.runs())

    def _part(self, table: str, variant: str, seed: int) -> Path:
        number = list(self.experiment.variants).index(variant)
        return self.path / "data" / "parts" / f"{table}-{number}-{seed}.parquet"
