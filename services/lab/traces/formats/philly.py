"""Philly's job log (`cluster_job_log`): a JSON list of jobs, each with its attempts to run.

The list is not in the order of submission, so its jobs go through a temporary SQLite database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import islice
from typing import Any

import ijson
import numpy as np

from services.lab.traces.column_rules import Rules
from services.lab.traces.formats.dates import ISO, seconds_of
from services.lab.traces.formats.text_blocks import Source
from services.lab.traces.formats.text_columns import Rows
from services.lab.traces.problem_report import Report, TraceError

COLUMNS = ["submitted_time", "seconds", "gpus", "attempts"]
TEXTS = ["status", "vc", "user"]

ROWS = 10_000  # written or read at a time

SCHEMA = "CREATE TABLE jobs (place INTEGER PRIMARY KEY, {})".format(", ".join([*COLUMNS, *TEXTS]))


def read_rows(source: Source, rules: Rules, report: Report) -> Iterator[Rows]:
    texts = [rules.kind] if rules.kind else []
    unknown = sorted(rules.columns() - {*COLUMNS}) + sorted({*texts} - {*TEXTS})
    if unknown:
        raise TraceError(
            f"Philly's jobs have no {', '.join(unknown)}; they have {', '.join(COLUMNS)}, "
            f"and as kind {', '.join(TEXTS)}"
        )
    report.unit = "job"
    database = sqlite3.connect("")  # anonymous; on disk once it is large
    try:
        database.execute(SCHEMA)
        _load(database, source, report)
        yield from _sorted(database, sorted(rules.columns()), texts)
    finally:
        database.close()


def _load(database: sqlite3.Connection, source: Source, report: Report) -> None:
    marks = ", ".join("?" * (1 + len(COLUMNS) + len(TEXTS)))
    rows = _rows(source, report)
    while some := list(islice(rows, ROWS)):
        database.executemany(f"INSERT INTO jobs VALUES ({marks})", some)


def _rows(source: Source, report: Report) -> Iterator[tuple[Any, ...]]:
    place = 0
    try:
        for place, job in enumerate(ijson.items(source, "item"), 1):
            try:
                row = _row(job)
            except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
                report.skip(place, "not a job", f"{type(error).__name__}: {error}")
                continue
            if not row[1]:
                report.skip(place, "never ran: no attempt has a start and an end")
                continue
            yield place, *row
    except (ijson.JSONError, UnicodeDecodeError, RecursionError) as error:
        reason = source.damage or " ".join(str(error).split())[:200]
        report.skip(place, "the JSON is truncated or invalid after this job", reason)


def _row(job: dict[str, Any]) -> tuple[Any, ...]:
    seconds, gpus, attempts = 0.0, 0, 0
    for attempt in job["attempts"]:
        start, end = _date(attempt.get("start_time")), _date(attempt.get("end_time"))
        if start is None or end is None:
            continue
        attempts += 1
        seconds += end - start
        gpus = max(gpus, sum(len(server["gpus"]) for server in attempt.get("detail") or ()))
    submitted = seconds_of(str(job["submitted_time"]), ISO)
    return submitted, seconds, gpus, attempts, *(str(job.get(name) or "") for name in TEXTS)


def _date(text: Any) -> float | None:
    return seconds_of(text, ISO) if text and text != "None" else None


def _sorted(database: sqlite3.Connection, numbers: list[str], texts: list[str]) -> Iterator[Rows]:
    columns = ", ".join(["place", *numbers, *texts])
    jobs = database.execute(f"SELECT {columns} FROM jobs ORDER BY submitted_time, place")
    while rows := jobs.fetchmany(ROWS):
        by_column = list(zip(*rows, strict=True))
        values = dict(zip([*numbers, *texts], by_column[1:], strict=True))
        yield Rows(
            np.array(by_column[0], np.int64),
            {name: np.array(values[name], np.float64) for name in numbers},
            {name: list(values[name]) for name in texts},
        )
