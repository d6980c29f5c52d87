"""Reads a trace for a test: all tasks at once, and all messages about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from services.lab.traces.problem_report import Report
from services.lab.traces.trace import Trace
from shared.domain.tasks import Tasks, concatenate

SAMPLES = Path(__file__).parents[4] / "docs" / "traces"


@dataclass(frozen=True, slots=True)
class Read:
    tasks: Tasks
    messages: list[str]
    report: Report
    trace: Trace


def read(path: Path, **options: Any) -> Read:
    messages: list[str] = []
    report = Report(show=messages.append, shown=10**9, strict=options.pop("strict", False))
    trace = Trace(path, report, **options)
    pieces = list(trace.batches())
    parents: list[Any] = []
    for piece in pieces:
        parents += piece.parents or [[] for _ in range(len(piece))]
    tasks = replace(
        concatenate(pieces),
        parents=parents,
        last_child=np.concatenate([piece.last_child for piece in pieces]),
    )
    return Read(tasks, messages, report, trace)


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
