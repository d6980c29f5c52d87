"""Turns the columns of a trace into tasks by the rules of the mapping."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from services.lab.traces.column_rules import Inversion, Rule, Rules
from services.lab.traces.formats.text_columns import Rows
from services.lab.traces.parents import ParentResolver
from services.lab.traces.problem_report import Report
from shared.domain.portable_math import power
from shared.domain.tasks import LARGEST, Floats, Tasks

MOVED = "arrival moved to that of the task before it"


@dataclass(slots=True)
class Substituted:
    """How often a rule used its default or its limits instead of the column's value."""

    otherwise: int = 0
    limited: int = 0


@dataclass(slots=True)
class Translator:
    rules: Rules
    physics: Inversion
    report: Report
    next_task: int = 0
    substituted: dict[str, Substituted] = field(default_factory=dict)
    _clock: float = 0.0
    _first_arrival: float | None = None
    _parents: ParentResolver = field(init=False)

    def __post_init__(self) -> None:
        self._parents = ParentResolver(self.report)
        self.substituted = {name: Substituted() for name in self.rules.fields()}
        if not self.rules.arrivals_from_first:
            self._first_arrival = 0.0

    def tasks(self, rows: Rows) -> Tasks:
        lines = _Filter(rows, self.report)
        intensity = self._field("intensity", rows, lines)
        lines.require("compute_intensity is not within 0..1", intensity, 0, 1)
        memory = self._field("memory", rows, lines)
        lines.require(f"memory_required is not within 0..{LARGEST:g}", memory, 0, LARGEST)
        size = self._size(rows, lines, intensity)
        arrival = self._arrival(rows, lines)
        kept = lines.kept
        parents: list[list[int]] = []
        if rows.names is not None:
            parents = self._parents.resolve(rows, kept, self.next_task)
        self._count(lines)
        count = int(kept.sum())
        first, self.next_task = self.next_task, self.next_task + count
        return Tasks(
            task_id=np.arange(first, first + count, dtype=np.int64),
            size=size[kept],
            compute_intensity=intensity[kept],
            memory_required=memory[kept],
            arrival_time=self._in_order(arrival[kept], rows.line[kept]),
            parents=parents if any(parents) else [],
        )

    def _field(self, name: str, rows: Rows, lines: _Filter) -> Floats:
        rule = self.rules.fields()[name]
        value = evaluate(rule, rows)
        missing = np.isnan(value)
        if rule.otherwise is None:
            lines.reject(missing, f"missing value: {rule.source()}")
        else:
            lines.otherwise[name] = missing
            value = np.where(missing, rule.otherwise, value)
        low = -np.inf if rule.low is None else rule.low
        high = np.inf if rule.high is None else rule.high
        limited = np.clip(value, low, high)
        lines.limited[name] = (limited != value) & ~missing
        return limited

    def _count(self, lines: _Filter) -> None:
        """Counts defaults and limits among the lines that become tasks."""
        for name, rule in self.rules.fields().items():
            if rule.column and name in lines.otherwise:
                self.substituted[name].otherwise += int((lines.otherwise[name] & lines.kept).sum())
            self.substituted[name].limited += int((lines.limited[name] & lines.kept).sum())

    def _size(self, rows: Rows, lines: _Filter, intensity: Floats) -> Floats:
        if self.rules.seconds is None:
            size = self._field("size", rows, lines)
        else:
            seconds = self._field("seconds", rows, lines)
            lines.reject(seconds == 0, "ran for no time")
            lines.reject(seconds < 0, "run time is negative", seconds)
            work = np.maximum(seconds, 0) * (intensity + self.physics.intensity_offset)
            size = self.physics.size_unit * power(work, 1 / self.physics.size_exponent)
        lines.reject(~(size > 0), "size is not above 0", size)
        lines.reject(size > LARGEST, f"size is above {LARGEST:g}", size)
        return np.asarray(size)

    def _arrival(self, rows: Rows, lines: _Filter) -> Floats:
        arrival = self._field("arrival", rows, lines)
        if self._first_arrival is None and lines.kept.any():
            self._first_arrival = float(arrival[lines.kept][0])
        arrival = arrival - (self._first_arrival or 0.0)
        if not self.rules.arrivals_from_first:
            lines.reject(arrival < 0, "arrival_time is negative", arrival)
        lines.reject(arrival > LARGEST, f"arrival_time is above {LARGEST:g}", arrival)
        return arrival

    def _in_order(self, arrival: Floats, lines: NDArray[np.int64]) -> Floats:
        """Arrivals that never decrease: the virtual cluster serves tasks in their order."""
        if not len(arrival):
            return arrival
        before = np.maximum.accumulate(np.concatenate(([self._clock], arrival)))
        early = arrival < before[:-1]
        for line, recorded, moved in zip(
            lines[early], arrival[early], before[1:][early], strict=True
        ):
            self.report.adjust(int(line), MOVED, f"{recorded:g} to {moved:g}")
        self._clock = float(before[-1])
        return before[1:]


class _Filter:
    """Which lines become tasks; each of the others is reported with its first problem."""

    def __init__(self, rows: Rows, report: Report) -> None:
        self.kept = np.ones(len(rows), np.bool_) if rows.kept is None else rows.kept
        self.otherwise: dict[str, NDArray[np.bool_]] = {}
        self.limited: dict[str, NDArray[np.bool_]] = {}
        self._rows = rows
        self._report = report

    def reject(self, bad: NDArray[np.bool_], reason: str, values: Floats | None = None) -> None:
        bad = bad & self.kept
        if bad.any():
            shown = [""] * int(bad.sum()) if values is None else [f"{v:g}" for v in values[bad]]
            self._report.skip_all(self._rows.line[bad], reason, shown)
            self.kept &= ~bad

    def require(self, otherwise: str, values: Floats, low: float, high: float) -> None:
        self.reject(~((values >= low) & (values <= high)), otherwise, values)


def evaluate(rule: Rule, rows: Rows) -> Floats:
    """The value of a rule for each line; NaN where a column has none."""
    unknown = np.full(len(rows), np.nan)
    value = unknown
    for name in rule.column:
        value = np.where(np.isnan(value), rows.numbers.get(name, unknown), value)
    if rule.minus:
        value = value - rows.numbers.get(rule.minus, unknown)
    if rule.times:
        value = value * rows.numbers.get(rule.times, unknown)
    if rule.over:
        by = rows.numbers.get(rule.over, unknown)
        value = value / np.where(by == 0, np.nan, by)
    return np.asarray(value * rule.scale + rule.offset)
