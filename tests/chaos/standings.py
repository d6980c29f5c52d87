"""One scheduler's standings, held against the totals of its results."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.chaos.clickhouse import ClickHouse, Columns, bits
from tests.chaos.findings import Findings

STANDINGS = """
    SELECT * EXCEPT (run, scheduler, published_at)
    FROM standings WHERE run = {run:String} AND scheduler = {scheduler:String} ORDER BY batch
"""


class Standings:
    """A row a batch, the totals after its last task."""

    def __init__(
        self, clickhouse: ClickHouse, run: str, scheduler: str, findings: Findings
    ) -> None:
        self._place = f"standings of {scheduler}"
        self._findings = findings
        rows = clickhouse.columns(STANDINGS, {"run": run, "scheduler": scheduler})
        self._rows = self._once(rows) if rows else {}
        if "busy" in self._rows:
            self._split("busy")

    def _once(self, rows: Columns) -> Columns:
        again = np.concatenate([[False], np.diff(rows["batch"].astype(np.int64)) == 0])
        kept = {}
        for name, column in rows.items():
            values = bits(column)
            changed = again & np.concatenate([[False], values[1:] != values[:-1]])
            if changed.any():
                batch = rows["batch"][changed][0]
                what = f"batch {batch} has rows that differ in {name}"
                self._findings.add_doubled(self._place, what, int(changed.sum()))
            kept[name] = np.asarray(values if values.dtype == object else column)[~again]
        return kept

    def _split(self, name: str) -> None:
        """A column for each meter."""
        meters = self._rows.pop(name)
        for number in range(max((len(row) for row in meters), default=0)):
            values = [row[number] if number < len(row) else np.nan for row in meters]
            self._rows[f"{name}[{number}]"] = np.array(values, np.float64)

    def check(self, first: int, batch: Any, totals: Columns) -> None:
        """The rows that fall into a chunk which starts with task `first`."""
        if not self._rows:
            return
        after = self._rows["tasks"].astype(np.int64)
        here = (after > first) & (after <= first + len(batch))
        rows = after[here] - first - 1  # the last task of each standing
        expected: Columns = {name: column[rows] for name, column in totals.items()}
        expected["batch"] = batch[rows].astype(np.float64)
        for name, column in expected.items():
            if name not in self._rows:
                self._differ(f"{name} is missing")
                continue
            stored = self._rows[name][here].astype(np.float64)
            wrong = bits(stored) != bits(column.astype(np.float64))
            if wrong.any():
                at = self._rows["batch"][here][wrong][0]
                what = f"{name} after batch {at} is {float(stored[wrong][0])!r}"
                self._differ(f"{what}, the results add up to {float(column[wrong][0])!r}")

    def check_end(self, count: int) -> None:
        if not self._rows:
            self._findings.add_lost(self._place, "there are none")
            return
        numbers = self._rows["batch"].astype(np.int64)
        missing = np.setdiff1d(np.arange(numbers[-1] + 1), numbers)
        if len(missing):
            self._findings.add_lost(self._place, f"no row of batch {missing[0]}", len(missing))
        if (last := int(self._rows["tasks"][-1])) != count:
            self._differ(f"the last one counts {last} tasks of {count}")

    def _differ(self, what: str) -> None:
        self._findings.add_different(self._place, what)
