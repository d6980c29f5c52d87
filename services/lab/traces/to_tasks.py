"""Turns the columns of a trace into tasks by the rules of the mapping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.lab.traces.column_rules import Rule, Rules
from services.lab.traces.formats.text_columns import Rows
from services.lab.traces.problem_report import Report
from services.lab.traces.recorded_time import RecordedTimes
from services.lab.traces.task_links import Linker, RecentNames
from shared.domain.hardware.cluster_spec import MOST_DEVICES
from shared.domain.hardware.measured_times import LONGEST_KIND
from shared.domain.spec import RunSpec
from shared.domain.tasks import LARGEST, USUAL, Floats, Integers, Tasks
from shared.domain.times import seconds as expected_seconds

MOVED = "arrival moved to that of the task before it"


@dataclass(slots=True)
class Substituted:
    """How often a rule used its default or its limits instead of the column's value."""

    otherwise: int = 0
    limited: int = 0


@dataclass(slots=True)
class Translator:
    """`fit`: tasks that no device of the spec's platform can run are skipped."""

    rules: Rules
    spec: RunSpec
    report: Report
    linker: Linker
    fit: bool = True
    next_task: int = 0
    substituted: dict[str, Substituted] = field(default_factory=dict)
    recorded_on_cpu: int = 0  # tasks
    _clock: float = 0.0
    _first_arrival: float | None = None
    _recorded: RecordedTimes = field(init=False)
    _names: RecentNames = field(init=False)

    def __post_init__(self) -> None:
        self._recorded = RecordedTimes(self.spec, self.rules.recorded_on, self.report)
        self._names = RecentNames(self.report)
        self.substituted = {name: Substituted() for name in self.rules.fields()}
        if not self.rules.arrivals_from_first:
            self._first_arrival = 0.0

    def tasks(self, rows: Rows) -> Tasks:
        lines = _Filter(rows, self.report)
        intensity = self._field("intensity", rows, lines)
        lines.require("compute_intensity is not within 0..1", intensity, 0, 1)
        memory = self._field("memory", rows, lines)
        lines.require(f"memory_required is not within 0..{LARGEST:g}", memory, 0, LARGEST)
        kind = rows.texts.get(self.rules.kind or "", [])
        kind = kind if any(kind) else []
        width = self._field("width", rows, lines)
        lines.require(f"width is not within 0..{MOST_DEVICES}", width, 0, MOST_DEVICES)
        on_cpu = width < 1
        cpus = np.ceil(self._field("cpu_width", rows, lines))
        lines.reject(
            on_cpu & ~((cpus >= 1) & (cpus <= MOST_DEVICES)),
            f"cpu_width is not within 1..{MOST_DEVICES}",
            cpus,
        )
        size = self._size(rows, lines, _Facts(intensity, memory, kind, on_cpu))
        arrival = self._arrival(rows, lines)
        columns = {
            "size": size,
            "compute_intensity": intensity,
            "memory_required": memory,
            "arrival_time": arrival,
            "width": _whole(np.where(on_cpu, cpus, width)),
            "divisible": self._field("divisible", rows, lines) != 0,
            "home": _whole(self._field("home", rows, lines)),
        }
        lines.reject(columns["home"] < -1, "home is below -1", columns["home"])
        too_long = np.array(
            [len(each) > LONGEST_KIND for each in kind or [""] * len(rows)], np.bool_
        )
        lines.reject(too_long, f"kind is longer than {LONGEST_KIND} characters", None, kind)
        if self.fit:
            self._reject_unfit(rows, lines, columns, kind)
        self._names.remove_repeated(rows, lines.kept)
        linked = self.linker.resolve(rows, lines.kept, self.next_task)
        kept = lines.kept
        self._count(lines)
        self.recorded_on_cpu += int((kept & (on_cpu | self._recorded.on_cpu)).sum())
        count = int(kept.sum())
        first, self.next_task = self.next_task, self.next_task + count
        columns = {name: values[kept] for name, values in columns.items()}
        columns["arrival_time"] = self._in_order(columns["arrival_time"], rows.line[kept])
        return Tasks(
            task_id=np.arange(first, first + count, dtype=np.int64),
            parents=linked.parents if any(linked.parents) else [],
            last_child=linked.last_child,
            kind=_only(kind, kept),
            **_unusual(columns),
        )

    def _reject_unfit(
        self, rows: Rows, lines: _Filter, columns: dict[str, Any], kind: list[str]
    ) -> None:
        """Tasks that take more devices than there are, or of a kind that was never measured."""
        most = int(self.spec.platform.counts.max())
        reason = f"takes more devices than the platform has of one type ({most:,})"
        lines.reject(columns["width"] > most, reason, columns["width"])
        nodes = len(self.spec.platform.node_names)
        lines.reject(
            columns["home"] >= nodes,
            f"home is no node of the platform ({nodes:,})",
            columns["home"],
        )
        places = np.flatnonzero(lines.kept)
        if self.rules.needs_measured_times and self.spec.platform.measured is None:
            return
        tasks = Tasks(
            task_id=places,
            kind=_only(kind, lines.kept),
            **_unusual({name: values[places] for name, values in columns.items()}),
        )
        impossible = np.zeros(len(rows), np.bool_)
        impossible[places] = ~np.isfinite(expected_seconds(tasks, self.spec)).any(axis=1)
        lines.reject(impossible, "no device type of the platform can run it", None, kind)

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

    def _size(self, rows: Rows, lines: _Filter, facts: _Facts) -> Floats:
        if self.rules.seconds is None:
            size = self._field("size", rows, lines)
        else:
            seconds = self._field("seconds", rows, lines)
            lines.reject(seconds == 0, "ran for no time")
            lines.reject(seconds < 0, "run time is negative", seconds)
            size = self._recorded.sizes(
                seconds, facts.intensity, facts.memory, facts.kind, facts.on_cpu
            )
            reason = "has no size that takes as long on the device it was recorded on"
            lines.reject(np.isnan(size), reason, seconds)
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


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the size of a task depends on besides its seconds."""

    intensity: Floats
    memory: Floats
    kind: Sequence[str]
    on_cpu: NDArray[np.bool_]


def _only(texts: Sequence[str], kept: NDArray[np.bool_]) -> list[str]:
    return [texts[place] for place in np.flatnonzero(kept).tolist()] if texts else []


def _whole(values: Floats) -> Integers:
    return np.where(np.isfinite(values), values, 0).astype(np.int64)


def _unusual(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns, with None in place of those that only have the usual value."""
    return {
        name: None if name in USUAL and (values == USUAL[name]).all() else values
        for name, values in columns.items()
    }


class _Filter:
    """Which lines become tasks; each of the others is reported with its first problem."""

    def __init__(self, rows: Rows, report: Report) -> None:
        self.kept = np.ones(len(rows), np.bool_) if rows.kept is None else rows.kept
        self.otherwise: dict[str, NDArray[np.bool_]] = {}
        self.limited: dict[str, NDArray[np.bool_]] = {}
        self._rows = rows
        self._report = report

    def reject(
        self,
        bad: NDArray[np.bool_],
        reason: str,
        values: Floats | Integers | None = None,
        texts: Sequence[str] = (),
    ) -> None:
        bad = bad & self.kept
        if bad.any():
            shown = [""] * int(bad.sum()) if values is None else [f"{v:g}" for v in values[bad]]
            shown = _only(texts, bad) or shown
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
