"""WfCommons workflows (WfFormat), schema 1.5 and older.

In 1.5 tasks are described in one list and measured in another; before, one list had both. The file
is read once, as a stream of JSON events, into a temporary SQLite database that joins the two lists
by id. SQLite keeps a few MB in memory and the rest in an anonymous file that ends with the process.

Tasks come in the order of the file, or, where that has children before their parents, in the
topological order that is nearest to it.
"""

from __future__ import annotations

import heapq
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import ijson
import numpy as np

from services.lab.traces.column_rules import Rules
from services.lab.traces.formats.text_blocks import Source
from services.lab.traces.formats.text_columns import NOT_FINITE, Rows
from services.lab.traces.problem_report import Report, TraceError
from shared.domain.hardware.measured_times import LONGEST_KIND
from shared.domain.tasks import Floats

DESCRIBED = "workflow.specification.tasks.item"
MEASURED = "workflow.execution.tasks.item"
BOTH = "workflow.tasks.item"

KILOBYTE = 1024  # schemas before 1.4 have `memory` in kB
COLUMNS = [
    "runtimeInSeconds", "runtime", "avgCPU", "memoryInBytes", "coreCount", "readBytes",
    "writtenBytes", "energyInKWh", "avgPowerInW", "priority",
]  # fmt: skip

CATEGORY = "category"
# Without a category, a task's is its name without the number: mProject_ID0000001.
NUMBER = re.compile(r"_(ID)?\d+$")

ROWS = 10_000  # written or read at a time

SCHEMA = f"""
CREATE TABLE described (place INTEGER PRIMARY KEY, id TEXT, category TEXT);
CREATE TABLE sequence (position INTEGER PRIMARY KEY, place INTEGER);
CREATE TABLE parents (place INTEGER, parent TEXT);
CREATE TABLE measured (id TEXT, {", ".join(f'"{name}"' for name in COLUMNS)});
"""
INDEXES = """
CREATE INDEX described_id ON described (id);
CREATE INDEX parents_place ON parents (place);
CREATE INDEX measured_id ON measured (id);
"""


def read_rows(source: Source, rules: Rules, report: Report) -> Iterator[Rows]:
    unknown = sorted(rules.columns() - set(COLUMNS))
    if unknown:
        raise TraceError(f"a workflow has no {', '.join(unknown)}; it has {', '.join(COLUMNS)}")
    if rules.kind not in (CATEGORY, None):
        raise TraceError(f"the kind of a workflow's task is its {CATEGORY}, not {rules.kind}")
    report.unit = "task"
    database = sqlite3.connect("")  # anonymous; on disk once it is large
    try:
        database.executescript(SCHEMA)
        loader = _Loader(database)
        count = loader.load(source, report)
        database.executescript(INDEXES)
        _put_in_order(database, count)
        yield from _joined(database, rules, report, count)
    finally:
        database.close()


class _Loader:
    """Writes the JSON events of a file into the database."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._described: list[tuple[int, str, str]] = []
        self._parents: list[tuple[int, str]] = []
        self._measured: list[tuple[Any, ...]] = []
        self._count = 0
        self._has_tasks = False

    def load(self, source: Source, report: Report) -> int:
        try:
            self._read(source)
        except (ijson.JSONError, UnicodeDecodeError, RecursionError) as error:
            reason = source.damage or " ".join(str(error).split())[:200]
            report.skip(self._count, "the JSON is truncated or invalid after this task", reason)
        self._flush()
        if not self._has_tasks:
            raise TraceError(
                "no workflow in the JSON: neither workflow.specification.tasks nor workflow.tasks"
            )
        return self._count

    def _read(self, source: Source) -> None:
        """Keeps only what a task needs."""
        task: dict[str, Any] = {}
        for prefix, event, value in ijson.parse(source, buf_size=1 << 16):
            if not prefix.startswith("workflow."):
                continue
            if event == "start_array" and prefix + ".item" in (DESCRIBED, BOTH):
                self._has_tasks = True
            elif event == "start_map" and prefix in (DESCRIBED, MEASURED, BOTH):
                task = {}
                if prefix != MEASURED:
                    self._count += 1
            elif event == "end_map" and prefix in (DESCRIBED, MEASURED, BOTH):
                self._end(prefix, task)
            elif event in ("number", "string", "null"):
                self._value(prefix, value, task)

    def _value(self, prefix: str, value: Any, task: dict[str, Any]) -> None:
        place, _, key = prefix.rpartition(".")
        if place in (DESCRIBED, MEASURED, BOTH):
            task[key] = value
        elif key == "item" and place.endswith(".item.parents"):
            self._parents.append((self._count, str(value)))
            if len(self._parents) >= ROWS:
                self._flush()

    def _end(self, prefix: str, task: dict[str, Any]) -> None:
        # Old schemas have names instead of ids.
        name = str(task.get("id", task.get("name", "")))
        if "memory" in task and "memoryInBytes" not in task:
            kilobytes = task["memory"]
            number = isinstance(kilobytes, int | Decimal)
            task["memoryInBytes"] = kilobytes * KILOBYTE if number else kilobytes
        if prefix != MEASURED:
            category = task.get(CATEGORY) or NUMBER.sub("", str(task.get("name", name)))
            self._described.append((self._count, name, str(category)[:LONGEST_KIND]))
        if prefix != DESCRIBED:
            values = (_stored(task.get(column)) for column in COLUMNS)
            self._measured.append((name, *values))
        if len(self._described) + len(self._measured) >= ROWS:
            self._flush()

    def _flush(self) -> None:
        write = self._database.executemany
        write("INSERT INTO described VALUES (?, ?, ?)", self._described)
        write("INSERT INTO parents VALUES (?, ?)", self._parents)
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        write(f"INSERT INTO measured VALUES ({marks})", self._measured)
        self._described, self._parents, self._measured = [], [], []


def _stored(value: Any) -> Any:
    """Numbers as float: ijson returns integers and decimals of any size."""
    if not isinstance(value, int | Decimal):
        return value
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _put_in_order(database: sqlite3.Connection, count: int) -> None:
    edges = """
        SELECT c.place, min(p.place) FROM parents e
        JOIN described c ON c.place = e.place JOIN described p ON p.id = e.parent
        GROUP BY e.rowid
    """
    forward = f"WITH e(child, parent) AS ({edges}) SELECT count(*) FROM e WHERE parent > child"
    order: Iterator[int] = iter(range(1, count + 1))
    if database.execute(forward).fetchone()[0]:
        order = _topological(count, database.execute(edges).fetchall())
    database.executemany("INSERT INTO sequence VALUES (?, ?)", enumerate(order, 1))


def _topological(count: int, edges: list[tuple[int, int]]) -> Iterator[int]:
    """Parents first, else the lowest place first; the tasks of a cycle at the end."""
    children: dict[int, list[int]] = defaultdict(list)
    waits_for = [0] * (count + 1)
    for child, parent in edges:
        if child != parent:
            children[parent].append(child)
            waits_for[child] += 1
    ready = [place for place in range(1, count + 1) if not waits_for[place]]
    heapq.heapify(ready)
    while ready:
        place = heapq.heappop(ready)
        yield place
        for child in children[place]:
            waits_for[child] -= 1
            if not waits_for[child]:
                heapq.heappush(ready, child)
    yield from (place for place in range(1, count + 1) if waits_for[place])


def _joined(
    database: sqlite3.Connection, rules: Rules, report: Report, count: int
) -> Iterator[Rows]:
    columns = ", ".join(f'm."{name}"' for name in COLUMNS)
    # The first of duplicate ids is used.
    query = f"""
        SELECT d.place, d.id, m.rowid, {columns}, d.category,
               (SELECT min(place) FROM described WHERE id = d.id) AS first
        FROM sequence s JOIN described d USING (place) LEFT JOIN measured m
          ON m.rowid = (SELECT min(rowid) FROM measured WHERE id = d.id)
        WHERE s.position BETWEEN ? AND ? ORDER BY s.position
    """
    numeric = sorted(rules.columns())
    for start in range(1, count + 1, ROWS):
        stop = start + ROWS - 1
        rows = database.execute(query, (start, stop)).fetchall()
        kept = [_valid(row, numeric, report) for row in rows]
        parents: dict[int, list[str]] = {}
        parents_query = """
            SELECT p.place, p.parent FROM sequence s JOIN parents p USING (place)
            WHERE s.position BETWEEN ? AND ? ORDER BY p.rowid
        """
        for place, parent in database.execute(parents_query, (start, stop)):
            parents.setdefault(place, []).append(parent)
        yield Rows(
            line=np.array([row[0] for row in rows], np.int64),
            numbers={name: _numbers(rows, kept, 3 + COLUMNS.index(name)) for name in numeric},
            texts={CATEGORY: [row[-2] for row in rows]},
            names=[row[1] for row in rows],
            parents=[parents.get(row[0], []) for row in rows],
            kept=np.array(kept, np.bool_),
        )


def _numbers(rows: list[tuple[Any, ...]], kept: list[bool], place: int) -> Floats:
    """NaN for missing values and for skipped rows, which may have no number."""
    return np.array(
        [row[place] if valid else None for row, valid in zip(rows, kept, strict=True)], np.float64
    )


def _valid(row: tuple[Any, ...], columns: list[str], report: Report) -> bool:
    place, name, measured = row[:3]
    if not name:
        report.skip(place, "no id")
    elif row[-1] != place:
        report.skip(place, "duplicate id", name)
    elif measured is None:
        report.skip(place, "never ran: nothing was measured", name)
    else:
        return all(_is_number(place, key, row[3 + COLUMNS.index(key)], report) for key in columns)
    return False


def _is_number(place: int, key: str, value: Any, report: Report) -> bool:
    if isinstance(value, str):
        report.skip(place, "not a number", f"{key} {value!r}")
    elif value is not None and not np.isfinite(value):
        report.skip(place, NOT_FINITE, f"{key} {value}")
    else:
        return True
    return False
